package remote

import (
	"runtime"

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
	w := s.prefetched(m, o)
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
	w := s.prefetched(m, o.start)
	return w.wait, nil
}

// worker loads entries beside a replica, one after the other.
type worker struct {
	asked chan request
	loads map[*startOp]*prefetched
	looks int // how often to look before it parks
}

// prefetched is a prefetch of a replica: one place in the program.
type prefetched struct {
	worker  *worker
	done    chan error
	pending bool
}

type request struct {
	entries Entries
	offset  int
	dst     []byte
	done    chan error
}

// prefetchQueue is how many loads may wait for the one that runs before it is waited for to start another.
const prefetchQueue = 64

// prefetchLooks is how often a replica or its worker, where each has a processor of its own, looks for the other before it
// parks: for some 100 us (two-core EPYC), where to wake who is parked takes 50 us.
const prefetchLooks = 1000

// look receives from a channel: it looks so many times before it parks.
func look[T any](from chan T, looks int) (v T, ok bool) {
	for range looks {
		select {
		case v, ok = <-from:
			return v, ok
		default:
			runtime.Gosched()
		}
	}
	v, ok = <-from
	return v, ok
}

// prefetched finds a prefetch on a replica, or makes it, and if it is the first the replica's worker.
func (s *stores) prefetched(m *ir.Memory, start *startOp) *prefetched {
	for len(s.workers) <= m.Replica {
		s.workers = append(s.workers, nil)
	}
	w := s.workers[m.Replica]
	if w == nil {
		w = &worker{asked: make(chan request, prefetchQueue), loads: map[*startOp]*prefetched{}}
		if 2*m.Replicas <= runtime.GOMAXPROCS(0) {
			w.looks = prefetchLooks
		}
		s.workers[m.Replica] = w
		go w.serve()
	}
	if w.loads[start] == nil {
		w.loads[start] = &prefetched{worker: w, done: make(chan error, 1)}
	}
	return w.loads[start]
}

func (w *worker) serve() {
	for {
		r, more := look(w.asked, w.looks)
		if !more {
			return
		}
		r.done <- r.entries.Load(r.offset, r.dst)
	}
}

// load starts a load. One that nobody has waited for ends first.
func (p *prefetched) load(e Entries, offset int, dst []byte) {
	if p.pending {
		<-p.done
	}
	p.pending = true
	p.worker.asked <- request{e, offset, dst, p.done}
}

// wait ends a load.
func (p *prefetched) wait() error {
	if !p.pending { // it is waited for again
		return nil
	}
	p.pending = false
	err, _ := look(p.done, p.worker.looks)
	return err
}

// stop ends the worker, and what it is loading.
func (w *worker) stop() {
	if w == nil {
		return
	}
	close(w.asked)
	for _, p := range w.loads {
		if p.pending {
			<-p.done
			p.pending = false
		}
	}
}
