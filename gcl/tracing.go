package gcl

import (
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// tracing is a connection's call in progress as its Trace sees it. It is used by whoever has the connection's turn.
type tracing struct {
	trace *Trace    // nil: nobody wants to know
	call  TraceCall // the last, while trace is nil
	open  bool      // a round has begun and not ended
	round int
}

// endTrace tells of the end of the call, and returns when that was, by ticks.Now; 0: nobody wanted to know.
func (l *connection) endTrace(err error) int64 {
	t := &l.tracing
	if t.trace == nil {
		return 0
	}
	t.leaveRound(err)
	t.call.ended = 0
	if f := t.trace.CollectiveEnd; f != nil {
		t.call.ended = ticks.Now()
		f(t.call, err)
	}
	l.silence()
	return t.call.ended
}

// silence ends the telling.
func (l *connection) silence() { l.tracing.trace, l.tracing.open, l.Listener = nil, false, nil }

// Chosen implements flight.Listener.
func (t *tracing) Chosen(m methods.Method, p route.Path, together bool, rounds int, rings flight.Rings) {
	t.call.Method, t.call.Path = m, Path(p)
	t.call.Implementation = Implementation(route.Traced(p, together, t.call.Phase))
	if t.trace.MethodChosen == nil {
		return
	}
	t.trace.MethodChosen(t.call, TraceMethod{Rounds: rounds,
		Ring: inOrder(rings.Members, rings.First), Second: inOrder(rings.Members, rings.Second)})
}

// inOrder is the members in the order of a ring of ranks; nil for no ring.
func inOrder(members, ring []int) []int {
	if ring == nil {
		return nil
	}
	out := make([]int, len(ring))
	for i, rank := range ring {
		out[i] = members[rank]
	}
	return out
}

// StartPhase implements flight.Listener.
func (t *tracing) StartPhase(phase uint64) { t.call.Phase = int(phase) }

// StartRound implements flight.Listener.
func (t *tracing) StartRound(round int) {
	t.leaveRound(nil)
	t.open, t.round = true, round
	if f := t.trace.RoundStart; f != nil {
		f(t.call, round)
	}
}

// EndRound implements flight.Listener.
func (t *tracing) EndRound(err error) { t.leaveRound(err) }

// WantsSegments implements flight.Listener.
func (t *tracing) WantsSegments() bool { return t.trace.Segment != nil }

// Segment implements flight.Listener.
func (t *tracing) Segment(peer int, kind transport.Kind, bytes int, number uint64) {
	t.trace.Segment(t.call, t.round, TraceSegment{Peer: peer, Kind: kind, Bytes: bytes, Number: number})
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
