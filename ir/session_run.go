package ir

import (
	"context"
	"errors"
	"fmt"

	"gogcl.dev/tensor"
)

// HostSpec is what a tensor on the host's side of a stream is like in one run: the tensors of this process's replicas,
// with a leading dimension of their number if there are several, and before that one of the number of transfers if the
// program makes several. Of a stream of HostToAll the replicas have one tensor.
func (s *Session) HostSpec(stream *Stream) Spec {
	if !s.made() || stream == nil {
		return Spec{}
	}
	out := Spec{DType: stream.sp.DType}
	if k := s.plan.loads[stream]; k > 1 {
		out.Shape = append(out.Shape, k)
	}
	if n := s.inTransfer(stream); n > 1 {
		out.Shape = append(out.Shape, n)
	}
	out.Shape = append(out.Shape, stream.sp.Shape...)
	return out
}

// inTransfer is how many tensors a transfer has on the host's side.
func (s *Session) inTransfer(stream *Stream) int {
	if stream.shared {
		return 1
	}
	return len(s.own)
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
	if t.DType() != stream.sp.DType || !leading(s.plan.loads[stream]) || !leading(s.inTransfer(stream)) ||
		t.Rank() != at+len(stream.sp.Shape) {
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
