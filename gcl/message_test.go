package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport/tcp"
)

// onAll runs a test on replicas of this process, and on those that sockets connect. opts is to be called for each Run.
func onAll(t *testing.T, test func(t *testing.T, opts func(n int) []gcl.CommOption)) {
	t.Run("transport=inproc", func(t *testing.T) {
		leaktest.Check(t)
		test(t, func(int) []gcl.CommOption { return nil })
	})
	onSockets(t, func(t *testing.T, network tcp.Network) {
		test(t, func(n int) []gcl.CommOption { return []gcl.CommOption{sockets(t, network, n)} })
	})
}

// messageOf is a message that no other rank sends, of elements that differ from place to place.
func messageOf[T int32 | float64 | uint8](from, to, number, length int) []T {
	out := make([]T, length)
	for i := range out {
		out[i] = T((from*31+to*17+number*7+i)%251 + 1)
	}
	return out
}

// messageLengths are about the bytes that travel with a head, for elements of one to eight bytes, and beyond a segment.
var messageLengths = []int{0, 1, 10, 11, 20, 21, 22, 83, 84, 85, 1000, 300_007}

// TestRing passes something on along a ring, with lengths that differ from rank to rank, by several types.
func TestRing(t *testing.T) {
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		for n := 1; n <= 5; n++ {
			if n == 4 && !*full {
				continue
			}
			err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
				return errors.Join(ring[int32](ctx, c), ring[float64](ctx, c), ring[uint8](ctx, c))
			}, opts(n)...)
			if err != nil {
				t.Errorf("n=%d: %v", n, err)
			}
		}
	})
}

func ring[T int32 | float64 | uint8](ctx context.Context, c *gcl.Comm) error {
	r, n := c.Rank(), c.Size()
	right, left := (r+1)%n, (r+n-1)%n
	for number, base := range messageLengths {
		length := func(from int) int { return base + min(base, 1)*from }
		data, dst := messageOf[T](r, right, number, length(r)), make([]T, length(left))
		if err := gcl.SendRecv(ctx, c, data, right, dst, left); err != nil {
			return err
		}
		if !slices.Equal(dst, messageOf[T](left, r, number, length(left))) {
			return fmt.Errorf("message %d of %d from rank %d has other elements", number, len(dst), left)
		}
		if !slices.Equal(data, messageOf[T](r, right, number, length(r))) {
			return fmt.Errorf("message %d of %d: what is sent has changed", number, len(data))
		}
	}
	return nil
}

// TestExchange has two ranks send to each other at once, other lengths each way.
func TestExchange(t *testing.T) {
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			peer := 1 - c.Rank()
			for number, length := range messageLengths {
				mine, theirs := length, messageLengths[len(messageLengths)-1-number]
				if c.Rank() == 1 {
					mine, theirs = theirs, mine
				}
				dst := make([]int32, theirs)
				data := messageOf[int32](c.Rank(), peer, number, mine)
				if err := gcl.SendRecv(ctx, c, data, peer, dst, peer); err != nil {
					return err
				}
				if !slices.Equal(dst, messageOf[int32](peer, c.Rank(), number, theirs)) {
					return fmt.Errorf("message %d of %d has other elements", number, theirs)
				}
			}
			return nil
		}, opts(2)...); err != nil {
			t.Error(err)
		}
	})
}

// TestRandomMessages: messages, shifts and collectives, on the group of all and on smaller ones, each replica its part
// in one order that none of them knows as a whole.
func TestRandomMessages(t *testing.T) {
	seeds := 16
	switch {
	case *full:
		seeds = 40
	case underRace:
		seeds = 5
	case testing.Short():
		seeds = 8
	}
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		for seed := range seeds {
			rng := rand.New(rand.NewPCG(9, uint64(seed)))
			n := 2 + rng.IntN(4)
			type event struct{ kind, from, to, length int }
			events := make([]event, 60)
			for i := range events {
				e := event{rng.IntN(5), rng.IntN(n), rng.IntN(n), messageLengths[rng.IntN(len(messageLengths))]}
				if e.kind != 3 && e.from == e.to {
					e.to = (e.to + 1) % n
				}
				events[i] = e
			}
			err := gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
				r := c.Rank()
				halves, err := c.Split(ctx, r%2)
				if err != nil {
					return err
				}
				for i, e := range events {
					want := messageOf[int32](e.from, e.to, i, e.length)
					dst := make([]int32, e.length)
					switch {
					case e.kind == 0: // a collective of all
						sum, err := gcl.AllReduce(ctx, c, []int64{int64(r)}, gcl.Add)
						if err != nil || sum[0] != int64(n*(n-1)/2) {
							return fmt.Errorf("event %d: %v, %w", i, sum, err)
						}
					case e.kind == 1: // one of a part
						if _, err := gcl.AllGather(ctx, halves, make([]int32, e.length%100)); err != nil {
							return err
						}
					case e.kind == 3: // a shift by from
						to, from := (r+e.from)%n, (r+n-e.from)%n
						data := messageOf[int32](r, to, i, e.length)
						if err := gcl.SendRecv(ctx, c, data, to, dst, from); err != nil {
							return err
						}
						if !slices.Equal(dst, messageOf[int32](from, r, i, e.length)) {
							return fmt.Errorf("event %d: other elements", i)
						}
					case e.from == r:
						if err := gcl.Send(ctx, c, want, e.to); err != nil {
							return err
						}
					case e.to == r:
						if err := gcl.Recv(ctx, c, dst, e.from); err != nil {
							return err
						}
						if !slices.Equal(dst, want) {
							return fmt.Errorf("event %d: other elements", i)
						}
					}
				}
				return nil
			}, opts(n)...)
			if err != nil {
				t.Fatalf("seed %d, n=%d: %v", seed, n, err)
			}
		}
	})
}

// TestMessageMismatch: what two ranks do not agree on is an error on both, at once or in the next call, that names both
// sides.
func TestMessageMismatch(t *testing.T) {
	send := func(n, to int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, make([]float32, n), to) }
	}
	recv := func(n, from int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, make([]float32, n), from) }
	}
	both := func(out, in, peer int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.SendRecv(ctx, c, make([]float32, out), peer, make([]float32, in), peer)
		}
	}
	var none context.Context
	for _, tt := range []struct {
		name string
		on   [2]func(ctx context.Context, c *gcl.Comm) error
		want []string // one of them, which depends on how much the transport takes
	}{
		{"lengths", [2]func(context.Context, *gcl.Comm) error{send(4, 1), recv(5, 0)},
			[]string{"message #1 from replica 0 to replica 1: lengths differ: replica 0 gives 4 elements, replica 1 gives 5 elements (float32)"}},
		{"large lengths", [2]func(context.Context, *gcl.Comm) error{send(1<<20, 1), recv(1<<19, 0)},
			[]string{"lengths differ: replica 0 gives 1048576 elements, replica 1 gives 524288 elements (float32)"}},
		{"nothing and something", [2]func(context.Context, *gcl.Comm) error{send(0, 1), recv(5, 0)},
			[]string{"lengths differ: replica 0 gives 0 elements, replica 1 gives 5 elements"}},
		{"dtypes", [2]func(context.Context, *gcl.Comm) error{send(4, 1), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.Recv(ctx, c, make([]int32, 4), 0)
		}}, []string{"dtypes differ: replica 0 gives float32, replica 1 gives int32"}},
		{"of an exchange", [2]func(context.Context, *gcl.Comm) error{both(4, 3, 1), both(4, 4, 0)},
			[]string{"message #1 from replica 1 to replica 0: lengths differ: replica 0 gives 3 elements, replica 1 gives 4 elements"}},
		{"both send much", [2]func(context.Context, *gcl.Comm) error{send(1<<22, 1), send(1<<22, 0)},
			[]string{"messages wait for each other in a circle: want SendRecv"}},
		{"both receive", [2]func(context.Context, *gcl.Comm) error{recv(4, 1), recv(4, 0)},
			[]string{"messages wait for each other in a circle: want SendRecv"}},
		{"a collective", [2]func(context.Context, *gcl.Comm) error{send(4, 1), barrier},
			[]string{"kinds of calls differ: replica 0 is in message, replica 1 is in barrier #1"}},
		{"a collective instead", [2]func(context.Context, *gcl.Comm) error{barrier, recv(4, 0)},
			[]string{"kinds of calls differ: replica 0 is in barrier #1, replica 1 is in message"}},
		{"a number", [2]func(context.Context, *gcl.Comm) error{func(ctx context.Context, c *gcl.Comm) error {
			if err := gcl.Send[float32](none, c, nil, 1); err == nil {
				return errors.New("no error without a context")
			}
			return gcl.Send(ctx, c, make([]float32, 4), 1)
		}, recv(4, 0)}, []string{"places in the order of calls differ: replica 0 is in call 2, replica 1 is in call 1"}},
		{"another group", [2]func(context.Context, *gcl.Comm) error{send(4, 1), func(ctx context.Context, c *gcl.Comm) error {
			part, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
			if err != nil {
				return err
			}
			return gcl.Recv(ctx, part, make([]float32, 4), 0)
		}}, []string{"groups differ: replica 0 is in {0, 1, 2, 3}, replica 1 is in {0, 1}"}},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
				n := 4
				var errs [4]error
				_ = gcl.Run(t.Context(), n, func(ctx context.Context, c *gcl.Comm) error {
					if c.Rank() >= 2 { // the others come to these, too
						return errors.Join(c.Barrier(ctx), c.Barrier(ctx), c.Barrier(ctx))
					}
					err := tt.on[c.Rank()](ctx, c)
					for i := 0; i < 3 && err == nil; i++ { // the first may end before the other finds it
						err = c.Barrier(ctx)
					}
					errs[c.Rank()] = err
					return err
				}, opts(n)...)
				for r, err := range errs[:2] {
					if !errors.Is(err, gcl.ErrMismatch) && !errors.Is(err, gcl.ErrAborted) {
						t.Errorf("replica %d: %v, want ErrMismatch", r, err)
						continue
					}
					if !slices.ContainsFunc(tt.want, func(w string) bool { return strings.Contains(err.Error(), w) }) {
						t.Errorf("replica %d: %v\nwant %q", r, err, tt.want)
					}
				}
			})
		})
	}
}

func barrier(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }

// TestBothSendLittle: two ranks that both send first succeed if the transport has room, else they get an error.
func TestBothSendLittle(t *testing.T) {
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			peer, dst := 1-c.Rank(), make([]int32, 3)
			if err := gcl.Send(ctx, c, messageOf[int32](c.Rank(), peer, 0, 3), peer); err != nil {
				return err
			}
			if err := gcl.Recv(ctx, c, dst, peer); err != nil {
				return err
			}
			if !slices.Equal(dst, messageOf[int32](peer, c.Rank(), 0, 3)) {
				return errors.New("other elements")
			}
			return nil
		}, opts(2)...)
		if err != nil && !errors.Is(err, gcl.ErrMismatch) {
			t.Error(err)
		}
	})
}

// TestMessageErrors: bad arguments are refused, and the Comm stays usable.
func TestMessageErrors(t *testing.T) {
	both := make([]int32, 8)
	for _, tt := range []struct {
		call func(ctx context.Context, c *gcl.Comm) error
		want string
	}{
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, both, 2) }, "gcl: send: replica 0: send to rank 2, which is not a rank of the group, 0 to 1"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, both, -1) }, "send to rank -1, which is not a rank"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, both, -1) }, "gcl: receive: replica 0: receive from rank -1, which is not a rank"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.SendRecv(ctx, c, both[:4], 1, both[4:], 7) }, "receive from rank 7, which is not a rank"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, both, 0) }, "rank 0 is itself the peer: want SendRecv with it as both"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, both, 0) }, "rank 0 is itself the peer: want SendRecv with it as both"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.SendRecv(ctx, c, both[:4], 0, both[4:], 1) }, "send to rank 0 and receive from rank 1 by rank 0: want itself as both, or as neither"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.SendRecv(ctx, c, both[:4], 0, both[4:6], 0) }, "rank 0 sends 4 elements to itself and receives 2"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.SendRecv(ctx, c, both[:4], 1, both[3:], 1) }, "the slices sent and received overlap; they must lie apart"},
		{func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, nil, both, 0) }, "gcl: nil Comm"},
	} {
		if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 0 {
				if err := tt.call(ctx, c); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("error %v, want one with %q", err, tt.want)
				}
			}
			return c.Barrier(ctx)
		}); err != nil {
			t.Errorf("%s: then %v", tt.want, err)
		}
	}
	if err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.SendRecv(ctx, c, both[:4], 0, both[4:], 0)
	}); err != nil {
		t.Error(err)
	}
}

// TestMessageEnds: a message that does not come ends with the context, with the peer's death or with its leaving, and
// the error says who did not come.
func TestMessageEnds(t *testing.T) {
	t.Run("deadline", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
				if c.Rank() == 1 {
					<-ctx.Done()
					return nil
				}
				if c.Rank() == 2 {
					return nil
				}
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				return gcl.Recv(ctx, c, make([]float32, 4), 1)
			})
			for _, words := range []string{"receive #1 from replica 1", "waiting for replica 1, which"} {
				if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), words) ||
					strings.Contains(err.Error(), "replica 2") {
					t.Errorf("error %v, want a deadline's with %q, and nothing of replica 2", err, words)
				}
			}
		})
	})
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		for name, f := range map[string]func(ctx context.Context, c *gcl.Comm) error{
			"leaves": func(context.Context, *gcl.Comm) error { return nil },
			"fails":  func(context.Context, *gcl.Comm) error { return errors.New("no such file") },
		} {
			err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
				if c.Rank() == 1 {
					return f(ctx, c)
				}
				return gcl.Recv(ctx, c, make([]float32, 4), 1)
			}, opts(2)...)
			peer := (*gcl.PeerError)(nil)
			if name == "leaves" && !(errors.As(err, &peer) && peer.Replica == 1) ||
				name == "fails" && (err == nil || !strings.Contains(err.Error(), "no such file")) {
				t.Errorf("a peer that %s: %v", name, err)
			}
		}
	})
}

// TestWhoIsMissing: the error of a call that times out names whom it waits for, whatever messages went before: the
// numbers of messages are none of collectives, nor of other messages.
func TestWhoIsMissing(t *testing.T) {
	x := func(n int) []int32 { return make([]int32, n) }
	type body = func(ctx context.Context, c *gcl.Comm) error
	for _, tt := range []struct {
		name string
		on   [3]body // nil: it stays away
		want []string
		not  string
	}{
		{"a collective after a message", [3]body{
			func(ctx context.Context, c *gcl.Comm) error {
				return errors.Join(gcl.Recv(ctx, c, x(1), 1), gcl.AllReduceInPlace(ctx, c, x(5000), gcl.Add))
			},
			func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, x(1), 0) },
			func(ctx context.Context, c *gcl.Comm) error { return gcl.AllReduceInPlace(ctx, c, x(5000), gcl.Add) },
		}, []string{"waiting for replica 1, which has made no call for", "since send #1 to replica 0"}, "all members"},
		{"a message after one of another pair", [3]body{
			func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, x(1), 1) },
			func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, x(1), 2) },
			func(ctx context.Context, c *gcl.Comm) error { return gcl.Send(ctx, c, x(1), 1) },
		}, []string{"receive #1 from replica 1", "waiting for replica 1, which has made no call for"}, "for replica 2"},
		{"a message after one the other way", [3]body{
			func(ctx context.Context, c *gcl.Comm) error {
				return errors.Join(gcl.Send(ctx, c, x(1), 1), gcl.Recv(ctx, c, x(1), 1))
			},
			func(ctx context.Context, c *gcl.Comm) error { return gcl.Recv(ctx, c, x(1), 0) },
			nil,
		}, []string{"receive #1 from replica 1", "waiting for replica 1, which has made no call for"}, "all members"},
		{"both ways, the one sent to is missing", [3]body{
			func(ctx context.Context, c *gcl.Comm) error { return gcl.SendRecv(ctx, c, x(1<<22), 1, x(1), 2) },
			nil,
			func(ctx context.Context, c *gcl.Comm) error {
				if err := gcl.Send(ctx, c, x(1), 0); err != nil {
					return err
				}
				return gcl.Recv(ctx, c, x(1), 0)
			},
		}, []string{"waiting for replica 1, which has made no call"}, "waiting for replica 2"},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "_"), func(t *testing.T) {
			onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
				var own error
				told := make(chan bool) // nobody leaves before rank 0 has its error
				_ = gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
					if err := c.Barrier(ctx); err != nil {
						return err
					}
					short := ctx
					if c.Rank() == 0 {
						var cancel context.CancelFunc
						short, cancel = context.WithTimeout(ctx, 300*time.Millisecond)
						defer cancel()
					}
					if tt.on[c.Rank()] != nil {
						if err := tt.on[c.Rank()](short, c); c.Rank() == 0 {
							own = err
							close(told)
						}
					}
					<-told
					return nil
				}, opts(3)...)
				for _, want := range tt.want {
					if own == nil || !strings.Contains(own.Error(), want) || strings.Contains(own.Error(), tt.not) {
						t.Errorf("error %v\nwant %q, and not %q", own, want, tt.not)
					}
				}
			})
		})
	}
}

// TestMessagesOfOtherRings: a group counts its messages once, by whatever options its Comms go.
func TestMessagesOfOtherRings(t *testing.T) {
	if err := gcl.Run(t.Context(), 4, func(ctx context.Context, c *gcl.Comm) error {
		other, err := c.With(gcl.Options{Topology: topology.PeripheralRing})
		if err != nil {
			return err
		}
		x := make([]int32, 1)
		switch c.Rank() {
		case 0:
			err = errors.Join(gcl.Send(ctx, c, x, 1), gcl.Send(ctx, other, x, 1), gcl.Send(ctx, c, x, 1))
		case 1:
			err = errors.Join(gcl.Recv(ctx, other, x, 0), gcl.Recv(ctx, other, x, 0), gcl.Recv(ctx, c, x, 0))
		}
		if err != nil {
			return err
		}
		return c.Barrier(ctx)
	}); err != nil {
		t.Error(err)
	}
}

// TestCloseAfterAMessage: a message after a broadcast says nothing of whether all had that.
func TestCloseAfterAMessage(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		comms := apartOn(t, network, 3)
		var done, left sync.WaitGroup
		errs := make([]error, 3)
		done.Add(2)
		for r, c := range comms {
			left.Go(func() {
				if r == 2 {
					done.Wait()
					errs[r] = c.Close()
					return
				}
				err := gcl.BroadcastInPlace(t.Context(), c, make([]int32, 5000), 0)
				if r == 0 && err == nil {
					err = gcl.Send(t.Context(), c, make([]int32, 1), 1)
				} else if err == nil {
					err = gcl.Recv(t.Context(), c, make([]int32, 1), 0)
				}
				done.Done()
				errs[r] = errors.Join(err, c.Close())
			})
		}
		left.Wait()
		for r, err := range errs[:2] {
			if err == nil || !strings.Contains(err.Error(), "replica 2") {
				t.Errorf("replica %d: %v, want an error of replica 2", r, err)
			}
		}
	})
}

// TestDumpOfMessages: what Dump says of a message is of its two replicas, and names in errors are those of Named.
func TestDumpOfMessages(t *testing.T) {
	waits := make(chan bool)
	var dump string
	err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		switch c.Rank() {
		case 0:
			return gcl.Recv(ctx, c.Named("edge"), make([]int32, 4), 1)
		case 1:
			for dump = c.Dump(); !strings.Contains(dump, "replica 0 is in receive #1"); dump = c.Dump() {
				runtime.Gosched()
			}
			close(waits)
			return gcl.Send(ctx, c.Named("halo"), make([]int32, 5), 0)
		}
		<-waits
		return nil
	})
	if !strings.Contains(dump, `replica 0 is in receive #1 from replica 1 "edge" for `) ||
		!strings.Contains(dump, "waiting for replica 1, which has made no call") ||
		strings.Contains(dump, "for replica 2") {
		t.Errorf("dump\n%s", dump)
	}
	for _, name := range []string{`"edge"`, `"halo"`} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("no name %s in %v", name, err)
		}
	}
}

// TestMessagesInStart: messages of a function given to Start, and its Work.
func TestMessagesInStart(t *testing.T) {
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		if err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
			r, n := c.Rank(), c.Size()
			right, left := (r+1)%n, (r+n-1)%n
			dst, works := make([][]int32, 3), make([]*gcl.Work, 3)
			for i := range works {
				dst[i] = make([]int32, 2000)
				works[i] = c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
					return gcl.SendRecv(ctx, c, messageOf[int32](r, right, i, 2000), right, dst[i], left)
				})
			}
			<-works[2].Done()
			if err := gcl.WaitAll(works...); err != nil {
				return err
			}
			for i := range works {
				if !slices.Equal(dst[i], messageOf[int32](left, r, i, 2000)) {
					return errors.New("other elements")
				}
			}
			return nil
		}, opts(3)...); err != nil {
			t.Error(err)
		}
	})
}

// TestWaitAll returns the first error in the order of the works, and waits for all.
func TestWaitAll(t *testing.T) {
	if err := gcl.WaitAll(); err != nil {
		t.Error(err)
	}
	if gcl.WaitAll(nil) == nil || new(gcl.Work).Done() != nil || (*gcl.Work)(nil).Done() != nil {
		t.Error("a Work that Start has not returned")
	}
	if err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		var works []*gcl.Work
		for i := range 3 {
			works = append(works, c.Start(ctx, func(context.Context, *gcl.Comm) error {
				if i == 0 {
					return nil
				}
				return fmt.Errorf("work %d", i)
			}))
		}
		if err := gcl.WaitAll(works...); err == nil || !strings.Contains(err.Error(), "work 1") {
			t.Errorf("error %v, want that of work 1", err)
		}
		select {
		case <-works[2].Done():
		default:
			t.Error("a work is not waited for")
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}

// TestMessageTrace: a Trace is told of messages, with the peers.
func TestMessageTrace(t *testing.T) {
	var mu sync.Mutex
	var told []string
	trace := &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf("%v by %d to %d from %d, message %v, %d bytes", c, c.Replica, c.To, c.From,
				c.Message, c.Bytes))
		},
	}
	if err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		c = c.Named("halo")
		switch c.Rank() {
		case 0:
			return gcl.Send(ctx, c, make([]int32, 4), 2)
		case 2:
			if err := gcl.Recv(ctx, c, make([]int32, 4), 0); err != nil {
				return err
			}
		}
		if c.Rank() == 0 {
			return nil
		}
		peer := 3 - c.Rank()
		return gcl.SendRecv(ctx, c, make([]int32, 1), peer, make([]int32, 1), peer)
	}, gcl.WithOptions(gcl.Options{Trace: trace})); err != nil {
		t.Fatal(err)
	}
	slices.Sort(told)
	want := []string{
		`receive #1 from replica 0 "halo" by 2 to -1 from 0, message true, 16 bytes`,
		`send #1 to replica 2 "halo" by 0 to 2 from -1, message true, 16 bytes`,
		`send and receive #1 from replica 1 to replica 2 "halo" by 2 to 1 from 1, message true, 4 bytes`,
		`send and receive #1 from replica 2 to replica 1 "halo" by 1 to 2 from 2, message true, 4 bytes`,
	}
	slices.Sort(want)
	if !slices.Equal(told, want) {
		t.Errorf("told\n%s\nwant\n%s", strings.Join(told, "\n"), strings.Join(want, "\n"))
	}
}

// TestMessageAllocations: none in steady state, on any transport.
func TestMessageAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	onAll(t, func(t *testing.T, opts func(n int) []gcl.CommOption) {
		for _, length := range []int{1, 5000} {
			var before, after runtime.MemStats
			const calls = 2000
			if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
				peer, data, dst := 1-c.Rank(), make([]float32, length), make([]float32, length)
				turns := func(n int) error {
					for range n {
						if err := gcl.SendRecv(ctx, c, data, peer, dst, peer); err != nil {
							return err
						}
						var err error
						if c.Rank() == 0 {
							err = gcl.Send(ctx, c, data, 1)
						} else {
							err = gcl.Recv(ctx, c, dst, 0)
						}
						if err != nil {
							return err
						}
					}
					return c.Barrier(ctx)
				}
				if err := turns(100); err != nil {
					return err
				}
				if c.Rank() == 0 {
					runtime.ReadMemStats(&before)
				}
				if err := turns(calls); err != nil {
					return err
				}
				if c.Rank() == 0 {
					runtime.ReadMemStats(&after)
				}
				return nil
			}, opts(2)...); err != nil {
				t.Fatal(err)
			}
			if n := after.Mallocs - before.Mallocs; n > calls/10 { // of the runtime's own there are a few
				t.Errorf("length %d: %d allocations in %d calls", length, n, 4*calls)
			}
		}
	})
}

// TestMessagesOfHalves: 16-bit floats and bools travel as they are.
func TestMessagesOfHalves(t *testing.T) {
	if err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			return errors.Join(gcl.Send(ctx, c, []tensor.Float16{0x3c01, 0x7e01}, 1),
				gcl.Send(ctx, c, []bool{true, false}, 1))
		}
		halves, bools := make([]tensor.Float16, 2), make([]bool, 2)
		err := errors.Join(gcl.Recv(ctx, c, halves, 0), gcl.Recv(ctx, c, bools, 0))
		if !slices.Equal(halves, []tensor.Float16{0x3c01, 0x7e01}) || !slices.Equal(bools, []bool{true, false}) {
			t.Errorf("received %v, %v", halves, bools)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}
