package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
	"gogcl.dev/transport/mpi"
)

// grace is how long replicas may go on after an interrupt, or after one of them has failed.
const grace = 5 * time.Second

// processes starts this program once for each replica, as a job, and returns the exit code when all have ended. Replica
// 0 has the standard output; what the others print goes to standard error.
func (p *program) processes(ctx context.Context, s *settings) int {
	runtime.LockOSThread() // see spawn.Own
	defer runtime.UnlockOSThread()
	children, err := p.start(s, part{n: s.n, args: p.args, stdout: command.File(p.stdout)})
	if err != nil {
		signalAll(children, os.Kill)
		for _, c := range children {
			_ = c.Wait() // killed, as asked for
		}
		p.complain(err)
		return exitWrong
	}
	return p.wait(ctx, children)
}

// wait waits for the end of all replicas, and returns the exit code.
//
//	a replica fails, or an interrupt       grace
//	      |----------------------------------|
//	 the others end by their errors     those left are killed
func (p *program) wait(ctx context.Context, children []*exec.Cmd) int {
	ends := make(chan int)
	for rank, c := range children {
		go func() {
			_ = c.Wait() // the state says it
			ends <- rank
		}()
	}
	code := exitOK
	interrupt := ctx.Done()
	var overdue <-chan time.Time
	forced := false // what ends from now on ends by force
	for running := len(children); running > 0; {
		select {
		case rank := <-ends:
			running--
			if interrupt == nil && rank == 0 {
				signalAll(children[1:], os.Interrupt)
			}
			end := spawn.Ended(children[rank].ProcessState)
			if end.Code == exitOK || forced {
				break
			}
			code = exitWrong
			// Of these codes the replica has said why.
			if end.Code != exitWrong && end.Code != exitInterrupted && end.Code != exitTerminated {
				fmt.Fprintf(p.stderr, "gclperf: replica %d (pid %d) %v\n", rank, children[rank].Process.Pid, end)
			}
			if overdue == nil {
				overdue = time.After(grace)
			}
		case <-interrupt: // replica 0 prints what it has; its end ends the others
			interrupt = nil
			signalAll(children[:1], os.Interrupt)
			overdue = time.After(grace)
		case <-overdue:
			forced = true
			signalAll(children, os.Kill)
		}
	}
	if ctx.Err() != nil && (code != exitOK || forced) {
		return exitInterrupted
	}
	return code
}

// startByMPI has mpirun start the processes: it is the one that is returned.
func (p *program) startByMPI(path string, of part) ([]*exec.Cmd, error) {
	mpirun, err := mpi.Mpirun(of.n)
	if err != nil {
		return nil, err
	}
	c := exec.Command(mpirun[0], append(append(mpirun[1:], path), of.args...)...)
	c.SysProcAttr, c.Stdout, c.Stderr, c.Env = spawn.Own(), of.stdout, p.stderr, append(os.Environ(), of.env...)
	if err := c.Start(); err != nil {
		return nil, err
	}
	return []*exec.Cmd{c}, nil
}

// signalAll sends a signal to processes, some of which may have ended.
func signalAll(children []*exec.Cmd, s os.Signal) {
	for _, c := range children {
		_ = c.Process.Signal(s)
	}
}

// part is a job that is started: all of a run, or with -tune and -sweep that of one number of replicas.
type part struct {
	n      int
	args   []string
	env    []string  // more of the environment
	stdout io.Writer // of replica 0
}

// start starts the processes. After an error it returns those that it has started.
func (p *program) start(s *settings, of part) (children []*exec.Cmd, err error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if s.transport == overMPI {
		return p.startByMPI(path, of)
	}
	env, err := spawn.NewEnvironment(append(os.Environ(), of.env...), of.n, s.transport)
	if err != nil {
		return nil, err
	}
	for rank := range of.n {
		c := exec.Command(path, of.args...)
		c.Env, c.SysProcAttr, c.Stdout, c.Stderr = env.Replica(rank), spawn.Own(), p.stderr, p.stderr
		if rank == 0 {
			c.Stdout = of.stdout
		}
		if err := c.Start(); err != nil {
			return children, fmt.Errorf("replica %d: %w", rank, err)
		}
		children = append(children, c)
	}
	return children, nil
}
