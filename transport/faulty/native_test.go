package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// engine is an endpoint whose collectives move nothing: everyone sends everyone an empty message.
type engine struct{ transport.Endpoint }

func (e engine) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := e.Endpoint.Dup(ctx)
	return engine{d}, err
}

func (engine) Agreement(n int) int { return n + 1 }

var errNoProduct = errors.New("no product")

func (engine) Accepts(c transport.NativeCollective) error {
	if c.Operator == transport.NativeMul {
		return errNoProduct
	}
	return nil
}

func (e engine) Collective(ctx context.Context, call transport.Call, members []int, c transport.NativeCollective,
	dst, src []byte) error {
	if err := c.Check(e.Rank(), members, dst, src); err != nil {
		return err
	}
	var batch []transport.Transfer
	for _, m := range members {
		if m != e.Rank() {
			batch = append(batch, transport.Transfer{Peer: m}, transport.Transfer{Peer: m, Kind: transport.Recv})
		}
	}
	return e.Endpoint.Exchange(ctx, call, batch)
}

func wrapNative(t testing.TB, n int, seed uint64, faults ...faulty.Fault) []transport.Endpoint {
	t.Helper()
	eps, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range eps {
		eps[i] = engine{e}
	}
	if eps, err = faulty.WrapNative(eps, seed, faults...); err != nil {
		t.Fatal(err)
	}
	return eps
}

// collective is a call of an engine of some members.
func collective(ctx context.Context, e transport.Endpoint, call transport.Call, members []int) error {
	return e.(transport.Native).Collective(ctx, call, members,
		transport.NativeCollective{Collective: schedule.AllGather, DType: tensor.U8, Size: len(members)}, nil, nil)
}

// TestNativeFaults has each fault strike collectives on a Dup.
func TestNativeFaults(t *testing.T) {
	for _, fault := range strikes {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			struck(t, wrapNative(t, 3, 5, fault), fault,
				func(ctx context.Context, e transport.Endpoint) (operation, error) {
					d, err := e.Dup(ctx)
					return func(ctx context.Context, call transport.Call, members []int) error {
						return collective(ctx, d, call, members)
					}, err
				})
		})
	}
}

// TestNativeCutBetweenTwo: a group without one of the two replicas that are cut off goes on.
func TestNativeCutBetweenTwo(t *testing.T) {
	eps := wrapNative(t, 3, 0, faulty.Cut(0, 1, 0))
	var wg sync.WaitGroup
	for _, r := range []int{0, 2} {
		wg.Go(func() {
			for seq := range 10 {
				if err := collective(context.Background(), eps[r], transport.Call{Group: 1, Seq: uint64(seq)},
					[]int{0, 2}); err != nil {
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

// TestNativeAnswers: the answers of the engine inside are handed on, and bad arguments end nothing.
func TestNativeAnswers(t *testing.T) {
	eps := wrapNative(t, 2, 0)
	e := eps[0].(transport.Native)
	if have := e.Agreement(7); have != 8 {
		t.Errorf("Agreement: %d, want 8", have)
	}
	for op, want := range map[transport.NativeOperator]error{
		transport.NativeAdd: nil, transport.NativeMul: errNoProduct,
	} {
		if err := e.Accepts(transport.NativeCollective{Operator: op}); err != want {
			t.Errorf("Accepts %v: %v, want %v", op, err, want)
		}
	}
	var argument *transport.ArgumentError
	if err := collective(t.Context(), e, transport.Call{}, []int{1}); !errors.As(err, &argument) || e.Err() != nil {
		t.Errorf("bad arguments: %v, and then %v", err, e.Err())
	}
	for _, e := range slices.Backward(eps) {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestWrapNativeRefuses(t *testing.T) {
	eps := wrap(t, 2, 0) // which have no engine
	if _, err := faulty.WrapNative(eps, 0); err == nil {
		t.Error("endpoints without collectives of their own are accepted")
	}
	if _, err := faulty.WrapNative(wrapNative(t, 2, 0), 0, faulty.Drop(2, 0)); err == nil {
		t.Error("a fault on a replica that there is not is accepted")
	}
	if e, err := wrapNative(t, 1, 0)[0].Dup(t.Context()); err != nil {
		t.Error(err)
	} else if _, ok := e.(transport.Native); !ok {
		t.Error("a Dup has no collectives of its own")
	}
}
