package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gogcl.dev/transport/internal/user"
)

// listen opens replica 0's listener at a place. While another listener is there, it tries again for as long as
// c.patience. While the name of the host has no address, it tries again until the context ends: a pod of Kubernetes may
// start before the name server has its name.
func listen(ctx context.Context, c Config, at place) (net.Listener, error) {
	if c.Listener != nil {
		return c.Listener, nil
	}
	var noName *net.DNSError // of the last attempt that the context did not end
	for wait, first := newBackoff(), time.Now(); ; {
		l, err := listenOnce(ctx, at)
		if err == nil {
			return l, nil
		}
		lookup, isName := errors.AsType[*net.DNSError](err)
		if isName && (noName == nil || ctx.Err() == nil) {
			noName = lookup
		}
		switch {
		case isName && wait.pause(ctx):
		case isName:
			return nil, fmt.Errorf("replica 0 cannot listen at %s: its name had no address in time: %w", at.text, noName)
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, err
		case time.Since(first) >= c.patience || !wait.pause(ctx):
			return nil, &Error{Kind: Stranger, Replicas: []int{0}, Err: err, Reason: fmt.Sprintf(
				"replica 0 cannot listen at %s: another process does: "+
					"choose another port or name, or end that process (%v)", at.text, err)}
		}
	}
}

func listenOnce(ctx context.Context, at place) (net.Listener, error) {
	var config net.ListenConfig
	if at.kind == unixSocket {
		return config.Listen(ctx, "unix", at.path)
	}
	addrs, err := resolve(ctx, at.host)
	if err != nil {
		return nil, fmt.Errorf("replica 0 cannot listen at %s: %w", at.text, err)
	}
	var notMine error
	for _, addr := range addrs {
		l, err := config.Listen(ctx, "tcp", netip.AddrPortFrom(addr, at.port).String())
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return l, err
		}
		notMine = err
	}
	return nil, fmt.Errorf("replica 0 cannot listen at %s: %s is %s, which is no address of this host: "+
		"give an address of the host that replica 0 runs on, or run replica 0 there (%w)",
		at.text, at.host, list(addrs), notMine)
}

// resolve returns the addresses of a host: those that other hosts can reach first, IPv4 first.
func resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, nil
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	for i, addr := range addrs {
		addrs[i] = addr.Unmap()
	}
	slices.SortStableFunc(addrs, func(a, b netip.Addr) int { return cmp.Compare(reach(a), reach(b)) })
	return slices.Compact(addrs), nil
}

// reach orders addresses for [resolve].
func reach(a netip.Addr) int {
	order := 0
	if a.IsLoopback() {
		order += 2
	}
	if a.Is6() {
		order++
	}
	return order
}

func list(addrs []netip.Addr) string {
	var texts []string
	for _, a := range addrs {
		texts = append(texts, a.String())
	}
	return strings.Join(texts, " and ")
}

// described says where a listener is, for errors.
func described(l net.Listener, at place) string {
	if at.kind == unixSocket {
		return at.text
	}
	addr := ipOf(l.Addr())
	have := l.Addr().String()
	switch {
	case have == at.text:
		return have
	case addr.IsLoopback() && at.host != "localhost":
		return fmt.Sprintf("%s (replica 0 listens on %s, which only its own host can reach)", at.text, have)
	}
	return fmt.Sprintf("%s (replica 0 listens on %s)", at.text, have)
}

// ipOf is the address of one end of a TCP connection, or the zero Addr.
func ipOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}

// dialOnce connects to replica 0's place.
func dialOnce(ctx context.Context, at place) (net.Conn, error) {
	var dialer net.Dialer
	if at.kind == tcpSocket {
		return dialer.DialContext(ctx, "tcp", net.JoinHostPort(at.host, strconv.Itoa(int(at.port))))
	}
	conn, err := dialer.DialContext(ctx, "unix", at.path)
	if err != nil {
		return nil, err
	}
	if err := user.Check(conn); err != nil {
		conn.Close()
		return nil, err
	}
	return conn, nil
}

// backoff is the pause between two attempts. It grows.
type backoff struct {
	next time.Duration
}

// The pauses of a backoff. At most, a thousand replicas make 4,000 attempts a second.
const (
	minPause = 5 * time.Millisecond
	maxPause = 250 * time.Millisecond
)

func newBackoff() *backoff { return &backoff{minPause} }

// pause waits, and reports whether the context goes on.
func (b *backoff) pause(ctx context.Context) bool {
	timer := time.NewTimer(b.next)
	defer timer.Stop()
	b.next = min(b.next*3/2, maxPause)
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
