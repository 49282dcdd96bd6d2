package main

import (
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
)

// job is a running job, up to its end.
//
//	a replica fails          grace           grace              all have ended
//	      |----------------------|----------------|----------------------|
//	                      SIGTERM to all   SIGKILL to all         one line: whom to blame
//
// The same begins when the last replica has ended and processes that it has started keep its output open. By -survive
// it does not begin for a replica that fails while enough others have not.
type job struct {
	replicas       []*replica
	grace          time.Duration
	min            int // of -survive: so many replicas go on when others fail; 0: none does
	restarts       int // of -max-restarts: those that are left
	again          func(rank int) (*replica, error)
	complete       func() // no replica is started any more
	after          func(time.Duration) <-chan time.Time
	stdout, stderr *sink

	running int              // replicas
	endings []ending         // of the others
	sent    []sending        // signals to the replicas
	overdue <-chan time.Time // the next of steps is due; nil: none is to come
	taken   int              // how many of steps have been taken
}

// steps end the replicas that are left, a grace before each.
var steps = []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL}

// wait returns gclrun's exit code when all replicas have ended and their output has been written.
func (j *job) wait(signals <-chan os.Signal, drained <-chan struct{}) int {
	endings := make(chan *replica)
	for _, r := range j.replicas {
		r.follow(endings)
	}
	var said <-chan struct{} // closed when the line about the end has been written
	code := command.OK
	interrupted, cut := false, false
	for j.running = len(j.replicas); j.running > 0 || drained != nil || said != nil; {
		select {
		case r := <-endings:
			if next := j.end(r); next != nil {
				next.follow(endings)
			}
			if j.running == 0 {
				j.complete()
			}
		case <-drained:
			drained = nil
		case <-said:
			said = nil
		case <-j.overdue:
			j.send(steps[j.taken], true)
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
			j.send(s.(syscall.Signal), false)
		}
		if j.running == 0 && j.taken == len(steps) && !cut {
			cut = true
			j.cut()
		}
		if j.running == 0 && drained == nil && code == command.OK {
			var line string
			if line, code = judge(j.endings, j.sent, hostname()); code != command.OK && j.survives() {
				code = command.OK // and each line has been said
			}
			if code != command.OK {
				said = j.say(line)
			}
		}
	}
	j.send(syscall.SIGKILL, true) // nothing is left running
	return j.exit(code)
}

// follow tells of the replica's end.
func (r *replica) follow(endings chan<- *replica) {
	go func() {
		_ = r.cmd.Wait() // the state says it
		r.ended = time.Now()
		endings <- r
	}()
}

// survives reports whether enough replicas run or have ended well, by -survive.
func (j *job) survives() bool {
	well := j.running
	for _, e := range j.endings {
		if e.Code == command.OK {
			well++
		}
	}
	if j.restarts > 0 && j.running > 0 {
		well++ // who comes in the place of one that has failed
	}
	return j.min > 0 && well >= j.min
}

// say writes a line of gclrun's. It waits as long as nobody reads gclrun's output, which the channel tells.
func (j *job) say(line string) <-chan struct{} {
	said := make(chan struct{})
	go func() {
		j.stderr.say(line)
		close(said)
	}()
	return said
}

// hostname is the name of this host, "" if it has none.
func hostname() string {
	name, _ := os.Hostname()
	return name
}

// end notes that a replica's process has ended. It returns the one that has been started in its place, or nil.
func (j *job) end(r *replica) (next *replica) {
	j.running--
	r.gone = r.groupGone()
	failing := func(e ending) bool { return e.Code != command.OK }
	before := slices.ContainsFunc(j.endings, failing)
	e := ending{rank: r.rank, pid: r.cmd.Process.Pid, at: r.ended, End: spawn.Ended(r.cmd.ProcessState)}
	if !r.dying.IsZero() && r.dying.Before(e.at) {
		e.at = r.dying
	}
	j.endings = append(j.endings, e)
	failed := before || failing(e)
	if j.survives() {
		if line, code := judge([]ending{e}, j.sent, hostname()); code != command.OK {
			<-j.say(line + "; the others go on")
			next = j.replace(r)
		}
		failed = false
	}
	if failed && !before { // a busy machine may take long to report those that are ending already
		for _, other := range j.replicas {
			if other != r && isEnding(other.cmd.Process.Pid) {
				other.dying = e.at
			}
		}
	}
	if (failed || j.running == 0) && j.overdue == nil && j.taken == 0 {
		j.overdue = j.after(max(j.grace, moment))
	}
	return next
}

// replace starts a process in the place of a replica that has failed, as long as -max-restarts allows it, some replica
// runs, and nobody has sent gclrun a signal.
func (j *job) replace(r *replica) *replica {
	if j.restarts == 0 || j.running == 0 || len(j.sent) > 0 {
		return nil
	}
	j.restarts--
	next, err := j.again(r.rank)
	if err != nil {
		<-j.say(err.Error())
		return nil
	}
	j.replicas = append(j.replicas, next)
	j.running++
	<-j.say(fmt.Sprintf("replica %d (pid %d) is started in its place", next.rank, next.cmd.Process.Pid))
	return next
}

// send sends a signal to all that is left of the job. own says that nobody has asked gclrun to.
func (j *job) send(s syscall.Signal, own bool) {
	j.sent = append(j.sent, sending{signal: s, at: time.Now(), own: own})
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
func (j *job) exit(code int) int {
	err := j.stdout.failure()
	if err != nil {
		fmt.Fprintf(os.Stderr, "gclrun: output: %v\n", err)
	} else {
		err = j.stderr.failure()
	}
	if code == command.OK && err != nil {
		return command.Failed
	}
	return code
}
