package rendezvous

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"gogcl.dev/internal/netstack"
)

// listen opens the host's listener at a place. While another listener is there, it tries again for as long as
// c.patience. While the name of the host has no address, it tries again until the context ends: a pod of Kubernetes may
// start before the name server has its name.
func listen(ctx context.Context, c Config, at place) (net.Listener, error) {
	if c.Listener != nil {
		return c.Listener, nil
	}
	var noName *net.DNSError // of the last attempt that the context did not end
	for wait, first := newBackoff(), time.Now(); ; {
		l, err := listenOnce(ctx, c.Rank, at)
		if err == nil {
			return l, nil
		}
		lookup, isName := errors.AsType[*net.DNSError](err)
		if isName && (noName == nil || ctx.Err() == nil) {
			noName = lookup
		}
		if errors.Is(err, syscall.EADDRINUSE) {
			c.speaker.once(fmt.Sprintf("replica %d cannot listen at %s, since another process does, and tries again", c.Rank,
				at.text))
		}
		c.speaker.waits(func() string {
			return fmt.Sprintf("replica %d cannot listen at %s: %v", c.Rank, at.text, err)
		})
		switch {
		case isName && wait.pause(ctx):
		case isName:
			return nil, fmt.Errorf("replica %d cannot listen at %s: its name had no address in time: %w",
				c.Rank, at.text, noName)
		case !errors.Is(err, syscall.EADDRINUSE):
			return nil, err
		case time.Since(first) >= c.patience || !wait.pause(ctx):
			return nil, &Error{Kind: Stranger, Replicas: []int{c.Rank}, Err: err, Reason: fmt.Sprintf(
				"replica %d cannot listen at %s: another process does: "+
					"choose another port or name, or end that process (%v)", c.Rank, at.text, err)}
		}
	}
}

func listenOnce(ctx context.Context, rank int, at place) (net.Listener, error) {
	stack := netstack.Of(ctx)
	if at.kind == unixSocket {
		return stack.Listen(ctx, "unix", at.path)
	}
	addrs, err := resolve(ctx, at.host)
	if err != nil {
		return nil, fmt.Errorf("replica %d cannot listen at %s: %w", rank, at.text, err)
	}
	var notMine error
	for _, addr := range addrs {
		l, err := stack.Listen(ctx, "tcp", netip.AddrPortFrom(addr, at.port).String())
		if !errors.Is(err, syscall.EADDRNOTAVAIL) {
			return l, err
		}
		notMine = err
	}
	return nil, fmt.Errorf("replica %d cannot listen at %s: %s is %s, which is no address of this host: "+
		"give an address of the host that replica %[1]d runs on, or run replica %[1]d there (%[5]w)",
		rank, at.text, at.host, list(addrs), notMine)
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
func described(l net.Listener, rank int, at place) string {
	if at.kind == unixSocket {
		return at.text
	}
	addr := ipOf(l.Addr())
	have := l.Addr().String()
	switch {
	case have == at.text:
		return have
	case addr.IsLoopback() && at.host != "localhost":
		return fmt.Sprintf("%s (replica %d listens on %s, which only its own host can reach)", at.text, rank, have)
	}
	return fmt.Sprintf("%s (replica %d listens on %s)", at.text, rank, have)
}

// ipOf is the address of one end of a TCP connection, or the zero Addr.
func ipOf(addr net.Addr) netip.Addr {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return tcp.AddrPort().Addr().Unmap()
}
