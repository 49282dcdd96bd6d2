package remote

import (
	"errors"

	"gogcl.dev/ir"
)

// Pending is a load that has been started.
type Pending struct {
	dst *ir.Tensor
	op  *startOp
}

// Prefetch adds the start of a load of an entry to a graph. It runs on a goroutine of its own, beside what comes between
// the start and Wait, which must be called; a Store to the entry in between may or may not be seen, but as a whole.
// Within [ir.Graph.InSequence] the start comes where it is written. Errors are those of Load, and a Wait that is
// missing when a session is made.
func Prefetch(g *ir.Graph, b *Buffer, offset int) *Pending {
	op := &startOp{loadOp: loadOp{place{buffer: b, offset: offset}}}
	return &Pending{apply1(op, b, g), op}
}

// PrefetchAt is Prefetch of an entry whose number is computed: a scalar of int32, int64 or uint32.
func PrefetchAt(b *Buffer, offset *ir.Tensor) *Pending {
	op := &startOp{loadOp: loadOp{place{buffer: b, computed: true}}}
	return &Pending{apply1(op, b, nil, offset), op}
}

// Wait adds the end of the load, and returns what is loaded. An error of the load is one of the run, here.
func (p *Pending) Wait() *ir.Tensor {
	p.op.waited = true
	return ir.Apply1(&waitOp{p.op}, nil, p.dst)
}

// startOp starts a load.
type startOp struct {
	loadOp
	waited bool // it has an end
}

func (o *startOp) Name() string   { return "prefetch" }
func (o *startOp) String() string { return "prefetch " + o.place.String() }

func (o *startOp) Bind(m *ir.Memory) (func() error, error) {
	if !o.waited { // the load would go on when its memory is given to other tensors
		return nil, errors.New("it is never waited for: Wait must be called")
	}
	e, offset, err := o.bind(m)
	if err != nil {
		return nil, err
	}
	s, err := storesOf(m, o.buffer.program)
	if err != nil {
		return nil, err
	}
	w := s.worker(m.Replica, o)
	dst := m.Out[0].Bytes()
	return func() error {
		k, err := offset()
		if err != nil {
			return err
		}
		w.load(e, k, dst)
		return nil
	}, nil
}

// waitOp waits for a load.
type waitOp struct{ start *startOp }

func (o *waitOp) Kind() string                          { return "remote" }
func (o *waitOp) Name() string                          { return "wait" }
func (o *waitOp) Infer(in []ir.Spec) ([]ir.Spec, error) { return in, nil }
func (o *waitOp) Updates() []int                        { return []int{0} }
func (o *waitOp) Bind(m *ir.Memory) (func() error, error) {
	s, err := storesOf(m, o.start.buffer.program)
	if err != nil {
		return nil, err
	}
	w := s.worker(m.Replica, o.start)
	return w.wait, nil
}

// worker loads entries beside a replica, one at a time.
type worker struct {
	replica int
	start   *startOp
	asked   chan request
	done    chan error
	pending bool
}

type request struct {
	entries Entries
	offset  int
	dst     []byte
}

// worker finds the worker of a prefetch on a replica, or makes it.
func (s *stores) worker(replica int, start *startOp) *worker {
	for _, w := range s.workers {
		if w.replica == replica && w.start == start {
			return w
		}
	}
	w := &worker{replica: replica, start: start, asked: make(chan request, 1), done: make(chan error, 1)}
	s.workers = append(s.workers, w)
	go func() {
		for r := range w.asked {
			w.done <- r.entries.Load(r.offset, r.dst)
		}
	}()
	return w
}

// load starts a load. One that nobody has waited for ends first.
func (w *worker) load(e Entries, offset int, dst []byte) {
	if w.pending {
		<-w.done
	}
	w.pending = true
	w.asked <- request{e, offset, dst}
}

// wait ends a load.
func (w *worker) wait() error {
	if !w.pending { // it is waited for again
		return nil
	}
	w.pending = false
	return <-w.done
}

// stop ends the worker, and what it is loading.
func (w *worker) stop() {
	close(w.asked)
	if w.pending {
		<-w.done
		w.pending = false
	}
}
