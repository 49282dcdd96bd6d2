package faulty_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

// near is what endpoints from WrapMemory are.
type near interface {
	transport.PeerMemory
	transport.Boards
}

func wrapMemory(t testing.TB, n int, seed uint64, faults ...faulty.Fault) []transport.Endpoint {
	t.Helper()
	eps, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	if eps, err = faulty.WrapMemory(eps, seed, faults...); err != nil {
		t.Fatal(err)
	}
	return eps
}

// TestMemoryConformance: without faults calls on peer memory are handed on.
func TestMemoryConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("inproc runs the suite without a wrapper")
	}
	features := []transporttest.Option{transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses}
	if !*full {
		features = append(features, transporttest.Brief)
	}
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		return wrapMemory(t, n, 1)
	}, features...)
}

// nothing is a Worker that does nothing.
type nothing struct{}

func (nothing) Piece([]transport.Memory, int, int) {}

// operations are the calls of peer memory and boards.
var operations = map[string]func(ctx context.Context, e near, call transport.Call, members []int) error{
	"Share": func(ctx context.Context, e near, call transport.Call, members []int) error {
		return e.Share(ctx, call, members, transport.Memory{}, []int{3}, nothing{})
	},
	"rounds": func(ctx context.Context, e near, call transport.Call, members []int) error {
		return e.Share(ctx, call, members, transport.Memory{}, []int{1, 2}, nothing{})
	},
	"Gather": func(ctx context.Context, e near, call transport.Call, members []int) error {
		_, _, err := e.Gather(ctx, call, members, []byte{1}, 1, nil)
		return err
	},
	"Broadcast": func(ctx context.Context, e near, call transport.Call, members []int) error {
		return e.Broadcast(ctx, call, members, 0, []byte{1})
	},
}

// TestMemoryFaults has each fault strike each call.
func TestMemoryFaults(t *testing.T) {
	for what, operate := range operations {
		for _, fault := range strikes {
			t.Run(fmt.Sprintf("%s/%v", what, fault), func(t *testing.T) {
				struck(t, wrapMemory(t, 3, 5, fault), fault,
					func(_ context.Context, e transport.Endpoint) (operation, error) {
						return func(ctx context.Context, call transport.Call, members []int) error {
							return operate(ctx, e.(near), call, members)
						}, nil
					})
			})
		}
	}
}

// TestHide: one member's buffers cannot be laid open, once, and all members hear of it; nothing is touched, and the
// next Share goes well.
func TestHide(t *testing.T) {
	const n, k = 3, 2
	eps := wrapMemory(t, n, 0, faulty.Hide(1, k))
	var wg sync.WaitGroup
	for _, e := range eps {
		wg.Go(func() {
			for i := range 5 {
				err := e.(near).Share(context.Background(), transport.Call{Group: 1, Seq: uint64(i)}, []int{0, 1, 2},
					transport.Memory{}, [][]int{{n}, {n, n}}[i%2], untouched{t, i == k})
				if i == k && err != transport.ErrNotShared || i != k && err != nil {
					t.Errorf("replica %d, Share %d: %v", e.Rank(), i, err)
				}
			}
			if err := e.Err(); err != nil {
				t.Errorf("replica %d: %v", e.Rank(), err)
			}
		})
	}
	wg.Wait()
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// untouched is a Worker that may be called or not.
type untouched struct {
	t    *testing.T
	must bool
}

func (u untouched) Piece([]transport.Memory, int, int) {
	if u.must {
		u.t.Error("a piece of a Share whose buffers are hidden")
	}
}

// A group without one of the two replicas that are cut off goes on.
func TestMemoryCutBetweenTwo(t *testing.T) {
	eps := wrapMemory(t, 3, 0, faulty.Cut(0, 1, 0))
	var wg sync.WaitGroup
	for _, r := range []int{0, 2} {
		wg.Go(func() {
			for seq := range 10 {
				if err := operations["rounds"](context.Background(), eps[r].(near),
					transport.Call{Group: 1, Seq: uint64(seq)}, []int{0, 2}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, e := range eps {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrapMemoryRefuses(t *testing.T) {
	eps := wrap(t, 2, 0) // which offer no peer memory
	if _, err := faulty.WrapMemory(eps, 0); err == nil {
		t.Error("endpoints without peer memory are accepted")
	}
	if _, err := faulty.WrapMemory(wrapMemory(t, 2, 0), 0, faulty.Drop(2, 0)); err == nil {
		t.Error("a fault on a replica that there is not is accepted")
	}
}
