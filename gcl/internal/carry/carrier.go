package carry

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/onepass"
	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// Carrier is what calls on one connection of a replica are carried out with: its end of the transport, its flight
// recorder, and memory that grows and is kept. One call at a time uses it.
type Carrier struct {
	rounds.Runner
	boards transport.Boards // the endpoint, if it offers that; else nil
	engine transport.Native // the endpoint, if it offers that; else nil

	// ProverOf finds the prover of a program's own method by its number, or returns nil.
	ProverOf func(methods.Method) *methods.Prover

	onePass onepass.Pass
	packer  packer
	proofs  *proofs     // if the endpoint shares none with other replicas
	phases  phases.Call // in progress
	staging pack.Staging
}

// Open makes the carrier that of an endpoint. It must not be copied from then on.
func (l *Carrier) Open(endpoint transport.Endpoint, recorder *flight.Recorder) {
	l.Runner, l.proofs = rounds.NewRunner(endpoint, recorder), &proofs{}
	l.boards, _ = endpoint.(transport.Boards)
	l.engine, _ = endpoint.(transport.Native)
	l.onePass = onepass.New(endpoint, &l.staging)
	l.phases = phases.On(endpoint, &l.Observer)
}

// Inspection is what tests may know of how the latest call went.
type Inspection struct {
	Pieces   int  // of the latest call in one pass over peer memory
	Streamed bool // its results were stored past the caches
	Staged   int  // bytes of staging memory
}

// Inspect says how the latest call went.
func (l *Carrier) Inspect() Inspection {
	s := Inspection{Staged: l.staging.Bytes()}
	s.Pieces, s.Streamed = l.onePass.Latest()
	return s
}

// Messages carries out a call that moves messages, and tells how.
func (l *Carrier) Messages(ctx context.Context, m *rounds.Messages) error {
	l.Flight.Choose(methods.Auto, route.Messages)
	if l.Listener != nil {
		l.Listener.Chosen(methods.Auto, route.Messages, false, m.Rounds(), flight.Rings{})
	}
	return l.Pass(ctx, m)
}

// chosen tells how a job is carried out, and in how many rounds.
func (w *Caller) chosen(j *job.Job, r *route.Route, rounds int) {
	l := w.Carrier
	l.Flight.Choose(r.Method, r.Path)
	if l.Listener != nil {
		l.Listener.Chosen(r.Method, r.Path, r.Together, rounds, w.ringsOf(j, r))
	}
}

// ringsOf are the rings that a job goes along by a route.
func (w *Caller) ringsOf(j *job.Job, r *route.Route) (rings flight.Rings) {
	if r.Path == route.Local || !w.onRings(r.Method, j.Collective) {
		return rings
	}
	rings.Members, rings.First = w.Group.Members, w.Group.Rings.First
	if r.Method.Rings() > 1 {
		rings.Second = w.Group.Rings.Second
	}
	return rings
}
