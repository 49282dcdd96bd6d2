package gcl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// MaxIPUs bounds the IPUs of one replica, and so the rows of a collective within it. The memory of their network grows
// with the square of their number: 111 MB are kept for 256 by messages, where 1,024 would keep 1.8 GB
// (docs/within-replica.md).
const MaxIPUs = 256

// ipus is the IPUs of one replica: workers with memory of their own, on a network of their own that is a ladder. Each
// carries out collectives with the others by a Comm, as replicas do. Whoever has the lane's turn uses them.
type ipus struct {
	replica int
	all     []*ipu // by id

	// Of the collective in progress.
	ctx  context.Context
	body func(*ipu) error
	busy sync.WaitGroup
}

// ipu is one of them.
type ipu struct {
	id     int
	of     *ipus
	comm   Comm              // on the network of the IPUs
	groups map[int]ipuGroups // by IPUs per rank
	start  func()            // work, so that to start it allocates nothing
	err    error

	// Of the collective in progress.
	ipuGroups
	parts []int // for a call
}

// ipuGroups are the groups that an IPU is in.
type ipuGroups struct {
	equal *membership // the IPUs of its offset: rank f has fragment f after a reduce-scatter
	every *membership // all IPUs, in the order in which Concat joins their chunks
}

// ipusInOrder lists k IPUs, m to a rank, in the order in which Concat joins their chunks: the one at offset*k/m + index
// has a chunk of that offset and index. Where ranks have one IPU, index is the place on the ladder's ring; where they
// have several, the number of the rank.
func ipusInOrder(ladder topology.Topology, k, m int) ([]int, error) {
	ids := make([]int, 0, k)
	for offset := range m {
		for p := offset; p < k; p += m {
			ids = append(ids, p)
		}
	}
	if m > 1 {
		return ids, nil
	}
	rings, err := ladder.Rings(topology.Auto, ids)
	return rings.First, err
}

// ipusOf returns the replica's k IPUs, and makes them when it is first asked. They last until the lane is closed.
func (l *connection) ipusOf(k int) (*ipus, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s := l.ipus[k]; s != nil {
		return s, nil
	}
	ladder, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{k},
		IOTiles: l.topology.IOTiles()})
	if err != nil {
		return nil, err
	}
	endpoints, err := inproc.New(k)
	if err != nil {
		return nil, err
	}
	s := &ipus{replica: l.Endpoint.Rank(), all: make([]*ipu, k)}
	for id, e := range endpoints {
		w := &ipu{id: id, of: s, comm: Comm{lane: newConnection(e, ladder, nil, nil)}, groups: map[int]ipuGroups{}}
		w.start = w.work
		s.all[id] = w
	}
	if l.ipus == nil {
		l.ipus = map[int]*ipus{}
	}
	l.ipus[k] = s
	return s, nil
}

// closeIPUs makes a collective that the IPUs are in fail, and returns when they have left the buffers. The lane's own
// endpoint, closed next, sees to it that there will be no other.
func (l *connection) closeIPUs() {
	l.mu.Lock()
	l.closed = true
	var all []*ipu
	for _, s := range l.ipus {
		all = append(all, s.all...)
	}
	l.ipus = nil
	l.mu.Unlock()
	for _, w := range all {
		w.comm.lane.Endpoint.Close() // fails only over broadcasts, which IPUs make none of
	}
}

func (l *connection) isClosed() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.closed
}

// join makes ready for a collective of IPUs, m to a rank.
func (w *ipu) join(m int, options Options) error {
	groups, known := w.groups[m]
	if !known {
		every, err := ipusInOrder(w.comm.lane.topology, len(w.of.all), m)
		if err != nil {
			return err
		}
		size := len(every) / m
		first := w.id % m * size
		equal := every[first : first+size]
		var err1, err2 error
		groups.every, err1 = w.comm.lane.groupOfAll(every, slices.Index(every, w.id))
		groups.equal = groups.every
		if m > 1 {
			groups.equal, err2 = w.comm.lane.groupOfAll(equal, slices.Index(equal, w.id))
		}
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		w.groups[m] = groups
	}
	w.ipuGroups, w.comm.options, w.comm.group = groups, options, groups.every
	w.comm.resolve()
	return nil
}

// do carries out this IPU's part of a collective of a group.
func (w *ipu) do(g *membership, k call) error {
	c := &w.comm
	c.group = g
	c.resolveWay()
	c.digest = c.fingerprint()
	f := c.fingerprintOf(&k.ask)
	f.Seq, f.Count, f.Digest, f.DType = g.seq.Add(1), uint64(c.larger(&k)), c.digest, uint8(k.dtype)
	j := &c.lane.alone
	j.One(&k.Ask, k.dtype, k.dst, k.src, k.parts, c.larger(&k))
	defer j.Forget()
	return c.way.Perform(w.of.ctx, j, &f)
}

// run calls body for each IPU, on a goroutine of its own but that IPU 0 has the caller's, and returns when all have
// returned.
func (s *ipus) run(ctx context.Context, body func(*ipu) error) error {
	s.ctx, s.body = ctx, body
	s.busy.Add(len(s.all))
	for _, w := range s.all[1:] {
		go w.start()
	}
	func() {
		defer s.busy.Wait() // also after runtime.Goexit, in a function of a Trace: the rows are the caller's
		s.all[0].work()
	}()
	s.ctx, s.body = nil, nil
	var heard error // of one that only heard that another has failed, and knows less than the other
	for _, w := range s.all {
		switch {
		case w.err == nil:
		case ownAbort(w.err) == nil:
			return &ipuError{w.id, w.err}
		case heard == nil:
			heard = &ipuError{w.id, w.err}
		}
	}
	return heard
}

// work is one IPU's part. A panic becomes its error, and the others hear of it.
func (w *ipu) work() {
	defer w.of.busy.Done()
	done := false
	defer func() {
		if v := recover(); v != nil {
			w.err = &PanicError{Replica: w.of.replica, Value: v, Stack: debug.Stack()}
			w.comm.lane.Endpoint.Abort(w.err)
		} else if !done { // runtime.Goexit, in a function of a Trace
			w.comm.lane.Endpoint.Abort(carry.ErrCrash)
		}
	}()
	w.err = w.of.body(w)
	done = true
}

// withinCall is a collective within the replica.
type withinCall struct {
	collective schedule.Collective
	operator   Operator
	dtype      tensor.DType
	ipus       int
	elements   int // on all of them
	at         flight.Place
}

// event describes the call to a Trace.
func (k *withinCall) event(c *Comm) TraceCall {
	e := TraceCall{
		Name: c.label.Name, Replica: c.Replica(), Connection: c.lane.Flight.Connection, IPUs: k.ipus,
		Collective: k.collective, Operator: k.operator, DType: k.dtype, Elements: k.elements,
	}
	e.Bytes = k.collective.Contract().Elements(k.elements, k.ipus) * k.dtype.Size()
	return e
}

// within carries out a collective within the replica, of one row or chunk on each IPU. When the lane is the caller's,
// and nothing speaks against it, among the rest check, body is called for each IPU.
func (c *Comm) within(ctx context.Context, k withinCall, check func() error, body func(*ipu) error) error {
	if err := c.check(); err != nil {
		return err
	}
	recorded := transport.Call{Collective: uint8(k.collective) | wire.WithinReplica, Count: uint64(k.ipus)}
	l := &flight.Label{Name: c.label.Name,
		Group: wire.HashedGroup | wire.FNV(wire.FNVOffset, c.Replica(), wire.WithinReplica)}
	k.at = flight.Place{Recorders: c.lane.flights, Recorder: c.lane.Flight, Group: l.Group}
	err := c.enter(ctx, &recorded)
	recorded.Seq = c.lane.withins.Add(1)
	k.at.Seq = recorded.Seq
	if err != nil {
		c.lane.Flight.TurnedAway(l, &recorded, waitedSince(err))
		err = c.failureWithin(&k, err)
		if c.options.Trace != nil {
			c.options.Trace.tellAtOnce(k.event(c), err)
		}
		return err
	}
	defer c.leave()
	c.lane.Flight.Begin(l, &recorded, ticks.Now())
	if c.options.Trace != nil {
		defer c.crashed()
		c.tell(k.event(c))
	}
	refused := c.checkWithin(ctx, k.ipus)
	if refused == nil {
		refused = check()
	}
	if refused != nil {
		c.lane.Flight.Refused = true
		return c.end(c.failureWithin(&k, refused))
	}
	return c.end(c.performWithin(ctx, &k, body))
}

// failureWithin is the error of a collective within the replica.
func (c *Comm) failureWithin(k *withinCall, err error, kinds ...error) *callError {
	return &callError{what: wire.NameWithin(k.collective) + wire.Quote(c.label.Name), replica: c.Replica(), err: err,
		kinds: kinds, at: k.at}
}

// performWithin carries out a checked collective within the replica.
func (c *Comm) performWithin(ctx context.Context, k *withinCall, body func(*ipu) error) error {
	s, err := c.lane.ipusOf(k.ipus)
	if err == nil {
		// An aborted or closed communicator, or a context that is done, must show.
		err = c.lane.Endpoint.Exchange(ctx, transport.Call{}, nil)
	}
	for i := 0; i < k.ipus && err == nil; i++ {
		err = s.all[i].join(c.ipusPerRank(), c.options)
	}
	if err != nil {
		failed := c.otherFailure(ctx, wire.NameWithin(k.collective), err)
		failed.at = k.at
		return failed
	}
	first := s.all[0].comm.lane
	first.Listener = c.lane.Listener // of what IPU 0 does
	err = s.run(ctx, body)
	first.Listener = nil
	switch {
	case err == nil:
		return nil
	case c.lane.isClosed():
		return c.failureWithin(k, err, ErrClosed)
	}
	failed := c.failureWithin(k, err, ErrAborted)
	c.Abort(failed)
	return failed
}

// ipusPerRank is Options.IPUsPerRank with its default.
func (c *Comm) ipusPerRank() int { return max(c.options.IPUsPerRank, 1) }

// checkWithin looks at the number of IPUs.
func (c *Comm) checkWithin(ctx context.Context, k int) error {
	known, m := c.lane.ipusPerReplica, c.ipusPerRank()
	switch {
	case ctx == nil:
		return errors.New("nil context")
	case known > 0 && k != known:
		return fmt.Errorf("%d IPUs are given data, but a replica has %d by the topology "+
			"(topology.Config.IPUsPerReplica)", k, known)
	case k == 0:
		return errors.New("no IPU is given data, want 1 or more")
	case k > MaxIPUs:
		return fmt.Errorf("%d IPUs are given data, a row or chunk each, want %d at most (MaxIPUs)", k, MaxIPUs)
	case k%m != 0:
		return fmt.Errorf("%d IPUs do not divide into ranks of %d (Options.IPUsPerRank)", k, m)
	}
	return nil
}

// ipuError says on which of a replica's IPUs a collective failed.
type ipuError struct {
	ipu int
	err error // of the network of the IPUs
}

func (e *ipuError) Error() string { return e.words() }

func (e *ipuError) words() string {
	words := explain(e.Unwrap())
	round, ok := e.err.(*transport.RoundError)
	switch {
	case !ok:
		return fmt.Sprintf("IPU %d: %s", e.ipu, words)
	case round.Peer < 0:
		return fmt.Sprintf("IPU %d %s: %s", e.ipu, wire.RoundName(round.Round), words)
	}
	return fmt.Sprintf("IPU %d %s: %v IPU %d: %s", e.ipu, wire.RoundName(round.Round), round.Kind, round.Peer, words)
}

// Unwrap returns the cause, in which no number of an IPU can be taken for a replica's.
func (e *ipuError) Unwrap() error {
	if abort := ownAbort(e.err); abort != nil {
		return abort.Cause
	}
	err := withoutRound(e.err)
	if _, ok := err.(*transport.ClosedError); ok {
		return errors.New("the communicator is closed")
	}
	return err
}

// ownAbort is the abort of the IPUs' network that an error of that network tells of, or nil. It does not look into the
// cause of a context that is done: an abort in there is of the replicas.
func ownAbort(err error) *transport.AbortError {
	err = withoutRound(err)
	if abort, ok := err.(*transport.AbortError); ok {
		return abort
	}
	if late, ok := err.(*transport.LateError); ok { // of an IPU that failed after another
		return late.Aborted
	}
	return nil
}

// withoutRound is an error without the round in which it happened.
func withoutRound(err error) error {
	if round, ok := err.(*transport.RoundError); ok {
		return round.Err
	}
	return err
}
