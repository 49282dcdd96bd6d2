package main

import (
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m, main) }

// gen runs the program in this process, and returns its exit code and what it prints.
func gen(t *testing.T, args ...string) (code int, text string) {
	t.Helper()
	var stdout, stderr strings.Builder
	code = run(t.Context(), args, &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

// TestInProcess: programs of one process agree with the oracle.
func TestInProcess(t *testing.T) {
	if code, text := gen(t, "-progs", "12", "-t", "1h"); code != 0 || !strings.Contains(text, "12 programs, 0 failed") {
		t.Errorf("exit code %d:\n%s", code, text)
	}
}

// transports are those of a job of processes.
func transports() []string {
	if runtime.GOOS == "linux" {
		return []string{"tcp", "shm"}
	}
	return []string{"tcp"}
}

// TestJob: so do those of a job of processes.
func TestJob(t *testing.T) {
	for _, transport := range transports() {
		job := jobtest.Start(t, 3, "-mode", "job", "-progs", "3", "-seed", "500", "-transport", transport)
		for rank, r := range job.Wait() {
			if r.Code != 0 {
				t.Errorf("%s: replica %d: exit code %d:\n%s%s", transport, rank, r.Code, r.Stdout, r.Stderr)
			}
		}
	}
}

// TestAlloced: the ranks of a call have all of their operands from gcl.Alloc, none, or some.
func TestAlloced(t *testing.T) {
	const ranks, ids = 4, 100
	count := map[int]int{}
	for id := range uint64(ids) {
		c, n := newCall(id, ranks, false), 0
		for rank := range ranks {
			if c.alloced(0, rank) {
				n++
			}
		}
		count[n]++
	}
	if some := ids - count[0] - count[ranks]; count[0] < ids/5 || count[ranks] < ids/5 || some < ids/5 {
		t.Errorf("calls by how many of %d ranks have memory from Alloc: %v", ranks, count)
	}
}

// TestDisagree: every member of a group in which some call something else hears of it, with peer memory and without.
func TestDisagree(t *testing.T) {
	if code, text := gen(t, "-mode", "disagree", "-progs", "150", "-t", "1h"); code != 0 {
		t.Errorf("exit code %d:\n%s", code, text)
	}
	// Parts of which one member has none, and a schedule by which a rank exchanges nothing.
	for _, args := range []string{
		"-mode disagree -progs 1 -seed 11680 -only unequalparts",
		"-mode disagree -progs 1 -seed 13249 -only execute",
	} {
		if code, text := gen(t, strings.Fields(args)...); code != 0 {
			t.Errorf("%s: exit code %d:\n%s", args, code, text)
		}
	}
}

// TestJobDisagree: so does every process of a job: members that have sent their part, or have no part, hear by Close.
func TestJobDisagree(t *testing.T) {
	for _, args := range []string{
		"-seed 59", // a scatter of another type, at a leaf
		"-seed 7 -only root",
		"-seed 7 -only unequalparts",
		"-seed 7 -only execute",
		"-seed 1122", // options of the odd rank refuse its schedule: it leaves
		"-seed 5153", // a barrier before what would be LOCAL, of which nothing is compared
	} {
		for _, transport := range transports() {
			job := jobtest.Start(t, 5, strings.Fields("-mode jobdisagree -transport "+transport+" "+args)...)
			for rank, r := range job.Wait() {
				heard := strings.Contains(r.Stdout, "mismatch by ") || strings.Contains(r.Stdout, "it is right to say")
				if r.Code != 0 || !heard {
					t.Errorf("%s, %s: replica %d: exit code %d:\n%s%s", args, transport, rank, r.Code, r.Stdout,
						r.Stderr)
				}
			}
		}
	}
}

// TestSettings: what no mode can do is an error that says what would be right.
func TestSettings(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{"-mode no", "no mode"},
		{"-progs 0", "want at least one"},
		{"-mode goroutines -n 4 -dealt", "-dealt: there is one link domain"},
		{"-mode goroutines -n 5 -domains 2", "5 replicas do not divide into 2 domains"},
		{"-mode numerics -jobs 2", "want job or jobdisagree"},
	} {
		if code, text := gen(t, strings.Fields(test.args)...); code == 0 || !strings.Contains(text, test.want) {
			t.Errorf("%s: exit code %d: %s, want %q", test.args, code, text, test.want)
		}
	}
}

// TestSeedsReplay: a seed means the same program tomorrow. An operation of Execute is left out: it may come from the
// list of methods, which grows.
func TestSeedsReplay(t *testing.T) {
	for id, text := range replays {
		if got := newCall(id, 5, false).String(); got != text {
			t.Errorf("call %d is now\n%s\nand was\n%s", id, got, text)
		}
	}
}
