package ir

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/commgroup"
	"gogcl.dev/tensor"
)

// Job connects the processes that run a program between them, each with one replica, and save and load checkpoints
// together. Package collective makes a Job of a gcl.Comm: see collective.Job and WithComm.
//
//	process 0      process 1      process 2      each builds the same program, and makes a session of it
//	replica 0      replica 1      replica 2
//	    └──────────────┴──────────────┘          the Job
//
// Gather is a collective: all processes make the same calls in the same order.
type Job interface {
	// Replica is the replica of this process.
	Replica() int

	// Replicas is the number of all replicas.
	Replicas() int

	// Gather gives every process what the replicas of its group give: dst is src of rank 0, then of rank 1, and so on.
	// src has the same length on all. A length of 0 only waits for the others. ctx bounds the call.
	Gather(ctx context.Context, group commgroup.Group, dst, src []byte) error

	// Alloc returns so many zeros, 1 or more, which begin a cache line. A session has its variables and tensors there.
	// Where processes share memory the others reach it, so that collectives copy nothing; where that fails it is memory
	// as any other. The job keeps no reference to it.
	Alloc(bytes int) ([]byte, error)

	// Done is closed when the job has failed, on whatever process. Err then says why, and before is nil.
	Done() <-chan struct{}
	Err() error

	// Abort makes the job fail on all processes. The first cause stays.
	Abort(cause error)
}

// SessionOption is an option of NewSession.
type SessionOption func(*sessionOptions)

type sessionOptions struct {
	ctx        context.Context // bounds what job is used for outside of runs
	job        Job
	maxSteps   int
	stepsGiven bool
}

// WithJob has a session make the replica of this process only. The other processes of the job make the others, each by
// a session of the same program. What differs in a job:
//
//   - The program has as many replicas as the job. It is the same on all processes, and so are its constants, what its
//     variables begin with, the sessions that they make, and their order. NewSession compares hashes of all that, and
//     returns when all have made theirs.
//   - Streams take and give the tensors of this process's replica, without a leading dimension.
//   - Run is called by all. It returns when this process's replica is done. An error on any replica ends the job, and
//     is an error on all: of the run in progress, or of the next call.
//   - Read returns the value of this process's replica, of a variable with AllReplicas too. Write takes that, or what
//     the variable was made with.
//   - CheckFinite finds the first number of this process's replica. Where several processes find one, any of them may
//     end the job.
//   - Profile is of this process's replica.
//
// ctx bounds what the processes tell each other outside of runs: in NewSession, and where packages remote and rts read
// what several have. A nil Job is none.
func WithJob(ctx context.Context, j Job) SessionOption {
	return func(o *sessionOptions) {
		if o.job = j; j != nil {
			o.ctx = ctx
		}
	}
}

// Own returns the replicas that this process has in the session, in their order: all of them without a Job.
func (s *Session) Own() []int {
	if s == nil {
		return nil
	}
	return slices.Clone(s.own)
}

// Own returns the replicas that this process has in the session: see Session.Own.
func (m *Memory) Own() []int {
	if m == nil {
		return nil
	}
	return m.session.Own()
}

// Job returns what connects the session's processes, and the context that bounds what they tell each other outside of
// runs: those given to WithJob. Both are nil if there is but this process.
func (s *Session) Job() (context.Context, Job) {
	if s == nil {
		return nil, nil
	}
	return s.jobCtx, s.job
}

// Job returns what connects the session's processes: see Session.Job.
func (m *Memory) Job() (context.Context, Job) {
	if m == nil {
		return nil, nil
	}
	return m.session.Job()
}

// replica is the one with a number, which is one of Own.
func (s *Session) replica(id int) *replica {
	i, _ := slices.BinarySearch(s.own, id)
	return s.replicas[i]
}

// alloc is memory of a replica, which begins a cache line. In a job it is of the job.
func (s *Session) alloc(bytes int) ([]byte, error) {
	if s.job == nil || bytes == 0 {
		t, err := tensor.New(tensor.U8, bytes)
		return t.Bytes(), err
	}
	b, err := s.job.Alloc(bytes)
	if err == nil && len(b) != bytes {
		err = fmt.Errorf("the job's Alloc returned %d bytes, want %d", len(b), bytes)
	}
	return b, err
}

var errNoContext = errors.New("ir: WithJob and collective.WithComm need a context")

// check returns an error if the job is of another size than the program, or cannot be used.
func (o *sessionOptions) check(p *Program) error {
	switch j := o.job; {
	case j == nil:
		return nil
	case o.ctx == nil:
		return errNoContext
	case p.err != nil:
		return nil // which end reports
	case j.Replicas() != p.replicas:
		return fmt.Errorf("ir: the program has %d replicas, and the job has %d", p.replicas, j.Replicas())
	case j.Replica() < 0 || j.Replica() >= p.replicas:
		return fmt.Errorf("ir: the job says that this process has replica %d of %d", j.Replica(), p.replicas)
	}
	return nil
}

// ownOf are the replicas of this process.
func ownOf(p *Program, j Job) []int {
	if j != nil {
		return []int{j.Replica()}
	}
	own := make([]int, p.replicas)
	for r := range own {
		own[r] = r
	}
	return own
}

// watch ends the run in progress when the job fails, until the session is closed.
func (s *Session) watch() {
	select {
	case <-s.job.Done():
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cancel != nil {
			s.cancel(s.job.Err())
		}
	case <-s.unwatch:
	}
}

// jobError is the error of a job that has failed.
func (s *Session) jobError() error {
	if s.job == nil {
		return nil
	}
	if err := s.job.Err(); err != nil {
		return fmt.Errorf("ir: %w", err)
	}
	return nil
}

// abortJob tells the other processes of an error of this one.
func (s *Session) abortJob(err error) {
	if s.job != nil && !errors.Is(err, errClosed) {
		s.job.Abort(err)
	}
}
