package rounds

import (
	"context"

	"gogcl.dev/gcl/internal/carry/opened"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/transport"
)

// Runner is what rounds are carried out with: one connection's end of the transport, who follows the call, and memory
// that grows and is kept. One call at a time uses it.
type Runner struct {
	Endpoint transport.Endpoint
	Memory   transport.PeerMemory // the endpoint, if it offers that; else nil
	lengths  opened.Lengths
	flight.Observer

	runs    []Run
	batch   []transport.Transfer
	bases   []uint32    // tags of the first segments of one fold's messages
	tags    [][2]uint32 // by replica: of the next transfer to it and from it, in the batch that is being made
	scratch []byte      // slots of schedules

	heads [2][headBytes]byte // of Messages: the one sent, and the one received
}

// NewRunner makes the runner of an endpoint.
func NewRunner(endpoint transport.Endpoint, recorder *flight.Recorder) Runner {
	r := Runner{Endpoint: endpoint, lengths: opened.On(endpoint), Observer: flight.Observer{Flight: recorder}}
	r.Memory, _ = endpoint.(transport.PeerMemory)
	return r
}

// Runs is memory for the runs of a call, as good as empty.
func (l *Runner) Runs() []Run { return l.runs[:0] }

// Carry has an executor carry out runs, and holds on to nobody's buffers.
func (l *Runner) Carry(ctx context.Context, e Executor, runs []Run) error {
	l.runs = runs
	err := e.Execute(ctx, runs)
	clear(runs)
	return err
}
