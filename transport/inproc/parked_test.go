package inproc

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/calls"
)

// Whatever ends a wait wakes a replica that has waited for so long that it stands in the register, where no patrol
// looks.
func TestLongParked(t *testing.T) {
	background, cause := context.Background(), errors.New("enough of it")
	members, call := []int{0, 1}, transport.Call{Group: 1, Seq: 1}
	exchange := func(kind transport.Kind) func(context.Context, *endpoint) error {
		return func(ctx context.Context, e *endpoint) error {
			return e.Exchange(ctx, call, []transport.Transfer{{Peer: 1 - e.rank, Kind: kind, Buf: make([]byte, 8)}})
		}
	}
	gather := func(ctx context.Context, e *endpoint) error {
		_, _, err := e.Gather(ctx, call, members, make([]byte, 8), 8, nil)
		return err
	}
	for _, w := range []struct {
		name       string
		wait, meet func(context.Context, *endpoint) error // of replica 0, and of replica 1 that ends it
	}{
		{"receive", exchange(transport.Recv), exchange(transport.Send)},
		{"send", exchange(transport.Send), exchange(transport.Recv)},
		{"gather", gather, gather},
	} {
		var closed *transport.ClosedError
		var mismatch *transport.MismatchError
		for _, c := range []struct {
			name  string
			event func(e, first *endpoint, cancel func(error)) error // e and first are of replica 1
			is    func(error) bool
		}{
			{"the peer comes", func(e, _ *endpoint, _ func(error)) error { return w.meet(background, e) },
				func(err error) bool { return err == nil }},
			{"its context ends", func(_, _ *endpoint, cancel func(error)) error { cancel(cause); return nil },
				func(err error) bool { return errors.Is(err, cause) }},
			{"the peer aborts", func(e, _ *endpoint, _ func(error)) error { e.Abort(cause); return nil },
				func(err error) bool { return errors.Is(err, cause) }},
			{"the peer aborts another lane", func(_, first *endpoint, _ func(error)) error { first.Abort(cause); return nil },
				func(err error) bool { return errors.Is(err, cause) }},
			{"the peer makes another call", func(e, _ *endpoint, _ func(error)) error {
				return e.Broadcast(background, call, members, 1, make([]byte, 8)) // does not wait
			}, func(err error) bool { return errors.As(err, &mismatch) }},
			{"the peer closes", func(e, _ *endpoint, _ func(error)) error { return e.Close() },
				func(err error) bool { return errors.As(err, &closed) && closed.Replica == 1 }},
		} {
			t.Run("wait="+w.name+"/event="+c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					first := connect(t, 2)
					var eps [2]*endpoint // on a lane that was made after
					for i, e := range first {
						dup, err := e.Dup(background)
						if err != nil {
							t.Fatal(err)
						}
						eps[i] = dup.(*endpoint)
					}
					ctx, cancel := context.WithCancelCause(background)
					defer cancel(nil)
					result := make(chan error, 1)
					go func() { result <- w.wait(ctx, eps[0]) }()
					time.Sleep(time.Second)
					g := &eps[0].lane.blocked
					g.mu.Lock()
					if g.members == nil || g.members[0] == nil {
						t.Error("it does not stand in the register")
					}
					g.mu.Unlock()
					if err := c.event(eps[1], first[1], cancel); err != nil {
						t.Error(err)
					}
					if err := <-result; !c.is(err) {
						t.Error(err)
					}
					eps[1].Exchange(background, call, nil) // tells replica 1 of a mismatch, so that Close does not
				})
			})
		}
	}
}

// A replica that gives up leaves Exchange only when its peer has stopped to read its memory.
func TestSenderWaitsForItsReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := connect(t, 2)
		cause := errors.New("enough of it")
		ctx, cancel := context.WithCancelCause(context.Background())
		defer cancel(nil)
		sent, received := make(chan error, 1), make(chan error, 1)
		inside, read := make(chan bool), make(chan bool)
		go func() {
			sent <- e[1].Exchange(ctx, transport.Call{},
				[]transport.Transfer{{Kind: transport.Send, Buf: make([]byte, 8)}})
		}()
		go func() {
			buf := make([]byte, 8)
			fold := func(dst, a, b []byte) { inside <- true; <-read }
			received <- e[0].Exchange(context.Background(), transport.Call{},
				[]transport.Transfer{{Peer: 1, Kind: transport.RecvFold, Buf: buf, With: buf, Fold: fold}})
		}()
		<-inside
		cancel(cause)
		synctest.Wait()
		select {
		case err := <-sent:
			t.Errorf("the sender has left while its memory is read: %v", err)
			sent <- err
		default:
		}
		close(read)
		if err := <-sent; !errors.Is(err, cause) {
			t.Errorf("the sender's error is %v", err)
		}
		<-received // nil, or the abort if that came before the last look
	})
}

// pieces counts how often each piece of a Share is done.
type pieces struct {
	mu   sync.Mutex
	done []int
}

func (p *pieces) Piece(_ []transport.Memory, _, i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[i]++
}

// Each piece of each Share is done once, also where members outnumber processors and whoever comes first takes a piece.
func TestPiecesAreDoneOnce(t *testing.T) {
	for _, processors := range []int{1, 8} {
		t.Run(fmt.Sprintf("processors=%d", processors), func(t *testing.T) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
			synctest.Test(t, func(t *testing.T) {
				const n = 3
				e := connect(t, n)
				for seq, count := range []int{5, 1, 0, 7, 3} {
					w := &pieces{done: make([]int, count)}
					var all sync.WaitGroup
					for r := range e {
						all.Go(func() {
							call := transport.Call{Group: 1, Seq: uint64(seq)}
							if err := e[r].Share(context.Background(), call, []int{0, 1, 2}, transport.Memory{},
								[]int{count}, w); err != nil {
								t.Error(err)
							}
						})
					}
					all.Wait()
					for i, times := range w.done {
						if times != 1 {
							t.Errorf("Share %d: piece %d of %d is done %d times", seq, i, count, times)
						}
					}
				}
			})
		})
	}
}

// What a replica that has left did by messages is known to be another call, however many of another group followed.
func TestHistory(t *testing.T) {
	h := calls.NewHistory(historyLength)
	h.Add(&transport.Call{Group: 7, Seq: 3, Collective: 1})
	for seq := range uint64(3 * historyLength) {
		h.Add(&transport.Call{Group: 8, Seq: seq + 1, Collective: 1})
	}
	p := parting{sent: h}
	for _, c := range []struct {
		call   transport.Call
		differ bool
	}{
		{transport.Call{Group: 7, Seq: 3, Collective: 2}, true},
		{transport.Call{Group: 7, Seq: 3, Collective: 1}, false},
		{transport.Call{Group: 7, Seq: 2, Collective: 2}, false},
		{transport.Call{Group: 8, Seq: 3 * historyLength, Collective: 2}, true},
		{transport.Call{Group: 8, Seq: 2*historyLength + 1, Collective: 2}, true},
		{transport.Call{Group: 9, Seq: 3, Collective: 2}, false},
	} {
		if theirs := p.Instead(&c.call); (theirs != nil) != c.differ {
			t.Errorf("in place of %+v: %+v", c.call, theirs)
		}
	}
}
