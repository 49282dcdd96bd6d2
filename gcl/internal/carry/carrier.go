package carry

import (
	"errors"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// Carrier is what calls on one connection of a replica are carried out with: its end of the transport, its flight
// recorder, and memory that grows and is kept. One call at a time uses it.
type Carrier struct {
	Endpoint transport.Endpoint
	memory   transport.PeerMemory // the endpoint, if it offers that; else nil
	boards   transport.Boards     // the endpoint, if it offers that; else nil
	engine   transport.Native     // the endpoint, if it offers that; else nil
	Flight   *flight.Recorder
	Listener Listener // nil: nobody wants to know

	// ProverOf finds the prover of a program's own method by its number, or returns nil.
	ProverOf func(methods.Method) *methods.Prover

	onePass onePass
	packer  packer
	proofs  *proofs // if the endpoint shares none with other replicas
	phases  phases  // of the call in progress
	runs    []run
	batch   []transport.Transfer
	bases   []uint32    // tags of the first segments of one fold's messages
	tags    [][2]uint32 // by replica: of the next transfer to it and from it, in the batch that is being made
	scratch []byte      // slots of schedules
	staged  [][]byte    // inputs that are staged
	staging []byte      // inputs and outputs in another form than the caller's
	between []byte      // what a phase of Hybrid leaves for the next
}

// NewCarrier makes the carrier of an endpoint.
func NewCarrier(endpoint transport.Endpoint, recorder *flight.Recorder) Carrier {
	l := Carrier{Endpoint: endpoint, Flight: recorder, proofs: &proofs{}}
	l.memory, _ = endpoint.(transport.PeerMemory)
	l.boards, _ = endpoint.(transport.Boards)
	l.engine, _ = endpoint.(transport.Native)
	l.onePass.memory, l.onePass.boards = l.memory, l.boards
	return l
}

// Listener is told what the call in progress does.
type Listener interface {
	Chosen(w *Caller, r route.Route, rounds int) // how the call, or its phase, is carried out
	StartPhase(phase uint64)                     // of Hybrid, from 1 on
	StartRound(round int)                        // the rank enters it, and so has left the one before
	EndRound(err error)                          // the last one is over, or was called off
	WantsSegments() bool                         // whether to tell of segments
	Segment(peer int, kind transport.Kind, bytes int, number uint64)
}

// ErrCrash is why the communicator is aborted when a call with a listener does not return.
var ErrCrash = errors.New("a panic, or runtime.Goexit, in a collective or a function of its Options.Trace")

// chosen tells how the call in progress is carried out, and in how many rounds.
func (w *Caller) chosen(r *route.Route, rounds int) {
	l := w.Carrier
	l.Flight.Choose(r.Method, r.Path)
	if l.Listener != nil {
		l.Listener.Chosen(w, *r, rounds)
	}
}

// chosenOnePass is chosen for what goes on peer memory without a schedule.
func (w *Caller) chosenOnePass(r *route.Route) {
	w.chosen(r, 1)
	if w.Carrier.Listener != nil {
		w.Carrier.Listener.StartRound(0)
	}
}

// startPhase tells that the rank begins a phase of a call by Hybrid, which is not a call of its own.
func (l *Carrier) startPhase(phase uint64) {
	l.Flight.EnterPhase(phase)
	if l.Listener != nil {
		l.Listener.StartPhase(phase)
	}
}

// startRound tells that the rank enters a round, and so has left the one before.
func (l *Carrier) startRound(round int) {
	l.Flight.Enter(round)
	if l.Listener != nil {
		l.Listener.StartRound(round)
	}
}

// endRound tells that the last round is over, or with an error that it was called off.
func (l *Carrier) endRound(err error) {
	if l.Listener != nil {
		l.Listener.EndRound(err)
	}
}

// segments tells of the transfers of a batch. first is the segment of its message with which each window of the batch
// begins. Both sides know first and the tag, and together they number the messages of a round.
func (l *Carrier) segments(batch []transport.Transfer, first int) {
	if l.Listener == nil || !l.Listener.WantsSegments() {
		return
	}
	for i := range batch {
		number := uint64(first)*(transport.MaxTag+1) + uint64(batch[i].Tag)
		l.Listener.Segment(batch[i].Peer, batch[i].Kind, len(batch[i].Buf), number)
	}
}
