package faulty_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
)

// strikeAt is how many calls of each replica go well before a fault of strikes strikes.
const strikeAt = 4

// strikes are a fault of each kind.
var strikes = []faulty.Fault{
	faulty.Drop(1, strikeAt), faulty.Cut(0, 1, strikeAt), faulty.Corrupt(1, strikeAt),
	faulty.Delay(100 * time.Microsecond), faulty.FailSend(1, 0),
}

// operation is one call of a replica among members.
type operation func(ctx context.Context, call transport.Call, members []int) error

// struck has three replicas go on calling until the fault, one of strikes, ends it, and looks at how each ended. open
// returns an endpoint's operation.
func struck(t *testing.T, eps []transport.Endpoint, fault faulty.Fault,
	open func(ctx context.Context, e transport.Endpoint) (operation, error)) {
	t.Helper()
	const n, k, times = 3, strikeAt, 300
	cause := errors.New("nobody answers")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	good, errs := make([]int, n), make([]error, n)
	var reached atomic.Int32 // replicas that have done k calls
	var wg sync.WaitGroup
	for me, e := range eps {
		wg.Go(func() {
			operate, err := open(ctx, e)
			if err != nil {
				t.Error(err)
				return
			}
			for good[me] < times && errs[me] == nil {
				call := transport.Call{Group: 1, Seq: uint64(good[me] + 1)}
				if errs[me] = operate(ctx, call, []int{0, 1, 2}); errs[me] != nil {
					break
				}
				good[me]++
				if good[me] == k && reached.Add(1) == n && fault != faulty.Corrupt(1, k) {
					// The others run into the wait meanwhile. A corrupt call ends by itself.
					time.AfterFunc(5*time.Millisecond, func() { cancel(cause) })
				}
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		switch fault {
		case faulty.Drop(1, k), faulty.Cut(0, 1, k):
			if !errors.Is(err, cause) {
				t.Errorf("replica %d: %v, want the end of the context", r, err)
			}
		case faulty.Corrupt(1, k):
			var m *transport.MismatchError
			if !errors.As(err, &m) || m.Mine.Digest == m.Theirs.Digest {
				t.Errorf("replica %d: %v, want a MismatchError of two digests", r, err)
			}
		default: // nothing breaks until the context ends
			if err != nil && !errors.Is(err, cause) {
				t.Errorf("replica %d: %v", r, err)
			}
		}
		stops := r < 2 && fault == faulty.Cut(0, 1, k) || r == 1 && fault == faulty.Drop(1, k)
		if stops && good[r] != k {
			t.Errorf("replica %d has %d calls that went well, want %d", r, good[r], k)
		}
	}
	for _, e := range eps {
		wg.Go(func() { _ = e.Close() }) // a broadcast may be left
	}
	wg.Wait()
}
