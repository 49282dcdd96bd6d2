package gcl

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"weak"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/internal/watch"
	"gogcl.dev/transport"
)

// The variables that say where others see what a process does. They are read when a communicator is made.
const (
	varStatus  = "GCL_STATUS"   // "off": the process does not answer gclrun status
	varDumpDir = "GCL_DUMP_DIR" // where it writes what it knows when the communicator fails, or a call waits long
)

// fileCalls is how many calls of a connection a file has, of a process of few replicas.
const (
	fileCalls   = 32
	fewReplicas = 128
)

// beSeen says which job the communicator is, and has others see what becomes of it: a process of a job answers those
// that ask for its state, and any writes a file when the communicator fails.
func (c *Comm) beSeen() {
	all, cfg := c.conn.flights, c.conn.made
	run := cfg.run
	if run == "" {
		run = rand.Text()
	}
	first := all.Identify(watch.Process{Job: cfg.job, Run: run, Size: c.Replicas(), Host: watch.Hostname(),
		Program: filepath.Base(os.Args[0]), Transport: c.group.link.Transport})
	if !first { // another Comm of the process has done all this
		return
	}
	if dir := os.Getenv(varDumpDir); dir != "" {
		c.writeWhenFailed(dir)
	}
	if status := os.Getenv(varStatus); cfg.process && status != "off" {
		if status != "" {
			slog.Warn("gcl: GCL_STATUS is neither off nor empty: gclrun status sees this process", "value", status)
		}
		c.answer(cfg.job, run)
	}
}

// answer has the process answer those that ask for its state. That it cannot is no reason not to work.
func (c *Comm) answer(job, run string) {
	kept := weak.Make(c.conn.flights) // a Comm that nobody has any more is collected
	dir, err := watch.Dir()
	if err == nil {
		var door interface{ Close() error }
		door, err = watch.Answer(dir, run, c.Replica(), func(others bool) watch.Job {
			switch all := kept.Value(); {
			case all == nil:
				return watch.Job{Name: job, Run: run}
			case others:
				return all.Job(1, watch.OthersTime)
			default:
				out := all.Job(1, 0)
				all.Stacks(&out.Processes[0])
				return out
			}
		})
		if err == nil {
			c.conn.flights.AtEnd(func() { _ = door.Close() }) // nobody can do anything about it
		}
	}
	if err != nil {
		slog.Debug("gcl: gclrun status does not see this process", "replica", c.Replica(), "error", err)
	}
}

// writeWhenFailed writes a file when the communicator fails.
func (c *Comm) writeWhenFailed(dir string) {
	all, done, over := c.conn.flights, c.Done(), make(chan struct{})
	kept := weak.Make(all)
	var writing sync.WaitGroup
	writing.Go(func() {
		select {
		case <-over:
		case <-done:
			if all := kept.Value(); all != nil {
				writeState(dir, all, nil)
			}
		}
	})
	all.AtEnd(func() {
		select {
		case <-done: // it is being written, perhaps
		default:
			close(over)
		}
		writing.Wait()
	})
}

// writeState writes a file with what the process knows, and with what others have said. Where that cannot be, standard
// error has it.
func writeState(dir string, all *flight.Recorders, heard []watch.Process) {
	state := all.State(1)
	if len(state.Replicas) <= fewReplicas {
		state = all.State(fileCalls)
	}
	state.Heard = heard
	all.Stacks(&state)
	if _, err := watch.WriteFile(dir, state); err != nil {
		fmt.Fprintf(os.Stderr, "gcl: what this process knows cannot be written: %v\n%s", err, all.Now())
	}
}

// failure is why calls of the connection would fail, nil if they would not.
func (l *connection) failure() *watch.Failure {
	var (
		abort  *transport.AbortError
		closed *transport.ClosedError
		err    = l.Endpoint.Err()
		f      = &watch.Failure{Replica: -1}
	)
	if errors.As(err, &abort) {
		f.Replica = abort.Replica
	}
	lost, _ := rootIn[*transport.LostError](err)
	mismatch, _ := rootIn[*transport.MismatchError](err)
	deadlock, _ := rootIn[*transport.DeadlockError](err)
	switch {
	case err == nil, abort == nil && errors.As(err, &closed): // this replica has left
		return nil
	case lost != nil:
		f.Replica, f.Kind = lost.Replica, watch.Lost
	case mismatch != nil, deadlock != nil:
		f.Kind = watch.Disputed
	case errors.As(err, &closed):
		f.Replica, f.Kind = closed.Replica, watch.Left
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		f.Kind = watch.Waited
	}
	if abort != nil { // everybody knows by whom
		err = abort.Cause
	}
	f.Error = bounded(names(l.flights.NamesIn(err, isNamed)).explain(err))
	return f
}

// maxFailure bounds the text of a failure, in bytes.
const maxFailure = 4 << 10

func bounded(text string) string {
	if len(text) > maxFailure {
		return text[:maxFailure] + "..."
	}
	return text
}
