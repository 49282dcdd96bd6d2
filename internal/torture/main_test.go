package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods/schedule"
)

// TestMain is also the replicas of the tests' runs.
func TestMain(m *testing.M) {
	if text, ok := os.LookupEnv(orderVariable); ok {
		os.Exit(replica(text))
	}
	if len(os.Args) == 3 && os.Args[1] == asLauncher {
		os.Exit(beALauncher(os.Args[2]))
	}
	leaktest.Main(m)
}

func onLinux(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip(unsupported)
	}
}

// TestTorture: a few runs are right, and the table counts them.
func TestTorture(t *testing.T) {
	onLinux(t)
	before := len(openDescriptors())
	var stdout, stderr bytes.Buffer
	runs := 24
	if testing.Short() {
		runs = 6
	}
	if code := run(t.Context(), []string{"-runs", fmt.Sprint(runs), "-v"}, &stdout, &stderr); code != command.OK {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if !strings.Contains(stdout.String(), fmt.Sprintf("%d runs right, 0 wrong", runs)) ||
		strings.Count(stdout.String(), "seed ") != runs {
		t.Errorf("%s", &stdout)
	}
	if after := len(openDescriptors()); after > before+1 { // the poller's, which the first process needs
		t.Errorf("%d descriptors, want %d: %q", after, before, openDescriptors())
	}
}

// TestEvents: each event at each kind of moment is right, over sockets and over shared memory.
func TestEvents(t *testing.T) {
	onLinux(t)
	type kind struct {
		event
		moment
	}
	for network, kinds := range map[string]int{"": len(weights) - 1, "shm": len(weights) + 3*3} {
		most := 2
		if testing.Short() || network == "shm" {
			most = 1
		}
		seen := map[kind]int{}
		for seed := uint64(1 << 32); len(seen) < kinds; seed++ {
			p := newPlan(seed, 3, network)
			k := kind{p.event, p.moment}
			if seen[k] >= most {
				continue
			}
			seen[k]++
			if testing.Short() && p.moment > inPiece {
				continue
			}
			if _, wrong, err := carryOut(t.Context(), &p, 3, network, -1); err != nil || wrong != "" {
				t.Errorf("%v: %s, %v", &p, wrong, err)
			}
		}
	}
}

// TestStoppedInside: a replica that is stopped while it works on the memory of others, and goes on after they have
// given it up, writes into none of their buffers.
func TestStoppedInside(t *testing.T) {
	onLinux(t)
	for seed := uint64(1); ; seed++ {
		p := newPlan(seed, 3, "shm")
		s := &p.program[p.at]
		if p.event != silence || p.moment != inPiece || p.calls > 2 || s.collective != schedule.AllReduce ||
			s.group != (commgroup.Group{}) || slices.Contains(s.alloced, false) || s.options != (gcl.Options{}) {
			continue
		}
		if how, wrong, err := carryOut(t.Context(), &p, 3, "shm", -1); err != nil || wrong != "" {
			t.Errorf("%v: %v: %s, %v", &p, how, wrong, err)
		}
		break
	}
}

// TestCorrupt: one bit of one result that one replica spoils is found, and the run can be repeated.
func TestCorrupt(t *testing.T) {
	onLinux(t)
	s := settings{runs: 50, jobs: 2, seed: 77, processes: 2, corrupt: func(p *plan) int {
		for k, s := range p.program {
			if p.event == nothing && !s.barrier && !s.collective.Contract().Rooted() && s.elements[0] > 0 {
				return k
			}
		}
		return -1
	}}
	var stdout, stderr bytes.Buffer
	if code := s.torture(t.Context(), &stdout, &stderr); code != command.Failed {
		t.Fatalf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	command := regexp.MustCompile(`to repeat this run: go run \./internal/torture -runs 1 -seed (\d+) -n 2 -v`)
	again := command.FindStringSubmatch(stderr.String())
	if again == nil || !strings.Contains(stderr.String(), "has a wrong result") ||
		!strings.Contains(stderr.String(), "seed "+again[1]+": ") || !strings.Contains(stderr.String(), "WRONG: ") ||
		!strings.Contains(stdout.String(), ", 1 wrong,") && !strings.Contains(stdout.String(), ", 2 wrong,") {
		t.Errorf("%s%s", &stdout, &stderr)
	}
}

// TestJudge: what is not as the event demands is wrong.
func TestJudge(t *testing.T) {
	const seed = 9
	late := fmt.Sprintf("all-reduce #3: %s", causeOf(seed))
	for _, x := range []struct {
		event  event
		rank   int // 1 is the victim
		come   bool
		state  string
		report *report
		want   string // "": it is right
	}{
		{nothing, 0, true, "exit status 0", &report{Peer: -1}, ""},
		{nothing, 0, true, "exit status 0", &report{Peer: -1, Left: []string{"3 goroutines"}}, "leaves 3 goroutines"},
		{nothing, 0, true, "exit status 0", &report{Peer: -1, Error: "x"}, "although nothing has happened"},
		{nothing, 0, true, "exit status 2", nil, "without a report"},
		{pause, 0, true, "exit status 0", &report{Peer: 1, Error: "barrier #3", Aborted: true}, "although nothing"},
		{kill, 1, false, "signal: killed", nil, ""},
		{kill, 1, false, "exit status 2", nil, "want \"signal: killed\""},
		{kill, 0, false, "exit status 0", &report{Peer: 1, Error: "barrier #3"}, ""},
		{kill, 0, false, "exit status 0", &report{Peer: 1, Error: "barrier"}, "in which call"},
		{kill, 0, false, "exit status 0", &report{Peer: 2, Error: "barrier #3"}, "names replica 1"},
		{kill, 0, false, "exit status 0", &report{Peer: -1}, "although the victim"},
		{kill, 0, true, "exit status 0", &report{Peer: -1}, ""},
		{kill, 0, false, "signal: killed", nil, "without a report"},
		{exit, 1, false, "exit status 0", nil, ""},
		{silence, 0, false, "exit status 0", &report{Peer: -1, Aborted: true, Error: "barrier #3"}, "names replica 1"},
		{silence, 1, false, "exit status 0", &report{Peer: -1, Aborted: true, Error: "barrier #3"}, ""},
		{silence, 1, false, "exit status 0", &report{Peer: 1, Error: "barrier #3"}, ""},
		{silence, 1, false, "exit status 0", &report{Peer: 0, Error: "barrier #3"}, "blames no other"},
		{reset, 0, false, "exit status 0", &report{Peer: -1, Error: "barrier #3"}, "with a type"},
		{reset, 0, false, "exit status 0", &report{Peer: -1}, ""},
		{abort, 0, false, "exit status 0", &report{Peer: -1, Aborted: true, Error: late}, ""},
		{abort, 0, false, "exit status 0", &report{Peer: -1, Aborted: true, Error: "barrier #3"}, "with the cause"},
		{cancel, 1, false, "exit status 0", &report{Peer: -1, Error: late}, "cause of its context"},
		{failed, 1, true, "exit status 0", &report{Peer: -1}, "returns nil"},
		{failed, 1, true, "exit status 0", &report{Peer: -1, Own: true, Error: "x"}, ""},
		{panics, 1, true, "exit status 0", &report{Peer: -1, Panicked: true, Error: "x"}, ""},
		{panics, 0, false, "exit status 0", &report{Peer: -1, Wrong: true, Aborted: true, Error: late}, "wrong result"},
		{garbage, 1, false, "exit status 0", &report{Peer: -1}, ""},
		{garbage, 0, false, "exit status 0", &report{Peer: -1, Wrong: true, Error: "x"}, ""},
		{garbage, 0, false, "exit status 0", &report{Peer: -1, Mismatch: true, Error: "barrier #3"}, ""},
		{garbage, 0, false, "exit status 0", &report{Peer: -1, Error: "barrier #3"}, "with a type"},
		{garbage, 0, false, "exit status 2", nil, "without a report"},
		{garbage, 0, false, "exit status 0", &report{Peer: -1, Left: []string{"2 segments"}}, "leaves 2 segments"},
	} {
		p := plan{seed: seed, n: 3, victim: 1, event: x.event}
		got := p.judgeOne(&process{rank: x.rank, report: x.report, state: x.state}, x.come)
		if x.want == "" && got != "" || !strings.Contains(got, x.want) {
			t.Errorf("%s, replica %d, %+v: %q, want %q", x.event, x.rank, x.report, got, x.want)
		}
	}
}

// TestJudgeJoining: who waits for one that does not come says for whom.
func TestJudgeJoining(t *testing.T) {
	p := plan{n: 14, victim: 1, event: kill, moment: joining}
	for text, right := range map[string]bool{
		"gcl: join: replica 1 has not come":                                                true,
		"gcl: join: replicas 0, 1 have not come":                                           true,
		"gcl: join: replica 13 has not come":                                               false,
		"gcl: join: the time is over":                                                      false,
		"all-reduce #1: aborted by replica 0: the memory of replica 1: write: broken pipe": true,
		"all-reduce #1: aborted by replica 1: write: broken pipe":                          true,
		"all-reduce #1: aborted by replica 0: write: broken pipe":                          false,
		"gcl: join: replicas [0 12 1] have not come":                                       true,
	} {
		r := &report{Peer: -1, Aborted: strings.Contains(text, "aborted"), Error: text}
		got := p.judgeOne(&process{state: "exit status 0", report: r}, false)
		if right != (got == "") {
			t.Errorf("%s: %q", text, got)
		}
	}
}

// TestInterrupted: an interrupt ends the runs, and leaves no process.
func TestInterrupted(t *testing.T) {
	onLinux(t)
	ctx, stop := context.WithCancel(t.Context())
	time.AfterFunc(300*time.Millisecond, stop)
	var stdout, stderr bytes.Buffer
	code := run(ctx, []string{"-runs", "100000"}, &stdout, &stderr)
	if code != command.Interrupted || !strings.Contains(stderr.String(), "interrupted") ||
		!strings.Contains(stdout.String(), "runs right") {
		t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
	}
	if left := socketsNamed(fmt.Sprintf("@torture-%d-", os.Getpid())); len(left) > 0 {
		t.Errorf("sockets are left: %q", left)
	}
}

// TestPlans: a seed decides on everything.
func TestPlans(t *testing.T) {
	for _, network := range networks {
		testPlans(t, network)
	}
}

func testPlans(t *testing.T, network string) {
	events, want := map[event]bool{}, 0
	for _, w := range weights {
		if p := (&plan{transport: network}); p.weight(w.event) > 0 {
			want++
		}
	}
	for seed := range uint64(500) {
		a, b := newPlan(seed, 0, network), newPlan(seed, 0, network)
		if a.String() != b.String() || a.listing() != b.listing() {
			t.Fatalf("seed %d: %v\n%v", seed, &a, &b)
		}
		if a.n < 2 || a.n > 5 || a.victim >= a.n || a.at >= len(a.program) || !a.program[len(a.program)-1].barrier ||
			network != "" && a.transport != network || a.transport != "shm" && a.moment != inStep ||
			a.moment == inPiece && !a.program[a.at].own {
			t.Fatalf("%v", &a)
		}
		events[a.event] = true
	}
	if len(events) != want {
		t.Errorf("network %q: %d events, want %d: %v", network, len(events), want, events)
	}
}

// TestUsage: mistakes on the command line are one line and exit code 2.
func TestUsage(t *testing.T) {
	for args, want := range map[string]string{
		"-runs 0": "-runs 0, want 1 or more", "-n 1": "-n 1, want 2 to 64", "-j 0": "-j 0, want 1 to 64",
		"-transport mpi": "-transport mpi, want tcp, unix or shm",
		"more":           "unexpected argument", "blame": "the launcher is missing", "blame -runs 0 x": "-runs 0, want 1 or more",
		"blame -j 0 x": "-j 0, want 1 to 64", "blame -signal 0 x": "-signal 0, want 1 to 31",
		"blame -signal 32 x": "-signal 32, want 1 to 31", "blame -code 256 x": "-code 256, want 1 to 255",
		"stand -n 1": "-n 1, want 2 to 64", "stand -load 1001": "-load 1001, want 0 to 1000",
		"survive -steps 1": "-steps 1, want 2 to 1000000", "survive -grow": "-grow: there is no -single",
		"survive -n 1": "-n 1, want 2 to 64", "survive -runs 0": "-runs 0, want 1 or more",
		"survive -j 65": "-j 65, want 1 to 64", "survive -transport mpi": "-transport mpi, want tcp",
		"survive -hosts /none":            "stat /none: no such file or directory: want files such as /proc/PID/ns/net",
		"survive -hosts / -transport tcp": "-transport tcp with -hosts: over hosts it is auto",
		"stand -for 0s":                   "-for 0s, -pause 4s", "stand more": "unexpected argument",
		"detect -harm none": "-harm none, want silence", "detect -runs 0": "-runs 0, -j 4",
		"soak -pprof x": "the launcher is missing", "soak x": "-pprof is missing",
		"soak -samples 2 x": "-samples 2, want 3",
		"soak -warm 1h x":   "-warm 1h0m0s, want less than -for 30m0s",
	} {
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), strings.Fields(args), &stdout, &stderr); code != command.Usage ||
			!strings.Contains(stderr.String(), want) || strings.Count(stderr.String(), "\n") != 1 {
			t.Errorf("%s: exit code %d, %q", args, code, &stderr)
		}
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != command.OK ||
		!strings.HasPrefix(stdout.String(), "usage: torture [flags]\n") {
		t.Errorf("-h: exit code %d, %q", code, &stdout)
	}
}
