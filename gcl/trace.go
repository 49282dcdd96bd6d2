package gcl

import (
	"context"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// Trace is what Options.Trace points to: functions that are told what collectives do. Any may be nil. For each call on
// a Comm with these options they are called in this order, rounds as often as there are:
//
//	CollectiveStart                        the call has its turn and its number
//	    MethodChosen                       its arguments were good; by Hybrid, each phase begins so
//	        RoundStart                     the rank enters a round
//	            Segment                    one for each segment of each message of the round
//	        RoundEnd
//	CollectiveEnd                          with the error that the call returns
//
// After a failure what has started is ended, inside out, with the error. A call that is refused for its arguments has
// no MethodChosen; one that never got its turn starts and ends at once, while another may be going on. A call by
// Hybrid has a MethodChosen, and rounds from 0 on, for each phase: TraceCall.Phase. Of a collective within a replica,
// method, rounds and segments are those of its IPU 0, and peers and rings are IPUs.
//
// They run on the goroutine of the call, one at a time for a connection of a replica, but at the same time for
// different replicas and connections. Events hold no time: read a clock if you want one. The call waits for them, and
// so may all other replicas: be quick. They must not call a collective, Barrier, Dup or Close on a Comm of the same
// connection, which would wait for the call that waits for them; they may call Abort. A panic in one, or a
// runtime.Goexit, passes through the call, whose turn ends, and aborts the communicator; between MethodChosen and
// CollectiveEnd of a collective within a replica a panic becomes the error of the call.
type Trace struct {
	CollectiveStart func(c TraceCall)
	MethodChosen    func(c TraceCall, m TraceMethod)
	RoundStart      func(c TraceCall, round int)
	Segment         func(c TraceCall, round int, s TraceSegment)
	RoundEnd        func(c TraceCall, round int, err error)
	CollectiveEnd   func(c TraceCall, err error)
}

// TraceCall is the collective that an event is about. Replica, Connection, Group and Seq together tell it from any
// other of a communicator, but within a replica; Group and Seq are the same on all its members.
type TraceCall struct {
	Name       string // of the Comm: see Comm.Named
	Replica    int    // among all
	Connection int    // 0 is the first; Dups count from 1 at each replica
	Rank, Size int    // in the group
	Group      uint64 // a number of the group that no other group has
	Seq        uint64 // calls in this group and connection count from 1; 0 within a replica
	IPUs       int    // of a collective within a replica, how many there are, which are not the group's; else 0

	Collective schedule.Collective
	Barrier    bool         // it is no collective but a Barrier; Collective is AllReduce
	Operator   Operator     // of a reduction
	Root       int          // a rank; of collectives without a root 0
	Tensors    int          // how many a call on several has (Many, Tensors, Mapped, a Batch of 0, 2 or more); else 0
	DType      tensor.DType // 0 if there are several tensors of several types
	Elements   int          // in the input; of several tensors or IPUs, in all
	Bytes      int          // in the larger of the rank's two buffers; of several tensors or IPUs, in all

	// Known from MethodChosen on; before, and in a PathLocal, Auto. A call by Hybrid has a method and a path for each
	// phase.
	Method         methods.Method
	Implementation Implementation
	Path           Path
	Phase          int // of Hybrid, from 1 on; 0: the call has no phases
}

// String returns the short name of the call, as errors have it: `all-reduce #3 "layer3/grads"`.
func (c TraceCall) String() string {
	if c.IPUs > 0 {
		return wire.NameWithin(c.Collective) + wire.Quote(c.Name)
	}
	number := uint8(c.Collective)
	if c.Barrier {
		number = wire.Barrier
	}
	return wire.Name(transport.Call{Collective: number, Seq: c.Seq}) + wire.Quote(c.Name)
}

// TraceMethod is what MethodChosen tells beside the method, the implementation and the path in its TraceCall.
type TraceMethod struct {
	Rounds int // of this rank, in this phase if there are phases; 0 in a PathLocal

	// Ring is the members, as replica ids, in the order of the ring that the method sends along (an anticlockwise one
	// against it), and Second that of the other ring of a quad_directional_ring. Both are nil if no ring is used: by
	// other methods, and by a reduction with Options.Reproducible, which goes along the ranks. They are not the
	// callee's to change.
	Ring, Second []int
}

// TraceSegment is one segment of a message (see Options.MaxBytesPerTile), told before it is sent or received, or on
// peer memory of what a rank takes from a peer in a round. In one pass over peer memory, and where messages are small,
// there are none; nor is there one for an empty message of a barrier between rounds.
type TraceSegment struct {
	Peer  int // replica id
	Kind  transport.Kind
	Bytes int
}

// Path is how the data of a collective goes.
type Path uint8

// The paths. All but PathLocal and PathMessages need an endpoint with transport.PeerMemory or transport.Boards.
const (
	PathUnknown  = Path(route.Unknown)  // before MethodChosen
	PathLocal    = Path(route.Local)    // nothing is sent: a group of one, or an operator that combines nothing
	PathMessages = Path(route.Messages) // rounds of messages
	PathMemory   = Path(route.Memory)   // one pass over the peers' memory
	PathRounds   = Path(route.Rounds)   // rounds of a schedule on the peers' memory
	PathSmall    = Path(route.Small)    // what each member publishes, at most transport.Boards' SmallLimit
)

// String returns words for the path, as in "peer memory".
func (p Path) String() string { return route.Path(p).String() }

// tracing is a lane's call in progress as its Trace sees it. It is used by whoever has the lane's turn.
type tracing struct {
	trace *Trace // nil: nobody wants to know
	call  TraceCall
	open  bool // a round has begun and not ended
	round int
}

// event describes a call of c. k is one on several tensors, or nil.
func (c *Comm) event(call *transport.Call, k *manyCall) TraceCall {
	e := TraceCall{
		Name: c.label.Name, Replica: c.Replica(), Connection: c.lane.Flight.Connection, Rank: c.Rank(), Size: c.Size(),
		Group: call.Group, Seq: call.Seq, Collective: schedule.Collective(call.Collective),
		Operator: Operator(call.Operator), Root: int(int32(call.Root)),
		DType: tensor.DType(call.DType &^ wire.ManyTensors), Elements: int(call.Count),
	}
	if call.Collective == wire.Barrier {
		e.Collective, e.Barrier = schedule.AllReduce, true
	}
	e.Bytes = e.Collective.Contract().Elements(e.Elements, e.Size) * e.DType.Size()
	if k != nil {
		e.Tensors, e.Bytes = k.size()
	}
	return e
}

// begin waits for the turn of a call, numbers and records it. After an error the call is over, and its turn not the
// caller's. Else tellStart must follow, end, and leave; with a Trace also crashed, in case that it panics.
func (c *Comm) begin(ctx context.Context, call *transport.Call) error {
	if err := c.takeNumber(ctx, call); err != nil {
		return c.turnedAway(call, nil, err)
	}
	c.record(call)
	return nil
}

// record has the flight recorder know that a call begins.
func (c *Comm) record(call *transport.Call) {
	c.lane.Flight.Begin(c.label, call, ticks.Now())
}

// takeNumber waits for the turn of a call, and numbers it. After an error the turn is not the caller's.
func (c *Comm) takeNumber(ctx context.Context, call *transport.Call) error {
	err := c.enter(ctx, call)
	call.Seq = c.group.seq.Add(1)
	return err
}

// tellStart tells the Trace that a call has its turn. k is one on several tensors, or nil.
func (c *Comm) tellStart(call *transport.Call, k *manyCall) {
	if c.options.Trace != nil {
		c.tell(c.event(call, k))
	}
}

// tell is tellStart for a call that has been described.
func (c *Comm) tell(e TraceCall) {
	t := &c.lane.tracing
	*t = tracing{trace: c.options.Trace, call: e}
	c.lane.Listener = t
	if f := t.trace.CollectiveStart; f != nil {
		f(t.call)
	}
}

// end tells that the call is over, and with which error, which it returns.
func (c *Comm) end(err error) error {
	l := c.lane
	if l.tracing.trace != nil {
		l.endTrace(err)
	}
	l.Flight.End(err != nil)
	return err
}

// refuse ends the call in progress, of which nothing has been sent.
func (c *Comm) refuse(call *transport.Call, err error) error {
	c.lane.Flight.Refused = true
	return c.end(c.refusal(call, err))
}

func (l *connection) endTrace(err error) {
	t := &l.tracing
	t.leaveRound(err)
	if f := t.trace.CollectiveEnd; f != nil {
		f(t.call, err)
	}
	l.silence()
}

// silence ends the telling.
func (l *connection) silence() { l.tracing, l.Listener = tracing{}, nil }

// crashed is called, deferred, after begin with a Trace. If end has not been reached the others must not be left
// waiting.
func (c *Comm) crashed() {
	l := c.lane
	if l.tracing.trace == nil {
		return
	}
	l.silence()
	c.Abort(carry.ErrCrash)
	l.Flight.End(true)
}

// turnedAway tells of a call that never had its turn, and makes its error. k is one on several tensors, or nil.
func (c *Comm) turnedAway(call *transport.Call, k *manyCall, cause error) error {
	var e TraceCall
	if c.options.Trace != nil {
		e = c.event(call, k)
	}
	return c.tellTurnedAway(call, e, cause)
}

// tellTurnedAway is turnedAway for a call that has been described, if there is a Trace.
func (c *Comm) tellTurnedAway(call *transport.Call, e TraceCall, cause error) error {
	c.lane.Flight.TurnedAway(c.label, call, waitedSince(cause))
	err := c.refusal(call, cause)
	if c.options.Trace != nil {
		c.options.Trace.tellAtOnce(e, err)
	}
	return err
}

// tellAtOnce tells of a call that ends as it starts.
func (t *Trace) tellAtOnce(e TraceCall, err error) {
	if t.CollectiveStart != nil {
		t.CollectiveStart(e)
	}
	if t.CollectiveEnd != nil {
		t.CollectiveEnd(e, err)
	}
}

// waitedSince is when a call that never had its turn began to wait for it, or 0.
func waitedSince(err error) int64 {
	if w, ok := err.(*waitError); ok {
		return w.began
	}
	return 0
}

// Chosen implements carry.Listener.
func (t *tracing) Chosen(w *carry.Way, r route.Route, rounds int) {
	t.call.Method, t.call.Path = r.Method, Path(r.Path)
	t.call.Implementation = Implementation(w.Setting.Told(&r, t.call.Phase))
	if t.trace.MethodChosen == nil {
		return
	}
	e := TraceMethod{Rounds: rounds}
	if w.OnRings(r.Method, t.call.Collective) && r.Path != route.Local {
		e.Ring = inOrder(w.Group.Members, w.Group.Rings.First)
		if r.Method.Rings() > 1 {
			e.Second = inOrder(w.Group.Members, w.Group.Rings.Second)
		}
	}
	t.trace.MethodChosen(t.call, e)
}

// inOrder is the members in the order of a ring of ranks.
func inOrder(members, ring []int) []int {
	out := make([]int, len(ring))
	for i, rank := range ring {
		out[i] = members[rank]
	}
	return out
}

// StartPhase implements carry.Listener.
func (t *tracing) StartPhase(phase uint64) { t.call.Phase = int(phase) }

// StartRound implements carry.Listener.
func (t *tracing) StartRound(round int) {
	t.leaveRound(nil)
	t.open, t.round = true, round
	if f := t.trace.RoundStart; f != nil {
		f(t.call, round)
	}
}

// EndRound implements carry.Listener.
func (t *tracing) EndRound() { t.leaveRound(nil) }

// WantsSegments implements carry.Listener.
func (t *tracing) WantsSegments() bool { return t.trace.Segment != nil }

// Segment implements carry.Listener.
func (t *tracing) Segment(peer int, kind transport.Kind, bytes int) {
	t.trace.Segment(t.call, t.round, TraceSegment{Peer: peer, Kind: kind, Bytes: bytes})
}

// leaveRound tells that the round that is open, if any, is over.
func (t *tracing) leaveRound(err error) {
	if !t.open {
		return
	}
	t.open = false
	if f := t.trace.RoundEnd; f != nil {
		f(t.call, t.round, err)
	}
}
