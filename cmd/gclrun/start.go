package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"time"

	"gogcl.dev/internal/spawn"
)

// replica is one process of the job, and the process group that it leads.
type replica struct {
	rank           int
	cmd            *exec.Cmd
	stdout, stderr *os.File // the ends that gclrun reads
	gone           bool     // nothing is left of the process and of its group
	ended          time.Time
	dying          time.Time // when the first failed, if the process was ending then; else zero
}

// startError is the error of a program that cannot be started.
type startError struct{ err error }

func (e *startError) Error() string { return e.err.Error() }
func (e *startError) Unwrap() error { return e.err }

// start starts the replicas. After an error none is left. cores is empty, or has a core for each replica.
//
// The calling goroutine stays locked to its thread: a replica dies with the thread that has started it (spawn.Own).
func (s *settings) start(cores []int) ([]*replica, error) {
	runtime.LockOSThread()
	var err error
	if s.path, err = exec.LookPath(s.program[0]); err != nil {
		return nil, &startError{err}
	}
	if s.env, err = spawn.NewEnvironment(os.Environ(), s.n, s.transport); err != nil {
		return nil, err
	}
	s.cores = cores
	in, err := newInput(os.Stdin)
	if err != nil {
		return nil, err
	}
	var replicas []*replica
	for rank := range s.n {
		r := s.replica(rank)
		if rank == 0 {
			r.cmd.Stdin = in.child
		}
		err := s.launch(r)
		if r.cmd.Process != nil {
			replicas = append(replicas, r)
		}
		if err != nil {
			abandon(replicas)
			return nil, fmt.Errorf("replica %d: %w", rank, err)
		}
	}
	in.feed()
	return replicas, nil
}

// replica is one that has not been started.
func (s *settings) replica(rank int) *replica {
	return &replica{rank: rank, cmd: &exec.Cmd{Path: s.path, Args: s.program, Env: s.env.Replica(rank),
		SysProcAttr: spawn.Own()}}
}

// launch starts a replica, on its core.
func (s *settings) launch(r *replica) error {
	if s.bind {
		return onCore(s.cores[r.rank], r.start)
	}
	return r.start()
}

// again starts a process in the place of a replica that has failed. The calling goroutine is that of start.
func (s *settings) again(rank int) (*replica, error) {
	r := s.replica(rank)
	r.cmd.Env = append(r.cmd.Env, "GCL_NEWCOMER=1")
	if err := s.launch(r); err != nil {
		return nil, fmt.Errorf("a process in the place of replica %d: %w", rank, err)
	}
	return r, nil
}

// start starts the replica with two pipes for its output.
func (r *replica) start() (err error) {
	var out, errs *os.File
	if r.stdout, out, err = os.Pipe(); err != nil {
		return err
	}
	defer out.Close()
	if r.stderr, errs, err = os.Pipe(); err != nil {
		return err
	}
	defer errs.Close()
	r.cmd.Stdout, r.cmd.Stderr = out, errs
	if err := r.cmd.Start(); err != nil {
		return &startError{err}
	}
	return nil
}

// abandon kills replicas whose job will not be, and waits for their end.
func abandon(replicas []*replica) {
	for _, r := range replicas {
		r.signal(os.Kill)
		_ = r.cmd.Wait() // killed, as asked for
	}
}
