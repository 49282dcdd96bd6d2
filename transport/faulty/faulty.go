package faulty

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/transport"
)

// Wrap wraps all endpoints of one transport, in the order of their ranks. Whatever those inside offer beside Exchange
// is hidden, but for transport.Linked, so that all goes by messages. Errors: an endpoint that is nil, a fault that does
// nothing or is on a replica that there is not.
func Wrap(eps []transport.Endpoint, seed uint64, faults ...Fault) ([]transport.Endpoint, error) {
	wrapped, err := wrap(eps, seed, faults)
	if err != nil {
		return nil, err
	}
	out := make([]transport.Endpoint, len(eps))
	for i, e := range wrapped {
		out[i] = e
	}
	return out, nil
}

func wrap(eps []transport.Endpoint, seed uint64, faults []Fault) ([]*endpoint, error) {
	for i, e := range eps {
		if e == nil {
			return nil, fmt.Errorf("faulty: endpoint %d of %d is nil", i, len(eps))
		}
	}
	for _, f := range faults {
		if err := f.check(len(eps)); err != nil {
			return nil, err
		}
	}
	w := &world{faults: faults, seed: seed, failed: make(chan struct{})}
	out := make([]*endpoint, len(eps))
	for i, e := range eps {
		r := &replica{world: w, closed: make(chan struct{})}
		out[i] = &endpoint{Endpoint: e, me: r, root: true, closed: make(chan struct{})}
	}
	return out, nil
}

// world is what all replicas share.
type world struct {
	faults []Fault
	seed   uint64

	once   sync.Once
	failed chan struct{}         // closed with the first failure that a wrapper sees
	first  *transport.AbortError // set before that
}

// fail notes what ends the waits of those that the transport inside cannot reach.
func (w *world) fail(rank int, err error) {
	w.once.Do(func() {
		w.first = &transport.AbortError{Replica: rank, Cause: err}
		if earlier, ok := errors.AsType[*transport.AbortError](err); ok {
			w.first = earlier
		}
		close(w.failed)
	})
}

// replica is what the lanes of one replica share.
type replica struct {
	world            *world
	exchanges, sends atomic.Int64 // begun so far; exchanges counts the calls of memory and of engines too
	shares           atomic.Int64 // begun so far
	shared           sync.Map     // of endpoints that share none
	once             sync.Once
	closed           chan struct{} // with the first endpoint
}

// endpoint wraps one endpoint.
type endpoint struct {
	transport.Endpoint
	me      *replica
	mu      sync.Mutex // guards checker: an endpoint that is busy says so only after the check
	checker transport.Checker
	root    bool
	once    sync.Once
	closed  chan struct{}
}

// check returns a *transport.BatchError when a batch breaks a rule, before any fault.
func (e *endpoint) check(batch []transport.Transfer) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.checker.Check(e.Rank(), e.Size(), batch)
}

// Exchange implements transport.Endpoint.
func (e *endpoint) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if err := e.check(batch); err != nil {
		return err
	}
	rank, rest := e.Rank(), batch
	call, err := e.strike(ctx, call, func(f Fault) { rest = without(rest, rank, f) })
	if err != nil {
		return err
	}
	if t := e.failing(batch); t != nil {
		err := &transport.RoundError{Replica: rank, Round: call.Round, Kind: transport.Send, Peer: t.Peer,
			Err: ErrInjected}
		e.Abort(err)
		return err
	}
	err = e.Endpoint.Exchange(ctx, call, rest)
	if err == nil && len(rest) < len(batch) {
		return e.miss(ctx, call)
	}
	return e.saw(err)
}

// strike has the faults strike a call as it begins, but for those of messages, and returns the call as it is now. It
// calls lose for each fault that cuts the replica from another one by now.
func (e *endpoint) strike(ctx context.Context, call transport.Call, lose func(f Fault)) (transport.Call, error) {
	w, rank := e.me.world, e.Rank()
	k := e.me.exchanges.Add(1) - 1
	for _, f := range w.faults {
		switch {
		case f.kind == delay:
			e.pause(ctx, w.late(rank, k, f.by))
		case f.kind == slow && f.rank == rank:
			e.pause(ctx, f.by)
		case f.kind == drop && f.rank == rank && k >= int64(f.at):
			return call, e.hang(ctx, call)
		case f.kind == corrupt && f.rank == rank && k == int64(f.at):
			call.Digest ^= 1 << (w.seed % 64)
		case f.kind == cut && k >= int64(f.at) && (f.rank == rank || f.peer == rank):
			lose(f)
		}
	}
	return call, nil
}

// struck has the faults strike a call among members.
func (e *endpoint) struck(ctx context.Context, call transport.Call, members []int) (transport.Call, error) {
	lost := false
	call, err := e.strike(ctx, call, func(f Fault) {
		lost = lost || slices.Contains(members, f.rank) && slices.Contains(members, f.peer)
	})
	if err == nil && lost {
		err = e.miss(ctx, call)
	}
	return call, err
}

// miss waits for what a fault has cut off, which does not come.
func (e *endpoint) miss(ctx context.Context, call transport.Call) error {
	err := e.hang(ctx, call)
	if ctx.Err() != nil {
		e.Abort(err)
	}
	return err
}

// failing is the send of the batch that is to fail, or nil.
func (e *endpoint) failing(batch []transport.Transfer) (victim *transport.Transfer) {
	for i := range batch {
		if batch[i].Kind != transport.Send {
			continue
		}
		k := e.me.sends.Add(1) - 1
		for _, f := range e.me.world.faults {
			if f.kind == failSend && f.rank == e.Rank() && k == int64(f.at) {
				victim = &batch[i]
			}
		}
	}
	return victim
}

// without returns the batch without the messages that are cut, and without the folds that would follow one.
func without(batch []transport.Transfer, rank int, f Fault) []transport.Transfer {
	var rest []transport.Transfer
	gone := false
	for _, t := range batch {
		gone = f.between(rank, t.Peer) || t.Next && gone
		if !gone {
			rest = append(rest, t)
		}
	}
	return rest
}

// late is how long the k-th Exchange of a replica is delayed.
func (w *world) late(rank int, k int64, max time.Duration) time.Duration {
	if max <= 0 {
		return 0
	}
	return time.Duration(rand.New(rand.NewPCG(w.seed^uint64(rank)<<48, uint64(k))).Int64N(int64(max)))
}

// pause waits, unless something ends the Exchange anyway.
func (e *endpoint) pause(ctx context.Context, d time.Duration) {
	if d == 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-e.me.world.failed:
	case <-e.Done():
	case <-e.closed:
	case <-e.me.closed:
	}
}

// hang waits for what ends an Exchange that nobody answers, and returns its error.
func (e *endpoint) hang(ctx context.Context, call transport.Call) error {
	err := &transport.RoundError{Replica: e.Rank(), Round: call.Round, Peer: -1,
		Err: &transport.ClosedError{Replica: e.Rank()}}
	select {
	case <-ctx.Done():
		err.Err = context.Cause(ctx)
	case <-e.me.world.failed:
		err.Err = e.me.world.first
	case <-e.Done(): // perhaps by a replica in another process
		err.Err = e.Endpoint.Err()
	case <-e.closed:
	case <-e.me.closed:
	}
	return err
}

// saw returns the error of a call inside, having taken note of one that has ended the transport for all.
func (e *endpoint) saw(err error) error {
	if err != nil {
		e.note(err)
	}
	return err
}

func (e *endpoint) note(err error) {
	var closed *transport.ClosedError
	switch {
	case errors.As(err, new(*transport.BatchError)) || errors.As(err, new(*transport.ArgumentError)):
	case errors.Is(err, transport.ErrBusy) || err == transport.ErrNotShared:
	case errors.As(err, &closed) && closed.Replica == e.Rank(): // the others will see it
	default:
		e.me.world.fail(e.Rank(), err)
	}
}

// Dup implements transport.Endpoint.
func (e *endpoint) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := e.dup(ctx)
	if err != nil {
		return nil, err
	}
	return d, nil
}

func (e *endpoint) dup(ctx context.Context) (*endpoint, error) {
	d, err := e.Endpoint.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return &endpoint{Endpoint: d, me: e.me, closed: make(chan struct{})}, nil
}

// Host implements transport.Linked.
func (e *endpoint) Host(replica int) int {
	if linked, ok := e.Endpoint.(transport.Linked); ok {
		return linked.Host(replica)
	}
	return -1
}

// Link implements transport.Linked.
func (e *endpoint) Link(a, b int) transport.Link {
	if linked, ok := e.Endpoint.(transport.Linked); ok {
		return linked.Link(a, b)
	}
	return transport.Link{}
}

// Err implements transport.Endpoint. A failure that the transport inside does not know of counts too.
func (e *endpoint) Err() error {
	if err := e.Endpoint.Err(); err != nil {
		return err
	}
	select {
	case <-e.me.world.failed:
		return e.me.world.first
	default:
		return nil
	}
}

// Abort implements transport.Endpoint.
func (e *endpoint) Abort(cause error) {
	e.Endpoint.Abort(cause)
	e.me.world.fail(e.Rank(), cause)
}

// Shared implements transport.Shared, by the endpoint inside if it can.
func (e *endpoint) Shared() *sync.Map {
	if s, ok := e.Endpoint.(transport.Shared); ok {
		return s.Shared()
	}
	return &e.me.shared
}

// Close implements transport.Endpoint.
func (e *endpoint) Close() error {
	e.once.Do(func() { close(e.closed) })
	if e.root {
		e.me.once.Do(func() { close(e.me.closed) })
	}
	return e.Endpoint.Close()
}
