package ir

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"gogcl.dev/tensor"
)

// replica is one replica of a session: its memory, and the program bound to it.
type replica struct {
	session       *Session
	id            int
	arena         []byte
	variables     []byte
	scratch       []byte
	ports         []*port
	code          []instruction
	places        map[*Variable]*location
	start         chan struct{}
	clocks        clocks
	besideClocks  clocks         // of what is started
	finishing     *time.Duration // in clocks; nil without finishers
	turns         map[*step]*int // of loops
	next          atomic.Int64   // the tick of what it is about to do, for the check; never when it is done
	companion     *companion     // nil: nothing is started
	beside        map[*step]*besideCall
	besideScratch []byte
}

// instruction is a step bound to memory.
type instruction struct {
	run   func() error   // an operation, a copy, a start or a wait
	clock *time.Duration // that run counts for; nil: none of its own
	node  *node

	body, els []instruction // of a loop or a choice
	count     int
	when      []byte // of a choice
	turn      *int   // of a loop: the one in progress

	at      tick // the first of its ticks, from the beginning of the list that it is in
	turnAt  tick // of a loop: the ticks of a turn; of a choice: those of body
	starts  *besideCall
	floats  []*tensor.Tensor // outputs that the check looks at
	numbers []int            // which outputs they are
	sources []source         // inputs, for the error
}

// newReplica makes the replica that is in some place among those of this process.
func newReplica(s *Session, place, id int) (*replica, error) {
	r := &replica{session: s, id: id, start: make(chan struct{}, 1), places: map[*Variable]*location{},
		turns: map[*step]*int{}, beside: map[*step]*besideCall{}}
	for to, bytes := range map[*[]byte]int{&r.arena: s.plan.arena, &r.variables: s.plan.variables,
		&r.scratch: s.plan.scratch, &r.besideScratch: s.plan.besideScratch} {
		var err error
		if *to, err = s.alloc(bytes); err != nil {
			return nil, fmt.Errorf("ir: the memory of a replica: %w", err)
		}
	}
	for _, stream := range s.program.streams {
		bytes := stream.sp.Bytes()
		p := &port{first: place * bytes, stride: s.inTransfer(stream) * bytes}
		if stream.shared {
			p.first = 0
		}
		r.ports = append(r.ports, p)
	}
	for _, x := range s.plan.locations {
		if x.kind == ofVariable {
			r.places[x.variable] = x
		}
	}
	return r, nil
}

func (r *replica) port(s *Stream) *port { return r.ports[s.index] }

// variable is the memory of a variable.
func (r *replica) variable(v *Variable) []byte {
	x := r.places[v]
	return r.variables[x.offset:][:x.spec.Bytes()]
}

// tensor is the memory of a location.
func (r *replica) tensor(x *location) (*tensor.Tensor, error) {
	switch x.kind {
	case ofConstant:
		return x.constant, nil
	case ofVariable:
		return tensor.View(x.spec.DType, x.spec.Shape, r.variables[x.offset:][:x.spec.Bytes()])
	}
	return tensor.View(x.spec.DType, x.spec.Shape, r.arena[x.offset:][:x.spec.Bytes()])
}

// bind makes the instructions.
func (r *replica) bind() (err error) {
	r.code, err = r.bindAll(r.session.plan.steps, false)
	return err
}

// bindAll binds steps, which run beside the replica or on it.
func (r *replica) bindAll(steps []*step, beside bool) ([]instruction, error) {
	out := make([]instruction, 0, len(steps))
	at := tick(0)
	for _, s := range steps {
		i, err := r.bindStep(s, beside)
		if err != nil {
			return nil, s.node.runError(r.id, err)
		}
		i.at = at
		at = addTicks(at, i.ticks())
		out = append(out, i)
	}
	return out, nil
}

func (r *replica) bindStep(s *step, beside bool) (i instruction, err error) {
	i = instruction{node: s.node, count: s.count, clock: r.clock(s, beside)}
	switch {
	case s.from != nil:
		from, err := r.tensor(s.from)
		if err != nil {
			return i, err
		}
		to, err := r.tensor(s.to)
		if err != nil {
			return i, err
		}
		dst, src := to.Bytes(), from.Bytes()
		i.run = func() error {
			copy(dst, src)
			return nil
		}
		if s.turnOf != nil {
			turn := r.turns[s.turnOf]
			i.run = func() error {
				copy(dst[*turn*len(src):], src)
				return nil
			}
		}
		return i, nil
	case s.starts:
		i.run, err = r.bindStart(s)
		i.starts = r.beside[s]
		return i, err
	case s.waits != nil:
		i.run = r.bindWait(s)
		return i, nil
	case s.when != nil || s.count > 0:
		if s.when != nil {
			condition, err := r.tensor(s.when)
			if err != nil {
				return i, err
			}
			i.when = condition.Bytes()
		} else {
			i.turn = new(int)
			r.turns[s] = i.turn
		}
		if i.body, err = r.bindAll(s.body, beside); err != nil {
			return i, err
		}
		i.turnAt = ticksOf(i.body)
		i.els, err = r.bindAll(s.els, beside)
		return i, err
	}
	m := &Memory{Replica: r.id, Replicas: r.session.program.replicas, Beside: beside, session: r.session}
	for _, x := range s.in {
		t, err := r.tensor(x)
		if err != nil {
			return i, err
		}
		m.In = append(m.In, t)
	}
	for _, x := range s.out {
		t, err := r.tensor(x)
		if err != nil {
			return i, err
		}
		m.Out = append(m.Out, t)
	}
	if len(s.node.out) > 0 {
		m.Name = s.node.out[0].name
	}
	if o, is := s.node.op.(Scratcher); is {
		all := r.scratch
		if beside {
			all = r.besideScratch
		}
		m.Scratch = all[:o.ScratchBytes(specsOf(s.node.in))]
	}
	i.watch(s.node, m)
	i.run, err = s.node.op.Bind(m)
	return i, err
}

// serve runs the program each time that it is told to.
func (r *replica) serve() {
	for r.await() {
		if err := r.run(); err != nil {
			if err != errStopped {
				r.session.fail(err)
			}
			r.companion.settle()
		}
		r.session.done.Done()
	}
}

// idleLooks is how often a replica looks for the next run before it parks, where each has a processor: for some 30 µs,
// in which a caller who trains has made the next batch. To wake another thread takes as long or longer.
// BenchmarkPerceptronStep of package bench with n=2, on two cores, medians of five: 178 µs, and 248 without.
const idleLooks = 200

// await waits for the next run. It returns false when there is none.
func (r *replica) await() bool {
	looks := 0
	if r.session.program.replicas <= runtime.GOMAXPROCS(0) {
		looks = idleLooks
	}
	for range looks {
		select {
		case _, more := <-r.start:
			return more
		default:
			runtime.Gosched()
		}
	}
	_, more := <-r.start
	return more
}

// run runs the program once. A panic is an error.
func (r *replica) run() (err error) {
	at, profiling := &instruction{}, r.session.profiling
	var start time.Time
	if profiling {
		start = time.Now()
	}
	defer func() {
		if v := recover(); v != nil {
			err = r.wrap(at, fmt.Errorf("panic: %v\n\n%s", v, debug.Stack()))
		}
		if profiling {
			r.clocks.total += time.Since(start)
		}
	}()
	if err := r.execute(r.code, 0, &r.next, &at); err != nil {
		return err
	}
	if r.session.check.on {
		if err := r.session.reach(&r.next, never); err != nil {
			return err
		}
	}
	if len(r.session.finishers) == 0 {
		return nil
	}
	if profiling {
		end := time.Now()
		defer func() { *r.finishing += time.Since(end) }()
	}
	for _, f := range r.session.finishers {
		if err := f.Finish(r.session.ctx, r.id); err != nil {
			return &endError{r.id, err}
		}
	}
	return nil
}

// endError is an error at the end of a replica's run: it has not run an operation that others have. What they say is
// better.
type endError struct {
	replica int
	err     error
}

func (e *endError) Error() string {
	return fmt.Sprintf("ir: replica %d, at the end of the run: %v", e.replica, e.err)
}

func (e *endError) Unwrap() error { return e.err }

// execute executes instructions, the first of whose ticks is base. next is where the goroutine keeps the tick of what
// it is about to do.
func (r *replica) execute(code []instruction, base tick, next *atomic.Int64, at **instruction) error {
	checking := r.session.check.on
	for k := range code {
		i := &code[k]
		*at = i
		var err error
		if checking && i.run != nil {
			if err := r.session.reach(next, addTicks(base, i.at)); err != nil {
				return err
			}
			if i.starts != nil {
				i.starts.base = addTicks(base, i.at+1)
				i.starts.next.Store(i.starts.base)
			}
		}
		switch {
		case i.run != nil:
			if i.clock != nil && r.session.profiling {
				start := time.Now()
				err = i.run()
				*i.clock += time.Since(start)
			} else {
				err = i.run()
			}
			if err == nil && checking && i.floats != nil {
				err = r.look(i, next, addTicks(base, i.at))
			}
			if err != nil {
				return r.wrap(i, err)
			}
		case i.when != nil:
			body, first := i.els, addTicks(i.at, 1+i.turnAt)
			if i.when[0] != 0 {
				body, first = i.body, i.at+1
			}
			err = r.execute(body, addTicks(base, first), next, at)
		default:
			for n := 0; n < i.count && err == nil; n++ {
				*i.turn = n
				err = r.execute(i.body, addTicks(base, addTicks(i.at+1, mulTicks(i.turnAt, n))), next, at)
			}
		}
		if err != nil {
			return err
		}
		if ctx := r.session.ctx; ctx.Err() != nil { // the caller's, or another replica's error
			return r.wrap(i, context.Cause(ctx))
		}
	}
	return nil
}

func (r *replica) wrap(i *instruction, err error) error {
	if _, is := err.(*RunError); is || i.node == nil || err == errStopped {
		return err
	}
	return i.node.runError(r.id, err)
}

// runError is an error of the node on a replica.
func (n *node) runError(replica int, err error) *RunError {
	e := &RunError{Op: n.op.Name(), Graph: n.graph.name, Replica: replica, Position: n.pos, Err: err}
	for _, t := range slices.Concat(n.out, n.in) {
		if e.Tensor == "" {
			e.Tensor = t.name
		}
	}
	return e
}

// fail notes the error of a replica, and has the others stop.
func (s *Session) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, late := s.cause.(*endError)
	if own, is := err.(*RunError); s.cause == nil || late && is && own.Err != s.cause { // it did not just stop
		s.cause = err
	}
	s.cancel(err)
	s.abortJob(err)
}
