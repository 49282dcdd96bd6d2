package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ending says how a run ended, if nothing is wrong with it.
type ending uint8

// The endings.
const (
	allRight  ending = iota // right results at all replicas
	someRight               // at some; errors at the others
	noneRight               // errors at all, or no word of one
	endings
)

func (e ending) String() string {
	return [...]string{"all right", "some right", "errors"}[e]
}

// placed is what the text of an error begins with that a replica gets in a call: which one it is.
var placed = regexp.MustCompile(`#\d+|close|dup`)

// judge says how a run ended, and what is wrong, or "".
func (p *plan) judge(all []*process) (how ending, wrong string) {
	right, come := 0, all[p.victim].reached() == len(p.program)-1
	for _, r := range all {
		if r.report != nil && r.report.Error == "" {
			right++
		}
		// A wrong result is an error of the replica that has it, which aborts the others.
		if why := p.judgeOne(r, come); why != "" && (wrong == "" || r.report != nil && r.report.Wrong) {
			wrong = fmt.Sprintf("replica %d %s", r.rank, why)
		}
	}
	switch right {
	case p.n:
		return allRight, wrong
	case 0:
		return noneRight, wrong
	}
	return someRight, wrong
}

// states are how the process of a victim ends by each kind of death.
var states = map[event]string{kill: "signal: killed", exit: "exit status 0", crash: "exit status 2"}

// judgeOne says what is wrong with how a replica ended, or "". come is whether the victim has come to the last barrier.
func (p *plan) judgeOne(r *process, come bool) string {
	isVictim, e := r.rank == p.victim, r.report
	switch {
	case e == nil && isVictim && p.event.isDeath():
		if want := states[p.event]; want != r.state {
			return fmt.Sprintf("ends with %q, want %q", r.state, want)
		}
		return ""
	case e == nil:
		return "ends without a report"
	case r.state != "exit status 0":
		return "ends with " + r.state
	case e.Wrong && p.event != garbage:
		return "has a wrong result"
	case len(e.Left) > 0:
		return "leaves " + strings.Join(e.Left, ", ")
	case e.Error == "" && isVictim && (p.event == failed || p.event == panics):
		return "returns nil"
	case e.Error == "" && !come && !p.event.isHarmless() && p.event != reset && p.event != garbage:
		return "has all results, although the victim has not come to the end"
	case e.Error == "":
		return ""
	case p.event.isHarmless():
		return "returns an error, although nothing has happened"
	case p.event == garbage && e.Wrong: // it may hit what is on its way
		return ""
	case p.moment == joining && (strings.Contains(e.Error, "join") || e.Aborted): // some may have joined already
		return unless(isVictim || names(e.Error, p.victim), fmt.Sprintf("an error that names replica %d", p.victim))
	case !e.Own && !e.Panicked && !placed.MatchString(e.Error):
		return "does not say in which call"
	}
	typed, cause := e.Aborted || e.Closed || e.Peer >= 0, strings.Contains(e.Error, causeOf(p.seed))
	want := ""
	switch ok := false; {
	case p.event == garbage:
		return unless(typed || e.Mismatch, "an error with a type")
	case p.event == reset:
		return unless(typed, "an error with a type")
	case p.event == silence && isVictim: // the others have held it for lost, and none of them is
		return unless(typed && (e.Peer < 0 || e.Peer == p.victim), "an error with a type that blames no other replica")
	case p.event.isDeath(), p.event == silence:
		ok, want = e.Peer == p.victim, fmt.Sprintf("a *gcl.PeerError that names replica %d", p.victim)
		return unless(ok, want)
	case p.event == panics && isVictim:
		return unless(e.Panicked, "a *gcl.PanicError")
	case p.event == failed && isVictim:
		return unless(e.Own, "its own error")
	case p.event == cancel && isVictim:
		return unless(e.Cancelled, "the cause of its context")
	}
	return unless(e.Aborted && cause, "gcl.ErrAborted with the cause")
}

// replicasNamed finds where the text of an error names replicas: replica 3, replicas 1, 3, replicas [1 3].
var replicasNamed = regexp.MustCompile(`\breplicas? \[?\d+(,? \d+)*`)

// names reports whether the text of an error names a replica.
func names(text string, replica int) bool {
	for _, found := range replicasNamed.FindAllString(text, -1) {
		numbers := strings.FieldsFunc(found, func(r rune) bool { return r < '0' || r > '9' })
		if slices.Contains(numbers, strconv.Itoa(replica)) {
			return true
		}
	}
	return false
}

// unless is what is wrong if an error is not as it should be.
func unless(ok bool, want string) string {
	if ok {
		return ""
	}
	return "does not return " + want
}
