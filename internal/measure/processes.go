package measure

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

// terminated is the exit code of a process after SIGTERM.
const terminated = 143

// grace is how long replicas may go on after an interrupt, or after one of them has failed.
const grace = 5 * time.Second

// Job is a job of processes that a Program starts.
type Job struct {
	N         int
	Transport string
	Args      []string
	Env       []string  // more of the environment
	Stdout    io.Writer // of replica 0
}

// Start starts this program once for each replica, as a job, and returns the exit code when all have ended. What the
// replicas other than 0 print goes to standard error.
func (p *Program) Start(ctx context.Context, job Job) int {
	runtime.LockOSThread() // see spawn.Own
	defer runtime.UnlockOSThread()
	children, err := p.start(job)
	if err != nil {
		signalAll(children, os.Kill)
		for _, c := range children {
			_ = c.Wait() // killed, as asked for
		}
		p.Complain(err)
		return command.Failed
	}
	return p.wait(ctx, children)
}

// wait waits for the end of all replicas, and returns the exit code.
//
//	a replica fails, or an interrupt       grace
//	      |----------------------------------|
//	 the others end by their errors     those left are killed
func (p *Program) wait(ctx context.Context, children []*exec.Cmd) int {
	ends := make(chan int)
	for rank, c := range children {
		go func() {
			_ = c.Wait() // the state says it
			ends <- rank
		}()
	}
	code := command.OK
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
			if end.Code == command.OK || forced {
				break
			}
			code = command.Failed
			// Of these codes the replica has said why.
			if end.Code != command.Failed && end.Code != command.Interrupted && end.Code != terminated {
				fmt.Fprintf(p.Stderr, "%s: replica %d (pid %d) %v\n", p.Name, rank, children[rank].Process.Pid, end)
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
	if ctx.Err() != nil && (code != command.OK || forced) {
		return command.Interrupted
	}
	return code
}

// startByMPI has mpirun start the processes: it is the one that is returned.
func (p *Program) startByMPI(path string, job Job) ([]*exec.Cmd, error) {
	mpirun, err := mpi.Mpirun(job.N)
	if err != nil {
		return nil, err
	}
	c := exec.Command(mpirun[0], append(append(mpirun[1:], path), job.Args...)...)
	c.SysProcAttr, c.Stdout, c.Stderr, c.Env = spawn.Own(), job.Stdout, p.Stderr, append(os.Environ(), job.Env...)
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

// start starts the processes. After an error it returns those that it has started.
func (p *Program) start(job Job) (children []*exec.Cmd, err error) {
	path, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if job.Transport == overMPI {
		return p.startByMPI(path, job)
	}
	env, err := spawn.NewEnvironment(append(os.Environ(), job.Env...), job.N, job.Transport)
	if err != nil {
		return nil, err
	}
	for rank := range job.N {
		c := exec.Command(path, job.Args...)
		c.Env, c.SysProcAttr, c.Stdout, c.Stderr = env.Replica(rank), spawn.Own(), p.Stderr, p.Stderr
		if rank == 0 {
			c.Stdout = job.Stdout
		}
		if err := c.Start(); err != nil {
			return children, fmt.Errorf("replica %d: %w", rank, err)
		}
		children = append(children, c)
	}
	return children, nil
}
