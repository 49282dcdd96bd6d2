package flight

import (
	"errors"

	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// Observer follows the call in progress on one connection: its recorder always, a Listener if there is one. Who has the
// connection's turn uses it.
type Observer struct {
	Flight   *Recorder
	Listener Listener // nil: nobody wants to know
}

// Listener is told what the call in progress does.
type Listener interface {
	// Chosen says how the call, or its phase, is carried out, and whether replicas step together. It gets no
	// route.Route: to copy one that has just been written stalls.
	Chosen(m methods.Method, p route.Path, together bool, rounds int, rings Rings)

	StartPhase(phase uint64) // of Hybrid, from 1 on
	StartRound(round int)    // the rank enters it, and so has left the one before
	EndRound(err error)      // the last one is over, or was called off
	WantsSegments() bool     // whether to tell of segments
	Segment(peer int, kind transport.Kind, bytes int, number uint64)
}

// Rings are the rings that a schedule goes along: the members of a group by rank, and the ranks in the order of each
// ring. The zero value: it goes along none.
type Rings struct{ Members, First, Second []int }

// ErrCrash is why the communicator is aborted when a call with a listener does not return.
var ErrCrash = errors.New("a panic, or runtime.Goexit, in a collective or a function of its Options.Trace")

// StartPhase tells that the rank begins a phase of a call by Hybrid, which is not a call of its own.
func (o *Observer) StartPhase(phase uint64) {
	o.Flight.EnterPhase(phase)
	if o.Listener != nil {
		o.Listener.StartPhase(phase)
	}
}

// StartRound tells that the rank enters a round, and so has left the one before.
func (o *Observer) StartRound(round int) {
	o.Flight.Enter(round)
	if o.Listener != nil {
		o.Listener.StartRound(round)
	}
}

// EndRound tells that the last round is over, or with an error that it was called off.
func (o *Observer) EndRound(err error) {
	if o.Listener != nil {
		o.Listener.EndRound(err)
	}
}

// Segments tells of the transfers of a batch. first is the segment of its message with which each window of the batch
// begins. Both sides know first and the tag, and together they number the messages of a round.
func (o *Observer) Segments(batch []transport.Transfer, first int) {
	if o.Listener == nil || !o.Listener.WantsSegments() {
		return
	}
	for i := range batch {
		number := uint64(first)*(transport.MaxTag+1) + uint64(batch[i].Tag)
		o.Listener.Segment(batch[i].Peer, batch[i].Kind, len(batch[i].Buf), number)
	}
}
