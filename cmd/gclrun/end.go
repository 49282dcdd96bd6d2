package main

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
)

// job is a running job, up to its end.
//
//	a replica fails          grace           grace
//	      |----------------------|----------------|
//	   one line             SIGTERM to all   SIGKILL to all
//
// The same begins when the last replica has ended and processes that it has started keep its output open.
type job struct {
	replicas       []*replica
	grace          time.Duration
	after          func(time.Duration) <-chan time.Time
	stdout, stderr *sink

	running int              // replicas
	code    int              // exit code of the first replica that failed; 0: none has
	overdue <-chan time.Time // the next of steps is due; nil: none is to come
	taken   int              // how many of steps have been taken
	said    chan struct{}    // closed when the line about the first failure is written; nil: there is none to wait for
}

// steps end the replicas that are left, a grace before each.
var steps = []os.Signal{syscall.SIGTERM, os.Kill}

// wait returns gclrun's exit code when all replicas have ended and their output has been written.
func (j *job) wait(signals <-chan os.Signal, drained <-chan struct{}) int {
	endings := make(chan *replica)
	for _, r := range j.replicas {
		go func() {
			_ = r.cmd.Wait() // the state says it
			endings <- r
		}()
	}
	interrupted, cut := false, false
	for j.running = len(j.replicas); j.running > 0 || drained != nil || j.said != nil; {
		select {
		case r := <-endings:
			j.end(r)
		case <-drained:
			drained = nil
		case <-j.said:
			j.said = nil
		case <-j.overdue:
			j.signal(steps[j.taken])
			j.taken++
			j.overdue = nil
			if j.taken < len(steps) {
				j.overdue = j.after(j.grace)
			}
		case s := <-signals:
			if j.running == 0 && (s == os.Interrupt || s == syscall.SIGTERM) {
				return command.Signal{Signal: s.(syscall.Signal)}.Code() // nobody reads the rest of the output
			}
			if s == os.Interrupt && interrupted {
				s, j.taken, j.overdue = os.Kill, len(steps), nil
			}
			interrupted = interrupted || s == os.Interrupt
			j.signal(s)
		}
		if j.running == 0 && j.taken == len(steps) && !cut {
			cut = true
			j.cut()
		}
	}
	j.signal(os.Kill) // nothing is left running
	return j.exit()
}

// end notes that a replica's process has ended. The first that fails is the one that is blamed.
func (j *job) end(r *replica) {
	j.running--
	r.gone = r.groupGone()
	if code, how := spawn.Ended(r.cmd.ProcessState); code != 0 && j.code == 0 {
		j.code = code
		said := make(chan struct{})
		j.said = said
		go func() { // waits as long as nobody reads gclrun's output
			j.stderr.say(fmt.Sprintf("replica %d (pid %d) %s", r.rank, r.cmd.Process.Pid, how))
			close(said)
		}()
	}
	if (j.code != 0 || j.running == 0) && j.overdue == nil && j.taken == 0 {
		j.overdue = j.after(j.grace)
	}
}

// signal sends a signal to all that is left of the job.
func (j *job) signal(s os.Signal) {
	for _, r := range j.replicas {
		r.signal(s)
	}
}

// cut ends streams that a process outside of the replicas' groups keeps open.
func (j *job) cut() {
	for _, r := range j.replicas {
		_ = r.stdout.SetReadDeadline(time.Now()) // of a closed pipe: there is nothing to end
		_ = r.stderr.SetReadDeadline(time.Now())
	}
}

// exit is the exit code after the end of all output. Output that is lost is a failure.
func (j *job) exit() int {
	err := j.stdout.failure()
	if err != nil {
		fmt.Fprintf(os.Stderr, "gclrun: output: %v\n", err)
	} else {
		err = j.stderr.failure()
	}
	if j.code == 0 && err != nil {
		return command.Failed
	}
	return j.code
}
