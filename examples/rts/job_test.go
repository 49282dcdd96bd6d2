package main

import (
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m, main) }

// passes are the lines of an output about passes, without the speeds. What mpirun shows is as on a terminal.
func passes(output string) string {
	return strings.Join(regexp.MustCompile(`epoch \d+/\d+  loss \S+  accuracy \S+`).FindAllString(output, -1), "\n")
}

// TestJob: four processes have the losses of four goroutines, to the bit: with a reference in each process, files of
// their own, a table of the memory that the operating system says they have, and which ways their collectives went.
func TestJob(t *testing.T) {
	ways := []struct {
		flags []string
		went  string // how collectives do where processes share memory
	}{
		{[]string{"-overlap"}, `peer memory \d+, small \d+`},
		{[]string{"-storage", "file", "-method", "clockwise_ring", "-accumulate", "3"}, `messages \d+`},
	}
	if testing.Short() {
		ways = ways[1:]
	}
	for _, way := range ways {
		args := append(way.flags, "-epochs", "2", "-verify", "-checkpoint")
		dir := t.TempDir()
		alone := output(t, append(args, dir+"/alone")...)
		job := jobtest.Start(t, 4, append(args, dir+"/job")...).Printed(t)
		if passes(job) != passes(alone) || passes(job) == "" {
			t.Errorf("a job prints\n%s\nwant\n%s", job, alone)
		}
		if !strings.Contains(job, "\nverified: 46 steps") {
			t.Errorf("nothing is verified:\n%s", job)
		}
		wantSame(t, dir+"/job", dir+"/alone")
		resident := regexp.MustCompile(`(?m)^resident memory: [\d.]+ MB in 4 processes, the greatest [\d.]+ MB$`)
		if _, err := os.Stat("/proc/self/statm"); err == nil && !resident.MatchString(job) {
			t.Errorf("no resident memory:\n%s", job)
		}
		went := `over \w+: messages \d+`
		if runtime.GOOS == "linux" {
			went = "over shm: " + way.went
		}
		if !regexp.MustCompile("(?m)^collectives " + went + "$").MatchString(job) {
			t.Errorf("%s: no line of collectives %s:\n%s", way.flags, went, job)
		}
	}
}

// TestMPI is TestJob under mpirun.
func TestMPI(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-epochs", "1", "-n", "3", "-checkpoint"}
	alone := output(t, append(args, dir+"/alone")...)
	job := jobtest.MPI(t, 3, append(args, dir+"/job")...).Printed(t)
	if passes(job) != passes(alone) || passes(job) == "" {
		t.Errorf("a job prints\n%s\nwant\n%s", job, alone)
	}
	wantSame(t, dir+"/job", dir+"/alone")
}

// TestJobResume saves in one process and resumes in four, and the reverse, with the losses of a training that was never
// interrupted.
func TestJobResume(t *testing.T) {
	dir := t.TempDir()
	args := func(name string, epochs int, more ...string) []string {
		return append(more, "-checkpoint", dir+"/"+name, "-epochs", strconv.Itoa(epochs))
	}
	output(t, args("whole", 3)...)
	output(t, args("out", 1)...)
	jobtest.Start(t, 4, args("out", 3, "-resume", "-verify")...).Printed(t)
	wantSame(t, dir+"/out", dir+"/whole")

	jobtest.Start(t, 4, args("back", 2)...).Printed(t)
	output(t, args("back", 3, "-resume", "-verify")...)
	wantSame(t, dir+"/back", dir+"/whole")

	if testing.Short() {
		return
	}
	// On another number of processes than there are shards.
	jobtest.Start(t, 3, args("out", 4, "-resume", "-verify")...).Printed(t)
	jobtest.Start(t, 2, args("back", 4, "-resume", "-verify")...).Printed(t)
}

// TestJobMistakes: replica 0 says what is wrong, and all have the exit code.
func TestJobMistakes(t *testing.T) {
	dir := t.TempDir()
	for _, tt := range []struct{ args, want string }{
		{"-n 3", "-n 3: the launcher has started 2 replicas"},
		{"-epochs 0", "-epochs 0: there must be at least 1"},
		{"-resume -checkpoint " + dir, "-resume: there is no checkpoint in " + dir},
	} {
		for rank, r := range jobtest.Start(t, 2, strings.Fields(tt.args)...).Wait() {
			want := "rts: " + tt.want + " (-h lists the flags)\n"
			if rank > 0 {
				want = ""
			}
			if r.Code != command.Usage || r.Stdout != "" || r.Stderr != want {
				t.Errorf("%s: replica %d: %+v, want %s", tt.args, rank, r, want)
			}
		}
	}
}
