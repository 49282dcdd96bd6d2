package fabric

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/netstack"
)

var _ netstack.Stack = (*Process)(nil)

// two makes two processes and a connection that the first one has dialled.
func two(t *testing.T, seed uint64, faults Faults) (a, b *Process, near, far net.Conn) {
	t.Helper()
	f := New(seed, faults)
	a = f.Process("a", "one", netip.MustParseAddr("10.0.0.1"))
	b = f.Process("b", "two", netip.MustParseAddr("10.0.0.2"))
	l, err := b.Listen(t.Context(), "tcp", "10.0.0.2:0")
	if err != nil {
		t.Fatal(err)
	}
	if near, err = a.Dial(t.Context(), "tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	l.Close()
	if _, err := a.Dial(t.Context(), "tcp", l.Addr().String()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	return a, b, near, far
}

// TestBytes: what is written arrives in order, late, in pieces, and after it the end of that direction.
func TestBytes(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			a, _, near, far := two(t, seed, Faults{Delay: 50 * time.Millisecond})
			sent := bytes.Repeat([]byte("0123456789"), 10_000)
			var all sync.WaitGroup
			for _, ends := range [][2]net.Conn{{near, far}, {far, near}} {
				all.Go(func() {
					ends[0].Write(sent)
					ends[0].(interface{ CloseWrite() error }).CloseWrite()
				})
				all.Go(func() {
					if got, err := io.ReadAll(ends[1]); err != nil || !bytes.Equal(got, sent) {
						t.Errorf("%d bytes, %v", len(got), err)
					}
				})
			}
			all.Wait()
			near.Close()
			far.Close()
			if open := a.f.Open(); open != 0 || a.used != 0 {
				t.Errorf("%d ends are open, %d descriptors are taken", open, a.used)
			}
		})
	}
}

// TestEnds: how an end of a connection finds that the other one is closed, and how deadlines end.
func TestEnds(t *testing.T) {
	buf := make([]byte, 10)
	for name, test := range map[string]func(t *testing.T, p *Process, near, far net.Conn){
		"closed": func(t *testing.T, _ *Process, near, far net.Conn) {
			near.Write([]byte("word"))
			near.Close()
			if n, err := far.Read(buf); n != 4 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			if _, err := far.Read(buf); err != io.EOF {
				t.Error(err)
			}
			if _, err := far.Write(buf); err != nil {
				t.Error(err)
			}
			if _, err := far.Write(buf); !errors.Is(err, syscall.EPIPE) {
				t.Error(err)
			}
		},
		"closed with bytes unread": func(t *testing.T, _ *Process, near, far net.Conn) {
			far.Write([]byte("word"))
			near.Close()
			if _, err := far.Read(buf); !errors.Is(err, syscall.ECONNRESET) {
				t.Error(err)
			}
		},
		"deadlines": func(t *testing.T, _ *Process, near, far net.Conn) {
			near.SetDeadline(time.Now().Add(time.Second))
			if _, err := near.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
			near.SetDeadline(time.Now().Add(time.Second))
			n, err := near.Write(make([]byte, 2*queueBytes))
			if n != queueBytes || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(n, err)
			}
			near.SetDeadline(time.Time{})
			time.AfterFunc(time.Second, func() { near.Close() })
			if _, err := near.Read(buf); !errors.Is(err, net.ErrClosed) {
				t.Error(err)
			}
		},
		"mute": func(t *testing.T, p *Process, near, far net.Conn) {
			p.Mute()
			near.Write(buf)
			near.Close()
			far.SetReadDeadline(time.Now().Add(time.Hour))
			if _, err := far.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _, near, far := two(t, 1, Faults{})
				test(t, a, near, far)
				near.Close()
				far.Close()
			})
		})
	}
}

// TestHarm: connections break and are reset at both ends, and the harm of a seed is the same each time.
func TestHarm(t *testing.T) {
	for seed := range uint64(50) {
		for want, faults := range map[error]Faults{syscall.EPIPE: {Break: 5}, syscall.ECONNRESET: {Reset: 5}} {
			var first []string
			for try := range 2 {
				synctest.Test(t, func(t *testing.T) {
					a, _, near, far := two(t, seed, faults)
					var err error
					for err == nil {
						_, err = near.Write(make([]byte, 100))
					}
					if !errors.Is(err, want) {
						t.Errorf("%v, want %v", err, want)
					}
					_, err = io.ReadAll(far)
					if want == syscall.EPIPE && err != nil || want != syscall.EPIPE && !errors.Is(err, want) {
						t.Errorf("the other end: %v", err)
					}
					if _, err = far.Write(make([]byte, 1)); !errors.Is(err, want) {
						t.Errorf("the other end writes: %v", err)
					}
					near.Close()
					far.Close()
					harm := a.f.Harm()
					if try == 0 {
						first = harm
					} else if strings.Join(harm, "\n") != strings.Join(first, "\n") || len(harm) != 1 {
						t.Errorf("%q, and before %q", harm, first)
					}
				})
			}
		}
	}
}

// TestDescriptors: a process without descriptors accepts, dials and spares nothing, and does again when it has some.
func TestDescriptors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(1, Faults{})
		p := f.Process("p", "host", netip.MustParseAddr("127.0.0.1"))
		l, err := p.Listen(t.Context(), "unix", "@p")
		if err != nil {
			t.Fatal(err)
		}
		near, err := f.Process("q", "host", netip.MustParseAddr("127.0.0.1")).Dial(t.Context(), "unix", "@p")
		if err != nil {
			t.Fatal(err)
		}
		p.Limit(1)
		spare, err := p.Spare()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Spare(); !errors.Is(err, syscall.EMFILE) {
			t.Error(err)
		}
		var passing interface{ Temporary() bool }
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) || !errors.As(err, &passing) || !passing.Temporary() {
			t.Error(err)
		}
		if _, err := p.Dial(t.Context(), "unix", "@p"); !errors.Is(err, syscall.EMFILE) {
			t.Error(err)
		}
		spare.Close()
		far, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		p.Limit(-1)
		p.FailAccept(1)
		if _, err := l.Accept(); !errors.Is(err, syscall.EMFILE) {
			t.Error(err)
		}
		near.Close()
		far.Close()
		l.Close()
	})
}

// TestDialWaits: a dial of a process that is cut off ends with its context only.
func TestDialWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(1, Faults{})
		p := f.Process("p", "host", netip.MustParseAddr("127.0.0.1"))
		l, err := p.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p.Cut()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		began := time.Now()
		_, err = p.Dial(ctx, "tcp", l.Addr().String())
		if timeout, ok := errors.AsType[net.Error](err); !ok || !timeout.Timeout() || time.Since(began) != time.Minute {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
