package ir

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// Session runs a program on its replicas, each on a goroutine of its own. It keeps the values of the variables: on the
// host, and between Enter and Exit on the replicas. It is used by one goroutine at a time: a method that is called
// while another one is in progress returns an error and does nothing else. Only Close may be called at any time.
type Session struct {
	program  *Program
	plan     *memoryPlan
	jobCtx   context.Context  // bounds what job is used for outside of runs
	job      Job              // nil: all replicas are this process's
	own      []int            // the replicas of this process, ascending
	replicas []*replica       // of this process, in the order of own
	copies   []copies         // by variable
	values   []*tensor.Tensor // of variables, on the host; nil: the first value, which the program has. See setValue
	entered  int              // Enters without an Exit
	stale    []bool           // by variable: the replicas' values may be newer than the host's
	failed   error            // of a run: the replicas no longer agree

	finishers []Finisher // of what is shared, if the program has a choice

	check finiteCheck

	profiling bool // runs are timed
	profiled  int  // such runs

	ctx   context.Context // of the run in progress
	given context.Context // from which ctx is made
	done  sync.WaitGroup

	serving sync.WaitGroup // goroutines of the replicas and their companions, and the one that watches the job
	unwatch chan struct{}  // closed by Close

	mu     sync.Mutex              // guards what follows
	busy   bool                    // a method is in progress
	idle   sync.Cond               // busy has become false
	closed bool                    // Close has been called
	cancel context.CancelCauseFunc // of ctx
	shared map[any]Shared
	opened []any // keys, in the order of their making
	cause  error // the first error of the run in progress
}

// NewSession plans a program's memory, makes it for every replica, and starts their goroutines, which Close ends. From
// now on nothing can be added to the program. It returns the error that sticks to the program, if there is one.
//
// All replicas are made in this process, unless an option says that it is one of several: see WithJob.
func NewSession(p *Program, options ...SessionOption) (*Session, error) {
	if p == nil || p.main == nil {
		return nil, errors.New("ir: a session of no program")
	}
	var o sessionOptions
	for _, option := range options {
		if option != nil {
			option(&o)
		}
	}
	if err := o.check(p); err != nil {
		if o.job != nil {
			o.job.Abort(err) // the others may wait
		}
		return nil, err
	}
	if !o.stepsGiven {
		o.maxSteps = defaultMaxSteps
	}
	s, err := newSession(p, o)
	if o.job == nil {
		return s, err
	}
	if err == nil {
		if err = o.job.Gather(o.ctx, commgroup.Group{}, nil, nil); err != nil { // all have theirs
			err = errors.Join(fmt.Errorf("ir: %w", err), s.Close())
		}
	}
	if err != nil {
		o.job.Abort(err)
		return nil, err
	}
	return s, nil
}

// newSession makes the session of this process's replicas.
func newSession(p *Program, o sessionOptions) (*Session, error) {
	if err := p.end(); err != nil {
		return nil, err
	}
	own := ownOf(p, o.job)
	if o.job != nil {
		if err := p.compare(o.ctx, o.job); err != nil {
			return nil, err
		}
	}
	for _, v := range p.variables {
		if s, err := v.replicaSpec(v.value, p.replicas); err != nil {
			return nil, fmt.Errorf("ir: %s: %w", v.label(), err)
		} else if !s.Equal(v.sp) {
			return nil, fmt.Errorf("ir: %s is %v on each replica, and was %v when the program had another number of "+
				"replicas", v.label(), s, v.sp)
		}
	}
	if err := p.checkSteps(o.maxSteps); err != nil {
		return nil, err
	}
	plan, err := p.plan()
	if err != nil {
		return nil, err
	}
	s := &Session{program: p, plan: plan, jobCtx: o.ctx, job: o.job, own: own, unwatch: make(chan struct{}),
		shared: map[any]Shared{}, stale: make([]bool, len(p.variables))}
	s.idle.L = &s.mu
	s.check.on = p.checkFinite
	s.values = make([]*tensor.Tensor, len(p.variables))
	for _, v := range p.variables {
		s.copies = append(s.copies, s.newCopiesOf(v))
		if err := s.hostSpec(v).check(); err != nil {
			return nil, fmt.Errorf("ir: %s: %w", v.label(), err)
		}
	}
	for i, id := range own {
		r, err := newReplica(s, i, id)
		if err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, r)
	}
	for _, r := range s.replicas {
		if err := r.bind(); err != nil {
			return nil, errors.Join(err, s.closeShared())
		}
	}
	if chooses(plan.steps) {
		for _, key := range s.opened {
			if f, is := s.shared[key].(Finisher); is {
				s.finishers = append(s.finishers, f)
			}
		}
	}
	if len(s.finishers) > 0 {
		for _, r := range s.replicas {
			r.finishing = r.clocks.of(profileFinish)
		}
	}
	p.sessions = true
	for _, r := range s.replicas {
		r.companion.begin()
		s.serving.Go(r.serve)
	}
	if o.job != nil {
		s.serving.Go(s.watch)
	}
	return s, nil
}

// Close ends the replicas' goroutines, waits for their end, and closes what they share. It does not download variables:
// Exit does. A run in progress ends with an error, and Close waits for its end; so it must not be called from an
// operation of the run.
func (s *Session) Close() error {
	if !s.made() {
		return nil
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	if s.cancel != nil {
		s.cancel(errClosed)
	}
	for s.busy {
		s.idle.Wait()
	}
	s.mu.Unlock()
	for _, r := range s.replicas {
		close(r.start)
		r.companion.end()
	}
	close(s.unwatch)
	s.serving.Wait()
	return s.closeShared()
}

func (s *Session) closeShared() error {
	s.mu.Lock()
	opened := s.opened
	s.opened = nil
	s.mu.Unlock()
	var errs []error
	for _, o := range slices.Backward(opened) {
		errs = append(errs, s.shared[o].Close())
	}
	return errors.Join(errs...)
}

// Share returns what operations of a package share in the session: see Memory.Share. Packages that read and write from
// the host what their operations work on use it between runs.
func (s *Session) Share(key any, open func(replicas int) (Shared, error)) (Shared, error) {
	switch {
	case !s.made():
		return nil, errNotMade
	case key != nil && !reflect.ValueOf(key).Comparable():
		return nil, fmt.Errorf("ir: what is shared cannot be found by a %T, which cannot be compared", key)
	case open == nil:
		return nil, errors.New("ir: no function to open what is shared")
	}
	return s.share(key, open)
}

// Program returns the program that the session runs.
func (s *Session) Program() *Program {
	if s == nil {
		return nil
	}
	return s.program
}

// share implements Memory.Share.
func (s *Session) share(key any, open func(replicas int) (Shared, error)) (Shared, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if x := s.shared[key]; x != nil {
		return x, nil
	}
	x, err := open(s.program.replicas)
	switch {
	case err != nil:
		return nil, err
	case x == nil:
		return nil, errors.New("ir: the function that opens what is shared has returned nil")
	}
	s.shared[key] = x
	s.opened = append(s.opened, key)
	return x, nil
}

func (s *Session) running() context.Context { return s.ctx }
