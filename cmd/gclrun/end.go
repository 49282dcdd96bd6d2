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
// The same begins when the last replica has ended and processes that it has started keep its output open. With -survive
// it does not begin for a replica that fails while enough others have not, or one comes in its place.
type job struct {
	replicas       []*replica
	grace          time.Duration
	min            int // of -survive: so many replicas go on when others fail; 0: none does
	restarts       int // of -max-restarts
	again          func(rank int) (*replica, error)
	complete       func() // no replica is started any more
	after          func(time.Duration) <-chan time.Time
	stdout, stderr *sink

	running int              // replicas
	endings []ending         // of the others
	began   int              // of restarts
	sent    []sending        // signals to the replicas
	said    <-chan struct{}  // closed when the last line of gclrun has been written; nil: it has
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
	code := command.OK
	interrupted, cut, judged := false, false, false
	for j.running = len(j.replicas); j.running > 0 || drained != nil || j.said != nil; {
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
		case <-j.said:
			j.said = nil
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
		if j.running == 0 && drained == nil && !judged {
			judged = true
			code = j.judge()
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

// judge says how the job has ended, if not all is well, and returns the exit code.
func (j *job) judge() int {
	line, code := judge(j.endings, j.sent, hostname())
	well := j.well()
	if j.min > 0 && well < len(j.endings) {
		text := fmt.Sprintf("%d of %d processes ended well", well, len(j.endings))
		if j.restarts > 0 {
			text += fmt.Sprintf("; restarts: %d of %d", j.began, j.restarts)
		}
		j.say(text)
	}
	switch {
	case j.survives():
		return command.OK
	case code != command.OK:
		j.say(line)
	}
	return code
}

// well is how many replicas have ended well.
func (j *job) well() (n int) {
	for _, e := range j.endings {
		if e.Code == command.OK {
			n++
		}
	}
	return n
}

// survives reports whether enough replicas run or have ended well, by -survive.
func (j *job) survives() bool { return j.min > 0 && j.running+j.well() >= j.min }

// replaces reports whether a process may be started in the place of one that fails: as long as -max-restarts allows it,
// some replica runs, none has ended well, as all soon do then, and nobody has told gclrun to end.
func (j *job) replaces() bool {
	told := slices.ContainsFunc(j.sent, func(s sending) bool { return s.own || asksForEnd(s.signal) })
	return j.began < j.restarts && j.running > 0 && j.well() == 0 && !told
}

// say writes a line of gclrun's, after those before. It waits as long as nobody reads gclrun's output.
func (j *job) say(line string) {
	before, said := j.said, make(chan struct{})
	j.said = said
	go func() {
		if before != nil {
			<-before
		}
		j.stderr.say(line)
		close(said)
	}()
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
	if j.survives() || j.replaces() {
		if line, code := judge([]ending{e}, j.sent, hostname()); code != command.OK {
			j.say(line + "; the others go on")
			next = j.replace(r)
		}
		failed = failed && !j.survives()
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

// replace starts a process in the place of a replica that has failed, if it may.
func (j *job) replace(r *replica) *replica {
	if !j.replaces() {
		return nil
	}
	j.began++
	next, err := j.again(r.rank)
	if err != nil {
		j.say(err.Error())
		return nil
	}
	j.replicas = append(j.replicas, next)
	j.running++
	j.say(fmt.Sprintf("replica %d (pid %d) is started in its place", next.rank, next.cmd.Process.Pid))
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
