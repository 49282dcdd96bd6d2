package main

import (
	"fmt"
	"slices"
	"syscall"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/spawn"
)

// moment is the time in which the cause of a job's end may come after what it has caused. The kernel closes the
// connections of a process that is killed before it reports the end of the process, and the other replicas may fail and
// be gone meanwhile.
const moment = 100 * time.Millisecond

// ending is how and when the process of a replica has ended.
type ending struct {
	rank, pid int
	at        time.Time
	spawn.End
}

// sending is a signal that gclrun has sent to all replicas.
type sending struct {
	signal syscall.Signal
	at     time.Time
	own    bool // to end those that are left; else gclrun got the signal, or a second SIGINT
}

// The causes of an end, the likelier first. Of those that fall into the moment of the first failure the likeliest is to
// blame, and of the same cause the first.
const (
	bySignal  = iota // of somebody else
	byRequest        // of who sent gclrun a signal
	byCode           // as after a panic of Go
	byFailure        // with an exit code of programs whose peer has failed: 1, or 130 after another's signal
	noCause          // it is well, or gclrun has ended it
)

// cause is why a replica has ended, given the signals that it got from gclrun, and that of them which it ended by.
func (e ending) cause(sent []sending) (why int, from syscall.Signal) {
	switch {
	case e.Signal != 0:
		why = bySignal
	case e.Code == command.Failed, e.Code == command.Interrupted:
		why = byFailure
	default:
		why = byCode
	}
	for _, s := range sent {
		switch {
		case s.at.After(e.at):
		case s.own:
			return noCause, 0
		case e.Code == 128+int(s.signal):
			why, from = byRequest, s.signal
		}
	}
	if e.Code == command.OK {
		return noCause, 0
	}
	return why, from
}

// judge says which replica is to blame for the end of a job, in a line, and the exit code of gclrun, which is that of
// the replica. The code is 0 if all is well.
func judge(endings []ending, sent []sending, host string) (line string, code int) {
	failed := slices.DeleteFunc(slices.Clone(endings), func(e ending) bool {
		why, _ := e.cause(sent)
		return why == noCause
	})
	if len(failed) == 0 {
		return "", command.OK
	}
	slices.SortStableFunc(failed, func(a, b ending) int { return a.at.Compare(b.at) })
	last := failed[0].at.Add(moment)
	late := slices.IndexFunc(failed, func(e ending) bool { return e.at.After(last) })
	if late < 0 {
		late = len(failed)
	}
	blamed := slices.MinFunc(failed[:late], func(a, b ending) int { // the first of equals
		x, _ := a.cause(sent)
		y, _ := b.cause(sent)
		return x - y
	})
	if host != "" {
		host = " on " + host
	}
	more := ""
	switch why, from := blamed.cause(sent); {
	case why == byRequest && blamed.Signal != 0:
		more = " from gclrun"
	case why == byRequest:
		more = fmt.Sprintf(" after signal %d (%v) from gclrun", int(from), from)
	case why != bySignal && len(failed) > 1:
		more = fmt.Sprintf(", one of %d that failed", len(failed))
	}
	return fmt.Sprintf("replica %d (pid %d%s) %v%s", blamed.rank, blamed.pid, host, blamed.End, more), blamed.Code
}
