package ir

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// ErrNotFinite is in the error of a run that [Session.CheckFinite] has ended.
var ErrNotFinite = errors.New("not a finite number")

// CheckFinite says that sessions of the program begin with [Session.CheckFinite] on. It is said before the session is
// made.
func (p *Program) CheckFinite(on bool) {
	if p != nil {
		p.checkFinite = on
	}
}

// CheckFinite says whether runs from now on look for NaN and infinity. Each replica looks at every float that an
// operation has made or changed, at once after the operation. A run that meets one fails: its error, a *RunError that
// wraps ErrNotFinite, says which operation and line, which replica and which element was the first, in the order of the
// program and then of the replicas. It is the same whatever the replicas' speeds. No replica goes on beyond the first
// operation that it sees to be bad, so that what would be stored later is not stored; and as after any failure the
// session cannot run again, and the host keeps the variables that it had. Infinities that a program means, as in a
// mask, are found too: use a large number.
//
// It costs a reading of all that is written. Processor time of examples/charlm and examples/embedding, one replica: not
// to be told from the 10 % that runs differ by; additions and nothing else (BenchmarkCheckFinite, float32): 1.4 times
// as long at 64 bytes, up to four times as long in the cache. A session without it pays nothing.
func (s *Session) CheckFinite(on bool) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	s.check.on = on
	return nil
}

// A tick numbers all that a program does, in its order: an operation has one tick; a loop as many as its body for
// each turn; a choice those of both branches, one after the other; a start those of what it starts. Replicas that have
// taken different ways agree on the ticks.
type tick = int64

// never is a tick after all others.
const never = math.MaxInt64

// ticks is how many an instruction has.
func (i *instruction) ticks() tick {
	switch {
	case i.starts != nil:
		return addTicks(1, ticksOf(i.starts.code))
	case i.when != nil:
		return addTicks(1, addTicks(i.turnAt, ticksOf(i.els)))
	case i.run == nil:
		return addTicks(1, mulTicks(i.turnAt, i.count))
	}
	return 1
}

// ticksOf is how many a list of instructions has.
func ticksOf(code []instruction) tick {
	if len(code) == 0 {
		return 0
	}
	last := &code[len(code)-1]
	return addTicks(last.at, last.ticks())
}

// addTicks and mulTicks stay below never/2 however large the loops are: what lies beyond is not reached in a lifetime.
func addTicks(a, b tick) tick { return min(a+b, never/2) }

func mulTicks(a tick, n int) tick {
	if a > 0 && int64(n) > never/2/a {
		return never / 2
	}
	return a * int64(n)
}

// errStopped ends a replica's part of a run that has failed by the check; the session has the error.
var errStopped = errors.New("ir: the run has come to a number that is not finite")

// finiteCheck is what a session knows of the check of the run in progress. A replica stops where it finds something,
// or where it comes beyond what another has found. The run is cancelled, for the sake of those who wait for one that
// has stopped, when everyone has come beyond the earliest finding: nothing earlier can be found then.
type finiteCheck struct {
	on    bool
	bound atomic.Int64 // the earliest tick at which something was found; never: nothing

	mu    sync.Mutex // guards what follows
	found *RunError  // at bound, of the lowest replica
	late  *time.Timer
}

// lateAfter is how long a finding waits for replicas that do not come so far: they wait in an operation that the
// program does not have on all replicas, or take very long for one.
const lateAfter = 10 * time.Second

// beginCheck makes the check ready for a run.
func (s *Session) beginCheck() {
	if !s.check.on {
		return
	}
	s.check.bound.Store(never)
	s.check.found = nil
	for _, r := range s.replicas {
		r.next.Store(0)
		for _, call := range r.beside {
			call.next.Store(never)
		}
	}
}

// endCheck returns what the run has found, or nil.
func (s *Session) endCheck() error {
	c := &s.check
	if !c.on {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.late != nil {
		c.late.Stop()
		c.late = nil
	}
	if c.found == nil {
		return nil
	}
	return c.found
}

// reach says that a goroutine of a replica is about to do what has a tick. It returns errStopped beyond a finding.
func (s *Session) reach(next *atomic.Int64, at tick) error {
	next.Store(at)
	bound := s.check.bound.Load()
	if bound == never {
		return nil
	}
	if at > bound {
		next.Store(never)
	}
	s.settle()
	if at > bound {
		return errStopped
	}
	return nil
}

// settle cancels the run if everyone has come beyond the earliest finding.
func (s *Session) settle() {
	bound := s.check.bound.Load()
	for _, r := range s.replicas {
		if r.next.Load() <= bound {
			return
		}
		for _, call := range r.beside {
			if call.next.Load() <= bound {
				return
			}
		}
	}
	s.stopAll()
}

func (s *Session) stopAll() {
	s.check.mu.Lock()
	found := s.check.found
	s.check.mu.Unlock()
	if found != nil {
		s.fail(found)
	}
}

// look looks at what an operation has made. If it finds something, it notes that and returns errStopped.
func (r *replica) look(i *instruction, next *atomic.Int64, at tick) error {
	for k, t := range i.floats {
		e := notFinite(t)
		if e < 0 {
			continue
		}
		c := &r.session.check
		c.mu.Lock()
		if bound := c.bound.Load(); at < bound || at == bound && r.id < c.found.Replica {
			c.found = i.node.runError(r.id, r.finding(i, k, e))
			c.bound.Store(at)
		}
		if c.late == nil {
			c.late = time.AfterFunc(lateAfter, r.session.stopAll)
		}
		c.mu.Unlock()
		next.Store(never)
		r.session.settle()
		return errStopped
	}
	return nil
}

// finding is the error of element e of output k.
func (r *replica) finding(i *instruction, k, e int) error {
	where := fmt.Sprintf("element %d of %v", e, SpecOf(i.floats[k]))
	if len(i.floats) > 1 {
		where = fmt.Sprintf("output %d: %s", i.numbers[k], where)
	}
	was := ""
	for _, in := range i.sources {
		if first := notFinite(in.tensor); first >= 0 { // no operation has made it: a variable or a constant
			was = fmt.Sprintf("; %v, an input, has %v at element %d", in.of, valueOf(in.tensor, first), first)
			break
		}
	}
	return fmt.Errorf("%s is %v, %w%s", where, valueOf(i.floats[k], e), ErrNotFinite, was)
}

// source is an input that an operation does not change.
type source struct {
	of     *Tensor
	tensor *tensor.Tensor
}

// watch has an instruction know the floats that are looked at.
func (i *instruction) watch(n *node, m *Memory) {
	for k, t := range m.Out {
		if t.DType().IsFloat() {
			i.floats, i.numbers = append(i.floats, t), append(i.numbers, k)
		}
	}
	for k, t := range m.In {
		if t.DType().IsFloat() && !n.changesInput(k) {
			i.sources = append(i.sources, source{n.in[k], t})
		}
	}
}

// notFinite is the first element of a tensor that is NaN or infinite, or -1.
func notFinite(t *tensor.Tensor) int { return kernel.NotFinite(kernel.Type(t.DType()), t.Bytes()) }

// valueOf is element i of a tensor of floats.
func valueOf(t *tensor.Tensor, i int) any {
	switch t.DType() {
	case tensor.F16:
		v, _ := tensor.Of[tensor.Float16](t)
		return v[i]
	case tensor.BF16:
		v, _ := tensor.Of[tensor.BFloat16](t)
		return v[i]
	case tensor.F32:
		v, _ := tensor.Of[float32](t)
		return v[i]
	}
	v, _ := tensor.Of[float64](t)
	return v[i]
}
