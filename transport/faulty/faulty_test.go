package faulty_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/transporttest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func wrap(t testing.TB, n int, seed uint64, faults ...faulty.Fault) []transport.Endpoint {
	t.Helper()
	eps, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	if eps, err = faulty.Wrap(eps, seed, faults...); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, e := range eps {
			if err := e.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return eps
}

var full = flag.Bool("full", false, "repeat as often as inproc's TestConformance")

// TestConformance runs the suite briefly: without faults an endpoint hands everything on to inproc's, which has its
// own.
func TestConformance(t *testing.T) {
	features := []transporttest.Option{transporttest.NoAlloc, transporttest.NamesDeadlocks, transporttest.KeepsCauses}
	if !*full {
		features = append(features, transporttest.Brief)
	}
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint { return wrap(t, n, 1) }, features...)
}

// rounds runs so many rounds of a ring on every replica, unless one fails, and returns for each the number of rounds
// that went well, and the error. It calls progress for each of them.
func rounds(ctx context.Context, eps []transport.Endpoint, times int, progress ...func(rank, good int)) ([]int,
	[]error) {
	n := len(eps)
	good, errs := make([]int, n), make([]error, n)
	var wg sync.WaitGroup
	for me, e := range eps {
		wg.Go(func() {
			in, out := make([]byte, 100), make([]byte, 100)
			for good[me] < times && errs[me] == nil {
				errs[me] = e.Exchange(ctx, transport.Call{Round: uint32(good[me])}, []transport.Transfer{
					{Peer: (me + 1) % n, Kind: transport.Send, Buf: out},
					{Peer: (me + n - 1) % n, Kind: transport.Recv, Buf: in},
				})
				if errs[me] == nil {
					good[me]++
					for _, f := range progress {
						f(me, good[me])
					}
				}
			}
		})
	}
	wg.Wait()
	return good, errs
}

func TestDelays(t *testing.T) {
	eps := wrap(t, 4, 7, faulty.Delay(time.Millisecond), faulty.Slow(2, 2*time.Millisecond))
	good, errs := rounds(context.Background(), eps, 10)
	for r := range eps {
		if errs[r] != nil || good[r] != 10 {
			t.Errorf("replica %d: %d rounds, %v", r, good[r], errs[r])
		}
	}
}

// A replica that has been dropped is missed by the others, who get no error before their context is done.
func TestDrop(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		eps := wrap(t, n, 0, faulty.Drop(1, 5))
		cause := errors.New("nobody answers")
		ctx, cancel := context.WithCancelCause(context.Background())
		good, errs := rounds(ctx, eps, 1000, func(rank, good int) {
			if rank == 1 && good == 5 {
				time.AfterFunc(5*time.Millisecond, func() { cancel(cause) }) // the others run into the wait meanwhile
			}
		})
		if good[1] != 5 {
			t.Errorf("n=%d: the replica that is dropped after 5 has done %d", n, good[1])
		}
		for r := range eps {
			if !errors.Is(errs[r], cause) {
				t.Errorf("n=%d: replica %d: %v", n, r, errs[r])
			}
			if good[r] > 5+n {
				t.Errorf("n=%d: replica %d has done %d rounds", n, r, good[r])
			}
		}
	}
}

// An abort reaches who is dropped, and a Close.
func TestDropEnds(t *testing.T) {
	cause := errors.New("I give up")
	eps := wrap(t, 2, 0, faulty.Drop(1, 0))
	errs := make(chan error)
	go func() { errs <- eps[1].Exchange(context.Background(), transport.Call{}, nil) }()
	eps[0].Abort(cause)
	var aborted *transport.AbortError
	if err := <-errs; !errors.Is(err, cause) || !errors.As(err, &aborted) || aborted.Replica != 0 {
		t.Errorf("after an abort: %v", err)
	}

	eps = wrap(t, 2, 0, faulty.Drop(1, 0))
	lane, err := eps[1].Dup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	go func() { errs <- lane.Exchange(context.Background(), transport.Call{}, nil) }()
	if err := eps[1].Close(); err != nil {
		t.Fatal(err)
	}
	var closed *transport.ClosedError
	if err := <-errs; !errors.As(err, &closed) || closed.Replica != 1 {
		t.Errorf("after Close: %v", err)
	}
}

func TestFailSend(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		eps := wrap(t, n, 0, faulty.FailSend(1, 3))
		good, errs := rounds(context.Background(), eps, 1000)
		if good[1] != 3 {
			t.Errorf("n=%d: the replica whose send 3 fails has done %d rounds", n, good[1])
		}
		for r, err := range errs {
			var where *transport.RoundError
			if !errors.Is(err, faulty.ErrInjected) || !errors.As(err, &where) || where.Replica != r {
				t.Errorf("n=%d: replica %d: %v", n, r, err)
			}
		}
		if want := fmt.Sprintf("replica 1 round 3: send to %d: injected fault", 2%n); errs[1].Error() != want {
			t.Errorf("n=%d: %q, want %q", n, errs[1], want)
		}
	}
}

func TestCorrupt(t *testing.T) {
	for _, n := range []int{2, 3, 8} {
		eps := wrap(t, n, 5, faulty.Corrupt(1, 4))
		good, errs := rounds(context.Background(), eps, 1000)
		for r, err := range errs {
			var m *transport.MismatchError
			if !errors.As(err, &m) || m.Mine.Digest^m.Theirs.Digest != 1<<5 {
				t.Errorf("n=%d: replica %d: %v", n, r, err)
			}
		}
		if good[1] != 4 {
			t.Errorf("n=%d: the replica whose Exchange 4 is corrupted has done %d", n, good[1])
		}
	}
}

// A pair that is cut does not hear from each other, but from the rest.
func TestCut(t *testing.T) {
	eps := wrap(t, 3, 0, faulty.Cut(0, 1, 2))
	cause := errors.New("I wait no longer")
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	third := make(chan bool)
	var wg sync.WaitGroup
	errs := make([]error, 3)
	for me, e := range eps {
		wg.Go(func() {
			for round := range 3 {
				var batch []transport.Transfer
				for p := range 3 {
					if p != me {
						batch = append(batch,
							transport.Transfer{Peer: p, Kind: transport.Send, Buf: []byte{byte(me)}},
							transport.Transfer{Peer: p, Kind: transport.Recv, Buf: []byte{99}})
					}
				}
				errs[me] = e.Exchange(ctx, transport.Call{Round: uint32(round)}, batch)
				if me == 2 && round == 2 {
					close(third)
				}
				if got := batch[1].Buf[0]; round == 2 && me < 2 && got != 99 {
					t.Errorf("replica %d has heard %d from the one it is cut from", me, got)
				}
				if got := batch[3].Buf[0]; me < 2 && got != 2 {
					t.Errorf("round %d: replica %d has heard %d from replica 2", round, me, got)
				}
			}
		})
	}
	<-third // replica 2 has all three rounds done
	cancel(cause)
	wg.Wait()
	if errs[2] != nil || !errors.Is(errs[0], cause) || !errors.Is(errs[1], cause) {
		t.Errorf("errors: %v", errs)
	}
}

// Whatever is broken, everybody ends with an error, or with all rounds done, once the time is up.
func TestRandom(t *testing.T) {
	for seed := range uint64(60) {
		n := 2 + int(seed%5)
		f := faulty.Random(seed, n, 20)
		if f != faulty.Random(seed, n, 20) {
			t.Fatalf("seed %d gives two faults", seed)
		}
		eps := wrap(t, n, seed, f)
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		good, errs := rounds(ctx, eps, 50)
		cancel()
		for r, err := range errs {
			if err == nil && good[r] == 50 && strings.Contains(f.String(), "Cut") {
				continue // a ring of five or more has pairs that are no neighbours
			}
			if err == nil {
				t.Errorf("seed %d, %v: replica %d has no error after %d rounds", seed, f, r, good[r])
			}
		}
	}
}

// Faults hide no facts: what endpoints say of hosts and links stays, and endpoints that say nothing know nothing.
func TestLinks(t *testing.T) {
	type wrapper func([]transport.Endpoint, uint64, ...faulty.Fault) ([]transport.Endpoint, error)
	for name, wrap := range map[string]wrapper{"Wrap": faulty.Wrap, "WrapMemory": faulty.WrapMemory} {
		for _, inside := range []struct {
			what string
			as   func(e transport.Endpoint) transport.Endpoint
			host int
			link transport.Link
		}{
			{"inproc", func(e transport.Endpoint) transport.Endpoint { return e }, 0, inproc.Link()},
			{"not Linked", func(e transport.Endpoint) transport.Endpoint { return silent{e.(near)} },
				-1, transport.Link{}},
		} {
			ends, err := inproc.New(2)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range ends {
				ends[i] = inside.as(e)
			}
			if ends, err = wrap(ends, 0); err != nil {
				t.Fatal(err)
			}
			for _, e := range ends {
				l, ok := e.(transport.Linked)
				if !ok || l.Host(1) != inside.host || l.Host(2) != -1 || l.Link(0, 1) != inside.link {
					t.Errorf("%s of endpoints that are %s: Linked %v, %+v", name, inside.what, ok, e)
				}
				if err := e.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	}
}

// silent is an endpoint with peer memory and boards that says nothing of links.
type silent struct{ near }

func TestWrapRefuses(t *testing.T) {
	eps := wrap(t, 2, 0)
	for _, f := range []faulty.Fault{{}, faulty.Drop(2, 0), faulty.Drop(-1, 0), faulty.Drop(0, -1), faulty.Cut(0, 2, 0),
		faulty.Cut(1, 1, 0), faulty.Slow(0, -1)} {
		if _, err := faulty.Wrap(eps, 0, f); err == nil {
			t.Errorf("%v is accepted for 2 replicas", f)
		}
	}
}

func ExampleFault_String() {
	fmt.Println(faulty.Cut(0, 3, 10))
	fmt.Println(faulty.Delay(time.Millisecond))
	// Output:
	// faulty.Cut(0, 3, 10)
	// faulty.Delay(1ms)
}
