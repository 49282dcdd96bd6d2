package rendezvous

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// Desk answers newcomers, at the place where the replicas of a job have met, until ctx ends. If that is on another host
// it is at the same port of own, an address of this host; the zero Addr: nowhere. While another process listens there,
// as a replica that has been left behind, it tries again. answer is what a newcomer is told, at most [MaxAnswer] bytes,
// and number the one that it gets if it likes the answer. Of c it takes Job, Secret, Where, Channel and AnyUser. A
// directory is no place for a desk.
func Desk(ctx context.Context, c Config, own netip.Addr, answer func() []byte, number func() uint64) error {
	at, err := deskPlace(c)
	if err != nil {
		return err
	}
	l, err := openDesk(ctx, c.Rank, at, own)
	if err != nil {
		return err
	}
	users := c.guard(at.kind) == byUser
	if at.kind == unixSocket {
		l = user.Only(l, func(net.Conn, error) {})
	}
	defer context.AfterFunc(ctx, func() { l.Close() })()
	server := &handshake.Server{
		Secret: c.Secret, Job: c.Job, Channel: c.Channel, Spare: netstack.Of(ctx).Spare,
		Check: func(conn net.Conn, hello handshake.Hello) error {
			switch {
			case hello.Role != handshake.Newcomer:
				return errors.New("the job has begun, and takes newcomers only")
			case users:
				return user.Check(conn)
			}
			return nil
		},
		Joined: func(conn net.Conn, _ handshake.Hello) {
			defer conn.Close()
			text := answer()
			_ = conn.SetDeadline(time.Now().Add(handshake.Limit))
			text = append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
			if _, err := conn.Write(text); err != nil {
				return
			}
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				return
			}
			if _, err := conn.Write(binary.BigEndian.AppendUint64(nil, number())); err == nil {
				_, _ = conn.Read(make([]byte, 1)) // until the other side has read it
			}
		},
	}
	err = server.Serve(l)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

func openDesk(ctx context.Context, rank int, at place, own netip.Addr) (net.Listener, error) {
	for wait := newBackoff(); ; {
		l, err := listenOnce(ctx, rank, at)
		if errors.Is(err, syscall.EADDRNOTAVAIL) && own.IsValid() {
			l, err = netstack.Of(ctx).Listen(ctx, "tcp", netip.AddrPortFrom(own, at.port).String())
		}
		if err == nil || !wait.pause(ctx) {
			return l, err
		}
	}
}

// Ask gives what the desk of a job that runs answers to take, with the address of this host by which it has reached the
// desk, as for Config.Blob, and returns the number that this process gets. An error of take is the last. Else it dials
// until there is a desk, or ctx ends, and says so by c.Tell. A name that has addresses of several hosts finds it on
// each of them.
func Ask(ctx context.Context, c Config, take func(answer []byte, local netip.Addr) error) (number uint64, err error) {
	at, err := deskPlace(c)
	if err != nil {
		return 0, err
	}
	last := errors.New("no attempt was made")
	words := newSpeaker(&c)
	for wait := newBackoff(); ; {
		var taken error
		number, err := askOnce(ctx, c, at, func(answer []byte, local netip.Addr) error {
			taken = take(answer, local)
			return taken
		})
		if err == nil || taken != nil {
			return number, err
		}
		if ctx.Err() == nil {
			last = err
		}
		words.waits(func() string {
			return fmt.Sprintf("this newcomer waits for a job that answers at %s: %v", at.text, last)
		})
		if !wait.pause(ctx) {
			return 0, fmt.Errorf("no job that takes newcomers has answered at %s: %w (%w)", at.text,
				context.Cause(ctx), last)
		}
	}
}

func askOnce(ctx context.Context, c Config, at place, take func([]byte, netip.Addr) error) (number uint64,
	err error) {
	dialing, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	conn, err := dialOnce(dialing, at)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	over, err := c.Channel.Dial(conn, c.Secret, handshake.Hello{Job: c.Job, Role: handshake.Newcomer})
	if err != nil {
		return 0, err
	}
	if c.guard(at.kind) == byUser {
		if err := user.Check(conn); err != nil {
			return 0, err
		}
	}
	_ = over.SetDeadline(time.Now().Add(handshake.Limit))
	var head [4]byte
	if _, err := io.ReadFull(over, head[:]); err != nil {
		return 0, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > MaxAnswer {
		return 0, fmt.Errorf("an answer of %d bytes, want at most %d", length, MaxAnswer)
	}
	answer := make([]byte, length)
	if _, err := io.ReadFull(over, answer); err != nil {
		return 0, err
	}
	if err := take(answer, ipOf(conn.LocalAddr())); err != nil {
		return 0, err
	}
	if _, err := over.Write([]byte{1}); err != nil {
		return 0, err
	}
	var n [8]byte
	_, err = io.ReadFull(over, n[:])
	return binary.BigEndian.Uint64(n[:]), err
}

// MaxAnswer bounds what a desk answers, in bytes.
const MaxAnswer = 4 << 20

// deskPlace is the place of a desk.
func deskPlace(c Config) (place, error) {
	at, err := parsePlace(c.Where)
	if err == nil && at.kind == directory {
		err = fmt.Errorf("rendezvous %q: newcomers find a job at a socket: want host:port or unix:@NAME", c.Where)
	}
	return at, err
}
