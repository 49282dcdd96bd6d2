package ir

import (
	"context"
	"errors"
	"fmt"
	"reflect"
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
	replicas []*replica
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

	serving sync.WaitGroup // goroutines of the replicas and their companions

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
func NewSession(p *Program) (*Session, error) {
	if p == nil || p.main == nil {
		return nil, errors.New("ir: a session of no program")
	}
	if err := p.end(); err != nil {
		return nil, err
	}
	for _, v := range p.variables {
		if s, err := v.replicaSpec(v.value, p.replicas); err != nil {
			return nil, fmt.Errorf("ir: %s: %w", v.label(), err)
		} else if !s.Equal(v.sp) {
			return nil, fmt.Errorf("ir: %s is %v on each replica, and was %v when the program had another number of replicas", v.label(), s, v.sp)
		}
	}
	plan, err := p.plan()
	if err != nil {
		return nil, err
	}
	s := &Session{program: p, plan: plan, shared: map[any]Shared{}, stale: make([]bool, len(p.variables))}
	s.idle.L = &s.mu
	s.check.on = p.checkFinite
	s.values = make([]*tensor.Tensor, len(p.variables))
	for _, v := range p.variables {
		if err := s.hostSpec(v).check(); err != nil {
			return nil, fmt.Errorf("ir: %s: %w", v.label(), err)
		}
	}
	for r := range p.replicas {
		own, err := newReplica(s, r)
		if err != nil {
			return nil, err
		}
		s.replicas = append(s.replicas, own)
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
	s.serving.Wait()
	return s.closeShared()
}

func (s *Session) closeShared() error {
	s.mu.Lock()
	opened := s.opened
	s.opened = nil
	s.mu.Unlock()
	var errs []error
	for i := len(opened) - 1; i >= 0; i-- {
		errs = append(errs, s.shared[opened[i]].Close())
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

// HostSpec is what a tensor on the host's side of a stream is like in one run: the replicas' tensors, with a leading
// dimension of the number of replicas if there are several, and before that one of the number of transfers if the
// program makes several.
func (s *Session) HostSpec(stream *Stream) Spec {
	if !s.made() || stream == nil {
		return Spec{}
	}
	out := Spec{DType: stream.sp.DType}
	if k := s.plan.loads[stream]; k > 1 {
		out.Shape = append(out.Shape, k)
	}
	if n := s.program.replicas; n > 1 {
		out.Shape = append(out.Shape, n)
	}
	out.Shape = append(out.Shape, stream.sp.Shape...)
	return out
}

// Run runs the program once. in holds a tensor of HostSpec for each stream to the replicas that the program uses; the
// result, which is the caller's, one for each to the host. Between Enter and Exit variables stay on the replicas;
// otherwise Run does both. A replica that fails makes the others fail too, and no further run is possible. Errors name
// the stream, or the operation and its line. What has been built since the session was made is an error of every run:
// the session does not have it.
func (s *Session) Run(ctx context.Context, in map[*Stream]*tensor.Tensor) (map[*Stream]*tensor.Tensor, error) {
	if !s.made() {
		return nil, errNotMade
	}
	out := map[*Stream]*tensor.Tensor{}
	for _, stream := range s.program.streams {
		if stream.toHost && s.plan.loads[stream] > 0 {
			h := s.HostSpec(stream)
			t, err := tensor.New(h.DType, h.Shape...)
			if err != nil {
				return nil, fmt.Errorf("ir: %v: %w", stream, err)
			}
			out[stream] = t
		}
	}
	if err := s.RunTo(ctx, out, in); err != nil {
		return nil, err
	}
	return out, nil
}

// RunTo is Run into tensors of the caller's, one for each stream to the host that the program uses. It allocates
// nothing, if it is given the same context as the time before and runs between Enter and Exit.
func (s *Session) RunTo(ctx context.Context, out, in map[*Stream]*tensor.Tensor) error {
	if ctx == nil {
		return errors.New("ir: nil context")
	}
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.usable(); err != nil {
		return err
	}
	if err := s.checkStreams(out, in); err != nil {
		return err
	}
	if s.entered == 0 {
		s.enter()
		defer s.exit()
	}
	for _, r := range s.replicas {
		for _, stream := range s.program.streams {
			p := r.ports[stream.index]
			p.at = 0
			if t := pick(out, in, stream); t != nil {
				p.data = t.Bytes()
			}
		}
	}
	if err := s.arm(ctx); err != nil {
		return err
	}
	for i := range s.stale {
		s.stale[i] = true
	}
	if s.profiling {
		s.profiled++
	}
	s.cause = nil
	s.beginCheck()
	s.done.Add(len(s.replicas))
	for _, r := range s.replicas {
		r.start <- struct{}{}
	}
	s.done.Wait()
	for _, r := range s.replicas { // hold on to nobody's data
		for _, p := range r.ports {
			p.data = nil
		}
	}
	found := s.endCheck()
	s.mu.Lock()
	defer s.mu.Unlock()
	if found != nil {
		s.cause = found
	}
	s.failed = s.cause
	return s.cause
}

func pick(out, in map[*Stream]*tensor.Tensor, s *Stream) *tensor.Tensor {
	if s.toHost {
		return out[s]
	}
	return in[s]
}

// checkStreams looks at the tensors of a run.
func (s *Session) checkStreams(out, in map[*Stream]*tensor.Tensor) error {
	given := 0
	for _, stream := range s.program.streams {
		t := pick(out, in, stream)
		used := s.plan.loads[stream] > 0
		switch {
		case !used && t != nil:
			return fmt.Errorf("ir: %v is given a tensor, and the program does not use it", stream)
		case !used:
			continue
		case t == nil:
			return fmt.Errorf("ir: %v is given no tensor, want %v", stream, s.HostSpec(stream))
		case !s.fits(t, stream):
			return fmt.Errorf("ir: %v is given %v, want %v", stream, SpecOf(t), s.HostSpec(stream))
		}
		given++
	}
	if given < len(in)+len(out) {
		return s.stranger(out, in)
	}
	return nil
}

// fits is SpecOf(t).Equal(HostSpec(stream)) without making them.
func (s *Session) fits(t *tensor.Tensor, stream *Stream) bool {
	at := 0
	leading := func(n int) bool {
		if n <= 1 {
			return true
		}
		at++
		return at <= t.Rank() && t.Dim(at-1) == n
	}
	if t.DType() != stream.sp.DType || !leading(s.plan.loads[stream]) || !leading(s.program.replicas) || t.Rank() != at+len(stream.sp.Shape) {
		return false
	}
	for i, n := range stream.sp.Shape {
		if t.Dim(at+i) != n {
			return false
		}
	}
	return true
}

// stranger names a stream that is not of the program, or leads the other way.
func (s *Session) stranger(out, in map[*Stream]*tensor.Tensor) error {
	for i, m := range []map[*Stream]*tensor.Tensor{out, in} {
		for stream := range m {
			switch {
			case stream == nil:
				return errors.New("ir: a tensor is given to no stream")
			case stream.program != s.program:
				return fmt.Errorf("ir: %v is of another program", stream)
			case stream.toHost != (i == 0):
				return fmt.Errorf("ir: %v is given a tensor for the other direction", stream)
			}
		}
	}
	return errors.New("ir: a stream is given nil")
}

// Enter uploads the variables to the replicas, where they stay until Exit. It may be called again before Exit; then it
// does nothing but count.
func (s *Session) Enter() error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.usable(); err != nil {
		return err
	}
	s.enter()
	return nil
}

func (s *Session) enter() {
	if s.entered == 0 {
		for _, v := range s.program.variables {
			s.upload(v)
		}
	}
	s.entered++
}

// Exit downloads the variables to the host, if it is the Exit of the first Enter. The first time takes memory for them.
// After a run that has failed, what the replicas have is not downloaded: the host keeps what it had at Enter, or was
// given by Write. A session that is closed may still be exited.
func (s *Session) Exit() error {
	if err := s.beginClosed(); err != nil {
		return err
	}
	defer s.end()
	if s.entered == 0 {
		return errors.New("ir: an exit from a session without an enter")
	}
	s.exit()
	return nil
}

func (s *Session) exit() {
	if s.entered == 1 && s.failed == nil {
		for _, v := range s.program.variables {
			s.download(v)
		}
	}
	s.entered--
}

// Within enters the session, calls f, and exits.
func (s *Session) Within(f func() error) (err error) {
	if f == nil {
		return errors.New("ir: no function to call within the session")
	}
	if err := s.Enter(); err != nil {
		return err
	}
	defer func() {
		if exit := s.Exit(); exit != nil {
			err = errors.Join(err, exit)
		}
	}()
	return f()
}

// copies is how many values of a variable the host keeps: one for each group, or for each replica.
func (s *Session) copies(v *Variable) int {
	if v.all {
		return s.program.replicas
	}
	return s.groups(v).Groups()
}

// groups are those of a variable.
func (s *Session) groups(v *Variable) commgroup.Layout {
	layout, _ := v.layout(s.program.replicas) // NewSession has looked
	return layout
}

// hostSpec is the spec of a variable's copies on the host.
func (s *Session) hostSpec(v *Variable) Spec {
	out := Spec{DType: v.sp.DType}
	if n := s.copies(v); n > 1 {
		out.Shape = append(out.Shape, n)
	}
	out.Shape = append(out.Shape, v.sp.Shape...)
	return out
}

// part is a replica's value of a variable in copies of the host's: one for each replica, or for each group.
func (s *Session) part(v *Variable, copies *tensor.Tensor, each bool, replica int) []byte {
	k := replica
	if !each {
		k = s.groups(v).GroupOf(replica)
	}
	bytes := v.sp.Bytes()
	return copies.Bytes()[k*bytes : (k+1)*bytes]
}

// hostValue is what the host has of a variable for a replica.
func (s *Session) hostValue(v *Variable, replica int) []byte {
	if t := s.values[v.index]; t != nil {
		return s.part(v, t, v.all, replica)
	}
	return s.part(v, v.value, false, replica)
}

// replicaValue is what a replica has of a variable.
func (s *Session) replicaValue(v *Variable, replica int) []byte {
	return s.replicas[replica].variable(v)
}

// gather copies the values of replicas to a tensor of the host's: of each, or of the first of each group.
func (s *Session) gather(v *Variable, to *tensor.Tensor, value func(v *Variable, replica int) []byte) {
	layout, bytes := s.groups(v), v.sp.Bytes()
	for k := range s.copies(v) {
		r := k
		if !v.all {
			r = layout.Member(k, 0)
		}
		copy(to.Bytes()[k*bytes:(k+1)*bytes], value(v, r))
	}
}

// newCopies makes a tensor for a variable's copies on the host.
func (s *Session) newCopies(v *Variable) *tensor.Tensor {
	host := s.hostSpec(v)
	out, _ := tensor.New(host.DType, host.Shape...) // NewSession has looked
	return out
}

// upload copies a variable from the host to the replicas.
func (s *Session) upload(v *Variable) {
	for r := range s.replicas {
		copy(s.replicaValue(v, r), s.hostValue(v, r))
	}
	s.stale[v.index] = false
}

// setValue gives the host copies of a variable.
func (s *Session) setValue(v *Variable, copies *tensor.Tensor) {
	s.mu.Lock()
	s.values[v.index] = copies
	s.mu.Unlock()
}

// download copies a variable from the replicas to the host.
func (s *Session) download(v *Variable) {
	if !s.stale[v.index] {
		return
	}
	if s.values[v.index] == nil {
		s.setValue(v, s.newCopies(v))
	}
	s.gather(v, s.values[v.index], s.replicaValue)
	s.stale[v.index] = false
}

// Read returns a copy, the caller's, of a variable's value: in the shape of the data that it was made with, or with
// AllReplicas of one value for each replica. Between Enter and Exit it is what the replicas have.
func (s *Session) Read(v *Variable) (*tensor.Tensor, error) {
	if err := s.begin(); err != nil {
		return nil, err
	}
	defer s.end()
	if err := s.owns(v); err != nil {
		return nil, err
	}
	out, value := s.newCopies(v), s.hostValue
	if s.entered > 0 {
		value = s.replicaValue
	}
	s.gather(v, out, value)
	return out, nil
}

// Write changes a variable's value, on the host and, between Enter and Exit, on the replicas. The tensor is copied; it
// must be of the shape and element type of the data that the variable was made with, or with AllReplicas of what Read
// returns.
func (s *Session) Write(v *Variable, value *tensor.Tensor) error {
	if err := s.begin(); err != nil {
		return err
	}
	defer s.end()
	if err := s.owns(v); err != nil {
		return err
	}
	want := SpecOf(v.value)
	switch {
	case value == nil:
		return fmt.Errorf("ir: %s is given no value, want %v", v.label(), want)
	case v.all && SpecOf(value).Equal(s.hostSpec(v)):
		value = value.Clone()
	case !SpecOf(value).Equal(want):
		return fmt.Errorf("ir: %s is given %v, want %v", v.label(), SpecOf(value), want)
	default:
		given := value
		value = s.newCopies(v)
		s.gather(v, value, func(v *Variable, replica int) []byte { return s.part(v, given, false, replica) })
	}
	s.setValue(v, value)
	s.stale[v.index] = false
	if s.entered > 0 {
		s.upload(v)
	}
	return nil
}

// owns returns an error if a variable is not of the program.
func (s *Session) owns(v *Variable) error {
	switch {
	case v == nil:
		return errors.New("ir: no variable")
	case v.index >= len(s.program.variables) || s.program.variables[v.index] != v:
		return fmt.Errorf("ir: %s is of another program", v.label())
	}
	return nil
}
