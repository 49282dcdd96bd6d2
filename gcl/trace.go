package gcl

import (
	"time"

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
// no MethodChosen; one that never got its turn starts and ends at once, while another may be going on. A call by Hybrid
// has a MethodChosen, and rounds from 0 on, for each phase: TraceCall.Phase. Of a collective within a replica, method,
// rounds and segments are those of its IPU 0, and peers and rings are IPUs. Where a transport cannot lay a member's
// buffers open, MethodChosen comes a second time, for the messages by which the call goes instead; a round that had
// begun ends with transport.ErrNotShared before.
//
// The functions run on the goroutine of the call, one at a time for a connection of a replica, but at the same time for
// different replicas and connections. An event has no time but TraceCall.Elapsed: read a clock if you want another. The
// call waits for them, and so may all other replicas: be quick. They must not call a collective, Barrier, Dup or Close
// on a Comm of the same connection, which would wait for the call that waits for them; they may call Abort. A panic in
// one, or a runtime.Goexit, passes through the call, whose turn ends, and aborts the communicator; between MethodChosen
// and CollectiveEnd of a collective within a replica a panic becomes the error of the call.
//
// Package gcl/perfetto has a Trace that writes files for Perfetto, package gcl/metrics one that counts for Prometheus.
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
	Seq        uint64 // calls in this group and connection count from 1, and messages of a pair; 0 within a replica
	IPUs       int    // of a collective within a replica, how many there are, which are not the group's; else 0

	// ConnectionID is the number that the connection has at all replicas; 0 is the first. Connection may differ between
	// replicas that open Dups in different orders.
	ConnectionID uint64

	// Collective is Custom for an Execute, whatever its schedule is of.
	Collective schedule.Collective
	Barrier    bool         // it is no collective but a Barrier; Collective is AllReduce
	Message    bool         // it is no collective but a Send, Recv or SendRecv; Collective is Custom
	To, From   int          // of a Message: replica ids of whom it sends to and receives from, or -1; else 0
	SentSeq    uint64       // of a Message that is sent: its number; Seq is that of what is received, if anything is
	Operator   Operator     // of a reduction
	Root       int          // a rank; of collectives without a root 0
	Tensors    int          // how many a call on several has (Many, Tensors, Mapped, a Batch of 0, 2 or more); else 0
	DType      tensor.DType // 0 if there are several tensors of several types
	Elements   int          // in the input; of several tensors or IPUs, in all
	Bytes      int          // in the larger of the rank's two buffers; of several tensors or IPUs, in all
	ByCounts   bool         // it is a ...V form; Elements is that of the larger of the rank's two buffers

	// Known from MethodChosen on; before, and in a PathLocal, Auto. In a PathEngine the implementation is Auto, and of
	// an Execute the method. A call by Hybrid has a method and a path for each phase.
	Method         methods.Method
	Implementation Implementation
	Path           Path
	Phase          int // of Hybrid, from 1 on; 0: the call has no phases

	// Transport names what connects the members of the group, as transport.Link does: "shm". It is "" where nothing
	// does, in a group of one and between IPUs, and if the transport does not say so.
	Transport string

	comm  *Comm // that the call was made on
	began int64 // by ticks.Now; 0: the call never got its turn
	ended int64 // by ticks.Now; 0: it goes on
}

// Elapsed is how long ago the call got its turn: in CollectiveEnd, how long it took. It is 0 of a call that never got
// its turn, and of a TraceCall that came with no event. It costs about 10 ns where the processor has a counter that
// ticks at one rate.
func (c *TraceCall) Elapsed() time.Duration {
	if c == nil || c.began == 0 {
		return 0
	}
	if c.ended != 0 {
		return ticks.Between(c.began, c.ended)
	}
	return ticks.Since(c.began)
}

// Explain is Comm.Explain of the Comm that the call was made on, for the call's collective, bytes and type. It may take
// seconds in large groups: call it outside the events. A copy of the TraceCall keeps the Comm in memory.
//
// Errors: those of Comm.Explain, and errors for what has no price: a Barrier, a message, an Execute, a ...V form, a
// call on tensors of several types, one within a replica, and a TraceCall that came with no event.
func (c *TraceCall) Explain() (Explanation, error) {
	switch {
	case c == nil || c.comm == nil:
		return Explanation{}, newError("explain: the TraceCall came with no event")
	case c.IPUs > 0 || c.Message || c.ByCounts || c.Barrier || c.Collective == schedule.Custom || c.DType == 0:
		return Explanation{}, errorf("explain: %v has no price: want a collective across replicas, of equal parts and of "+
			"one type", c)
	}
	return c.comm.Explain(c.Collective, int64(c.Bytes), c.DType)
}

// String returns the short name of the call, as errors have it: `all-reduce #3 "layer3/grads"`.
func (c TraceCall) String() string {
	if c.IPUs > 0 {
		return wire.NameWithin(c.Collective) + wire.Quote(c.Name)
	}
	if c.Message {
		f := transport.Call{Collective: wire.SendRecv, Seq: c.Seq, Root: wire.Peers(c.From, c.Replica)}
		switch {
		case c.From < 0 && c.To < 0: // refused: there are no such ranks
			f.Collective, f.Seq = wire.Message, 0
		case c.From < 0:
			f.Collective, f.Root = wire.Send, wire.Peers(c.Replica, c.To)
		case c.To < 0:
			f.Collective = wire.Recv
		}
		return wire.Name(f) + wire.Quote(c.Name)
	}
	number := uint8(c.Collective)
	if c.Barrier {
		number = wire.Barrier
	}
	return wire.Name(transport.Call{Collective: number, Seq: c.Seq}) + wire.Quote(c.Name)
}

// TraceMethod is what MethodChosen tells beside the method, the implementation and the path in its TraceCall.
type TraceMethod struct {
	Rounds int // of this rank, in this phase if there are phases; 0 in a PathLocal; in a PathEngine one for each tensor

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

	// Number is the same where the segment is sent and where it is received. No other segment from the one replica to
	// the other has it in the round. It is 0 on peer memory.
	Number uint64
}

// Path is how the data of a collective goes.
type Path uint8

// The paths. PathMemory, PathRounds and PathSmall need an endpoint with transport.PeerMemory, and PathSmall
// transport.Boards beside it. PathEngine needs one with transport.Native.
const (
	PathUnknown  Path = Path(route.Unknown)  // before MethodChosen
	PathLocal    Path = Path(route.Local)    // nothing is sent: a group of one, or an operator that combines nothing
	PathMessages Path = Path(route.Messages) // rounds of messages
	PathMemory   Path = Path(route.Memory)   // one pass over the peers' memory
	PathRounds   Path = Path(route.Rounds)   // rounds of a schedule on the peers' memory
	PathSmall    Path = Path(route.Small)    // what each member publishes, at most transport.Boards' SmallLimit
	PathEngine   Path = Path(route.Engine)   // a collective of the transport's own engine: methods.Native
)

// String returns words for the path, as in "peer memory".
func (p Path) String() string { return route.Path(p).String() }
