package rendezvous

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/user"
)

// Desk answers newcomers, at the place where the replicas of a job have met, until ctx ends. While another process
// listens there, as a replica that has been left behind, it tries again. answer is what a newcomer is told, at most
// [MaxAnswer] bytes. Of c it takes Job, Secret, Where, Channel and AnyUser. A directory is no place for a desk.
func Desk(ctx context.Context, c Config, answer func() []byte) error {
	at, err := deskPlace(c)
	if err != nil {
		return err
	}
	var l net.Listener
	for wait := newBackoff(); ; {
		if l, err = listenOnce(ctx, c.Rank, at); err == nil {
			break
		}
		if !wait.pause(ctx) {
			return err
		}
	}
	own := c.guard(at.kind) == byUser
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
			case own:
				return user.Check(conn)
			}
			return nil
		},
		Joined: func(conn net.Conn, _ handshake.Hello) {
			defer conn.Close()
			text := answer()
			_ = conn.SetDeadline(time.Now().Add(handshake.Limit))
			if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)); err == nil {
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

// Ask returns what the desk of a job that runs answers. It dials until there is one, or ctx ends.
func Ask(ctx context.Context, c Config) ([]byte, error) {
	at, err := deskPlace(c)
	if err != nil {
		return nil, err
	}
	last := errors.New("no attempt was made")
	for wait := newBackoff(); ; {
		answer, err := askOnce(ctx, c, at)
		if err == nil {
			return answer, nil
		}
		if ctx.Err() == nil {
			last = err
		}
		if !wait.pause(ctx) {
			return nil, fmt.Errorf("no job that takes newcomers has answered at %s: %w (%w)", at.text, context.Cause(ctx),
				last)
		}
	}
}

func askOnce(ctx context.Context, c Config, at place) ([]byte, error) {
	dialing, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	conn, err := dialOnce(dialing, at)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	over, err := c.Channel.Dial(conn, c.Secret, handshake.Hello{Job: c.Job, Role: handshake.Newcomer})
	if err != nil {
		return nil, err
	}
	if c.guard(at.kind) == byUser {
		if err := user.Check(conn); err != nil {
			return nil, err
		}
	}
	_ = over.SetDeadline(time.Now().Add(handshake.Limit))
	var head [4]byte
	if _, err := io.ReadFull(over, head[:]); err != nil {
		return nil, err
	}
	length := binary.BigEndian.Uint32(head[:])
	if length > MaxAnswer {
		return nil, fmt.Errorf("an answer of %d bytes, want at most %d", length, MaxAnswer)
	}
	answer := make([]byte, length)
	_, err = io.ReadFull(over, answer)
	return answer, err
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
