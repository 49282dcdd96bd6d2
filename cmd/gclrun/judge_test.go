package main

import (
	"syscall"
	"testing"
	"time"

	"gogcl.dev/internal/spawn"
)

// TestJudge has jobs that end in every way: whom gclrun blames, and its exit code. Times are in milliseconds.
func TestJudge(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, 0).Add(time.Duration(ms) * time.Millisecond) }
	coded := func(rank, ms, code int) ending {
		return ending{rank: rank, pid: 70 + rank, at: at(ms), End: spawn.End{Code: code}}
	}
	killed := func(rank, ms int, s syscall.Signal) ending {
		return ending{rank: rank, pid: 70 + rank, at: at(ms), End: spawn.End{Code: 128 + int(s), Signal: s}}
	}
	sent := func(ms int, s syscall.Signal, own bool) sending { return sending{signal: s, at: at(ms), own: own} }
	list := func(e ...ending) []ending { return e }
	const (
		kill, segv = syscall.SIGKILL, syscall.SIGSEGV
		intr, term = syscall.SIGINT, syscall.SIGTERM
		usr        = syscall.Signal(10)
	)
	for name, c := range map[string]struct {
		endings []ending // in the order in which gclrun hears of them
		sent    []sending
		line    string // after the rank, the pid and the host
		code    int
	}{
		"all is well": {list(coded(1, 0, 0), coded(0, 9000, 0)), nil, "", 0},
		"killed, heard of last": {list(coded(0, 0, 1), coded(1, 1, 1), coded(3, 2, 1), killed(2, 3, kill)), nil,
			"replica 2 (pid 72 on node1) was ended by signal 9 (killed)", 137},
		"killed, at the end of the moment": {list(coded(0, 0, 1), killed(2, 100, kill)), nil,
			"replica 2 (pid 72 on node1) was ended by signal 9 (killed)", 137},
		"killed after the moment": {list(coded(0, 0, 1), killed(2, 101, kill)), nil,
			"replica 0 (pid 70 on node1) ended with exit code 1, one of 2 that failed", 1},
		"alone": {list(coded(0, 0, 3), coded(1, 1, 0)), nil,
			"replica 0 (pid 70 on node1) ended with exit code 3", 3},
		"a panic": {list(coded(2, 0, 2), coded(0, 1, 1), coded(1, 2, 1)), nil,
			"replica 2 (pid 72 on node1) ended with exit code 2, one of 3 that failed", 2},
		"a panic, heard of late": {list(coded(0, 0, 1), coded(2, 1, 2), coded(1, 1, 1)), nil,
			"replica 2 (pid 72 on node1) ended with exit code 2, one of 3 that failed", 2},
		"one is told to end, and tells the others": {list(coded(0, 0, 130), coded(2, 1, 143), coded(1, 1, 130)), nil,
			"replica 2 (pid 72 on node1) ended with exit code 143, one of 3 that failed", 143},
		"an early end that is well": {list(coded(2, 0, 0), coded(0, 5, 1), coded(1, 6, 1)), nil,
			"replica 0 (pid 70 on node1) ended with exit code 1, one of 2 that failed", 1},
		"heard of in another order": {list(coded(1, 7, 1), coded(0, 5, 4)), nil,
			"replica 0 (pid 70 on node1) ended with exit code 4, one of 2 that failed", 4},
		"two signals": {list(coded(3, 0, 1), killed(1, 3, segv), killed(2, 2, kill)), nil,
			"replica 2 (pid 72 on node1) was ended by signal 9 (killed)", 137},
		"the rest is ended": {list(coded(1, 0, 3), killed(0, 5000, term), coded(2, 5001, 143), killed(3, 9999, kill)),
			[]sending{sent(5000, term, true), sent(9000, kill, true)},
			"replica 1 (pid 71 on node1) ended with exit code 3", 3},
		"the rest is ended, and is killed at once": {list(coded(1, 0, 3), killed(0, 100, term)),
			[]sending{sent(100, term, true)},
			"replica 1 (pid 71 on node1) ended with exit code 3", 3},
		"Ctrl-C": {list(killed(1, 2, intr), killed(0, 3, intr)), []sending{sent(1, intr, false)},
			"replica 1 (pid 71 on node1) was ended by signal 2 (interrupt) from gclrun", 130},
		"Ctrl-C that replicas see to": {list(coded(0, 3, 0), coded(1, 3, 0)), []sending{sent(1, intr, false)}, "", 0},
		"Ctrl-C that some see to": {list(coded(0, 3, 1), coded(1, 4, 130)), []sending{sent(1, intr, false)},
			"replica 1 (pid 71 on node1) ended with exit code 130 after signal 2 (interrupt) from gclrun", 130},
		"Ctrl-C, and a replica falls over": {list(coded(0, 3, 130), killed(1, 4, segv)),
			[]sending{sent(1, intr, false)},
			"replica 1 (pid 71 on node1) was ended by signal 11 (segmentation fault)", 139},
		"Ctrl-C twice": {list(killed(1, 9, kill), killed(0, 9, kill)),
			[]sending{sent(1, intr, false), sent(8, kill, false)},
			"replica 1 (pid 71 on node1) was ended by signal 9 (killed) from gclrun", 137},
		"Ctrl-C after the failure": {list(coded(1, 0, 3), killed(0, 200, intr)), []sending{sent(199, intr, false)},
			"replica 1 (pid 71 on node1) ended with exit code 3, one of 2 that failed", 3},
		"ended before the same signal came": {list(killed(1, 2, term), killed(0, 4, term)),
			[]sending{sent(3, term, false)},
			"replica 1 (pid 71 on node1) was ended by signal 15 (terminated)", 143},
		"a signal that asks for no end": {list(coded(0, 5000, 1), killed(2, 5001, kill)),
			[]sending{sent(1, usr, false)},
			"replica 2 (pid 72 on node1) was ended by signal 9 (killed)", 137},
	} {
		if line, code := judge(c.endings, c.sent, "node1"); line != c.line || code != c.code {
			t.Errorf("%s: %d, %s\nwant %d, %s", name, code, line, c.code, c.line)
		}
	}
	if line, _ := judge(list(coded(0, 0, 1)), nil, ""); line != "replica 0 (pid 70) ended with exit code 1" {
		t.Errorf("without the name of the host: %s", line)
	}
}
