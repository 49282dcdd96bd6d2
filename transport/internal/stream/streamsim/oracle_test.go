package streamsim

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"gogcl.dev/transport"
)

// errs are the errors of an honest lane: of its Exchange, and of its Close.
func (l *laneOf) errs() []error {
	if l.node.dead || l.node.liar != nil {
		return nil
	}
	var out []error
	for _, err := range []error{l.err, l.asked, l.shut, l.shutBy} {
		if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// failed reports whether an honest lane has had an error.
func (j *job) failed() bool {
	for _, lanes := range j.lanes {
		for _, l := range lanes {
			if len(l.errs()) > 0 {
				return true
			}
		}
	}
	return false
}

// bad describes what has come of all lanes.
func (j *job) bad(format string, args ...any) string {
	var b strings.Builder
	fmt.Fprintf(&b, format+"\n", args...)
	for r, lanes := range j.lanes {
		for k, l := range lanes {
			fmt.Fprintf(&b, "    replica %d lane %d: call %d of %d: %v\n", r, k, l.op, len(l.prog.ops[r]), l.err)
			if l.asked != nil || l.shut != nil || l.shutBy != nil {
				fmt.Fprintf(&b, "        its Settle: %v\n        its Closes: %v, %v\n", l.asked, l.shut, l.shutBy)
			}
		}
	}
	return b.String()
}

// is reports whether an error has one of a type in it.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// judge says what is wrong with a job that has ended, or "".
func (j *job) judge() string {
	took := j.idle.Sub(j.began)
	if long := j.long(); took > long {
		return j.bad("it took %v, want at most %v", took, long)
	}
	if j.stall != "" && j.quiet() && !j.settled { // Settle asks again and again
		return j.bad("all waited, with nothing under way: %s", j.stall)
	}
	for _, n := range j.nodes {
		for _, e := range n.ends {
			if !n.dead && !e.closing.Load() {
				return j.bad("replica %d leaves a link open", n.rank)
			}
		}
	}
	any, told := false, false
	for _, lanes := range j.lanes {
		for _, l := range lanes {
			for _, err := range l.errs() {
				any = true
				told = told || is[*transport.MismatchError](err) || is[*transport.UnmatchedError](err) ||
					strings.Contains(err.Error(), "a message with tag")
				if why := j.wrongKind(err); why != "" {
					return j.bad("replica %d lane %d: %s: %v", l.node.rank, l.index, why, err)
				}
			}
		}
	}
	if j.has(differs) != nil {
		for _, p := range j.progs {
			switch {
			case !p.material:
			case !p.clear && (len(j.progs) > 1 || p.differs == "surplus"): // a Close may have waited in vain
			case !any:
				return j.bad("nobody has found that they disagree")
			case !told && p.clear && len(j.progs) == 1: // of several lanes one may end the others
				return j.bad("nobody says in what they disagree")
			}
		}
	}
	return ""
}

// idler says what is wrong while nobody can go on: a call on a lane that is closed or aborted ends at once, and not
// when its park is over.
func (j *job) idler() {
	for _, lanes := range j.lanes {
		for _, l := range lanes {
			if !l.busy || l.node.dead {
				continue
			}
			if err := l.lane.Err(); err != nil {
				j.fail("replica %d lane %d waits in call %d, although: %v", l.node.rank, l.index, l.op, err)
			}
		}
	}
}

// quiet reports whether nothing but what is under way moves a job on: no fault is found by the time.
func (j *job) quiet() bool {
	for _, of := range j.faults {
		switch of.fault {
		case none, slow, cancels, aborts:
		default:
			return false
		}
	}
	return true
}

// long is how long a job may take at most.
func (j *job) long() time.Duration {
	ops := 1
	for _, p := range j.progs {
		for _, o := range p.ops {
			ops += len(o)
		}
	}
	base := 2*j.sleeps + 400*(j.dataDelay+j.tellDelay+j.dialDelay)*time.Duration(ops) + 20*time.Millisecond
	if j.quiet() && !j.settled {
		return base
	}
	return base + 60*time.Second
}

// wrongKind says what is wrong with an error of a lane, if it is of none of the faults.
func (j *job) wrongKind(err error) (why string) {
	for i := range j.faults {
		if why = j.wrongFor(&j.faults[i], err); why == "" {
			return ""
		}
	}
	return why
}

// wrongFor says what is wrong with an error where the fault is this one, or "".
func (j *job) wrongFor(of *trouble, err error) string {
	text := err.Error()
	lost, isLost := errors.AsType[*transport.LostError](err)
	switch of.fault {
	case none, slow:
		return "an error without a fault"
	case differs:
		if !is[*transport.MismatchError](err) && !is[*transport.ClosedError](err) &&
			!is[*transport.DeadlockError](err) && !is[*transport.UnmatchedError](err) &&
			!strings.Contains(text, "a message with tag") {
			return "not the error of a disagreement"
		}
	case dies:
		if !isLost || lost.Replica != of.victim {
			return "not the error that the replica is lost"
		}
	case cancels, aborts:
		if !strings.Contains(text, errBoom.Error()) {
			return "not the cause"
		}
	case parts:
		if !isLost || lost.Replica != of.victim && lost.Replica != of.other {
			return "not the error of the loss"
		}
	case closes:
		closed, ok := errors.AsType[*transport.ClosedError](err)
		if !ok || closed.Replica != of.victim || !j.closed {
			return "not the error that the replica has closed"
		}
	case files:
		short := strings.Contains(text, "too many open files") || strings.Contains(text, "connection reset")
		if !j.dialShort || !short {
			return "not the error that there are no descriptors"
		}
	case silent:
		want := "nothing has come over its data connection"
		if j.reset {
			want = "connection reset by peer, while its control connection is alive"
		}
		if !isLost || !strings.Contains(text, want) || lost.Replica != of.victim && lost.Replica != j.silentOf {
			return "not the error of a link that is silent"
		}
	case lies:
		if j.nodes[of.victim].liar.told == 0 {
			return "an error before the first lie"
		}
		if !regexp.MustCompile(fmt.Sprintf(`(replica|from|to) %d\b`, of.victim)).MatchString(text) {
			return "it does not name the liar"
		}
	}
	return ""
}
