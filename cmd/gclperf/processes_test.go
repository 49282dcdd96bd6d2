package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/spawn"
)

// networks are the transports between processes that there are here.
func networks() []string {
	if runtime.GOOS == "linux" {
		return []string{"tcp", "unix", "shm"}
	}
	return []string{"tcp"}
}

// TestProcesses measures between processes: the same fields and columns as among goroutines, and nothing wrong.
func TestProcesses(t *testing.T) {
	t.Setenv(asGclperf, "")
	few := strings.Fields("-n 3 -sizes 9000 -iters 3")
	for _, network := range networks() {
		got := perform(t, t.Context(), nil, append(few, "-transport", network, "-collective", "all", "-json")...)
		if got.code != command.OK || got.stderr != "" {
			t.Fatal(got)
		}
		all := parsed(t, got.stdout)
		if want := len(measure.Collectives()) * 2; len(all) != want {
			t.Errorf("%s: %d measurements, want %d", network, len(all), want)
		}
		for _, m := range all {
			if m.Transport != network || m.N != 3 || m.Wrong != 0 || m.P50 <= 0 || m.P90 < m.P50 || m.P99 < m.P90 {
				t.Errorf("%+v", m)
			}
		}
		table := perform(t, t.Context(), nil, append(few, "-transport", network)...)
		among := perform(t, t.Context(), nil, few...)
		if got, want := columns(table.stdout), columns(among.stdout); got != want || want == "" {
			t.Errorf("%s: columns\n%s, want\n%s\n%+v", network, got, want, table)
		}
	}
}

// TestSharedBuffers: the table and the fields say whether processes that share memory share their buffers too, and the
// options that they do not.
func TestSharedBuffers(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only on Linux do processes share memory")
	}
	t.Setenv(asGclperf, "")
	args := strings.Fields("-transport shm -sizes 4M -iters 3 -place oop")
	for options, want := range map[string]string{"": "peer memory", `{"sharedAlloc":false}`: "messages"} {
		t.Setenv("GCL_OPTIONS", options)
		got := perform(t, t.Context(), nil, append(args, "-json")...)
		if got.code != command.OK || got.stderr != "" {
			t.Fatal(got)
		}
		for _, m := range parsed(t, got.stdout) {
			if m.Path != want || !strings.HasSuffix(m.Settings, options) || m.CPU <= 0 {
				t.Errorf("%s: %+v", options, m)
			}
		}
		got = perform(t, t.Context(), nil, args...)
		if !strings.Contains(got.stdout, "# Data went by         : "+want+"\n") ||
			!strings.Contains(got.stdout, "# GCL_OPTIONS="+options+" overrides") == (options != "") {
			t.Errorf("%s: %+v", options, got)
		}
	}
}

// columns are the lines of a table that head its columns, and how many there are in each line below.
func columns(table string) string {
	var out strings.Builder
	for line := range strings.Lines(table) {
		if strings.Contains(line, "algbw") || strings.Contains(line, "out-of-place") {
			out.WriteString(line)
		}
		if line[0] == ' ' {
			fmt.Fprintln(&out, len(strings.Fields(line)))
		}
	}
	return out.String()
}

// TestWrongProcess breaks one element of the result of replica 1.
func TestWrongProcess(t *testing.T) {
	t.Setenv(asGclperf, "wrong 1")
	got := perform(t, t.Context(), nil, strings.Fields("-transport tcp -sizes 9000 -place oop -iters 3 -json")...)
	if got.code != command.Failed ||
		!strings.Contains(got.stderr, "after the timed calls: 1 wrong elements at replica 1") ||
		!strings.Contains(got.stderr, "gclperf: 1 wrong values\n") || parsed(t, got.stdout)[0].Wrong != 1 {
		t.Errorf("%+v", got)
	}
}

// TestDeath: a process that dies is named, by the program that has started it and by the others, and ends them.
func TestDeath(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no signals")
	}
	for _, victim := range []int{0, 1} {
		t.Setenv(asGclperf, fmt.Sprint("die ", victim))
		for _, network := range networks() {
			got := perform(t, t.Context(), nil, "-transport", network, "-n", "3", "-sizes", "8", "-iters", "3", "-csv")
			if got.code != command.Failed || strings.Count(got.stderr, ") was ended by signal 9 (killed)\n") != 1 ||
				strings.Count(got.stderr, " was ended ") != 1 ||
				!strings.Contains(got.stderr, fmt.Sprintf("gclperf: replica %d (pid ", victim)) {
				t.Errorf("replica %d over %s: %+v", victim, network, got)
			}
			if strings.Count(got.stderr, fmt.Sprintf("replica %d", victim)) < 3 { // once by each survivor
				t.Errorf("replica %d over %s: %+v", victim, network, got)
			}
		}
	}
}

// cancelWriter cancels when something has been written.
type cancelWriter struct {
	safeBuffer
	once   sync.Once
	cancel context.CancelFunc
}

func (w *cancelWriter) Write(p []byte) (int, error) {
	w.once.Do(w.cancel)
	return w.safeBuffer.Write(p)
}

// TestInterruptedProcesses: one line, and the exit code of shells.
func TestInterruptedProcesses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows one process cannot interrupt another")
	}
	t.Setenv(asGclperf, "")
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := &cancelWriter{cancel: cancel}, &safeBuffer{}
	code := run(ctx, strings.Fields("-transport tcp -n 3 -time 50ms -place oop -max 64K -csv"), out, errs)
	if code != command.Interrupted || errs.String() != "gclperf: interrupted\n" ||
		!strings.HasPrefix(out.String(), "collective,transport,") {
		t.Errorf("code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

// TestKilled: the kernel ends the replicas of a gclperf that is killed. They hold its output open while they live.
func TestKilled(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux ends a process with the one that started it")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, strings.Fields("-transport unix -n 3 -time 200ms -csv")...) // takes 10 s
	c.Env = append(os.Environ(), asGclperf+"=")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	seen := 0
	for lines.Scan() {
		if seen++; seen == 1 {
			_ = c.Process.Kill()
		}
	}
	_ = c.Wait() // killed, as asked for
	if seen < 1 || seen > 20 {
		t.Errorf("%d lines", seen)
	}
}

// inJob runs gclperf as the replicas of a job, each with arguments of its own.
func inJob(t *testing.T, args ...string) (all []outcome) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env, err := spawn.NewEnvironment(append(os.Environ(), asGclperf+"="), len(args), "tcp")
	if err != nil {
		t.Fatal(err)
	}
	all = make([]outcome, len(args))
	var replicas sync.WaitGroup
	for rank, line := range args {
		replicas.Go(func() {
			var stdout, stderr strings.Builder
			c := exec.Command(self, strings.Fields(line)...)
			c.Env, c.Stdout, c.Stderr = env.Replica(rank), &stdout, &stderr
			_ = c.Run() // the state says it
			all[rank] = outcome{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
		})
	}
	replicas.Wait()
	return all
}

// TestJob: under a launcher the job says how many replicas there are, and what they talk over.
func TestJob(t *testing.T) {
	for _, args := range []string{"", "-n 2", "-transport tcp"} {
		args += " -sizes 8 -iters 2 -json"
		all := inJob(t, args, args)
		if all[0].code != command.OK || all[0].stderr != "" || all[1] != (outcome{}) {
			t.Fatalf("%s: %+v", args, all)
		}
		for _, m := range parsed(t, all[0].stdout) {
			if m.Transport != "tcp" || m.N != 2 {
				t.Errorf("%s: %+v", args, m)
			}
		}
	}
}

// TestWrongJob: a mistake is printed once, and all replicas have the exit code.
func TestWrongJob(t *testing.T) {
	for args, want := range map[string]string{
		"-n 3": "-n 3, and the job that has started this process has 2 replicas: leave -n out, or start 3 processes",
		"-transport inproc": "-transport inproc is among goroutines of one process, and this is one of the 2 processes " +
			"of a job: leave it out, or start gclperf by itself",
		"-transport tcp,unix": "-transport tcp,unix: this is one of the 2 processes of a job, which has one transport: want " +
			"one, or start gclperf by itself",
		"-transport udp":           `-transport "udp" does not exist; there is inproc, tcp, unix, shm`,
		"-nonsense":                "flag provided but not defined: -nonsense",
		"-op AND":                  `-op "AND" does not exist (did you mean LOGICAL_AND?); there is ADD`,
		"-svg x.svg -floor x":      "-floor is that of one address space",
		"-root 2":                  "-root 2 is not a rank, 0 to 1",
		"-sizes 8 | -sizes 8 -n 2": "replica 1 has other arguments than replica 0",
	} {
		first, second, both := strings.Cut(args, "|")
		if !both {
			second = first
		}
		all := inJob(t, first, second)
		text := all[0].stderr + all[1].stderr
		if !strings.HasPrefix(text, "gclperf: "+want) || strings.Count(text, "\n") != 1 {
			t.Errorf("%s: %q, want %q", args, text, want)
		}
		for _, got := range all {
			if got.code != command.Usage || got.stdout != "" {
				t.Errorf("%s: %+v", args, got)
			}
		}
	}
}

// TestMPI: Open MPI starts the replicas.
func TestMPI(t *testing.T) {
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("mpirun is not installed")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(mpirun, "--version").CombinedOutput(); err != nil ||
		!strings.Contains(string(text), "Open MPI") {
		t.Skipf("mpirun is not that of Open MPI: %v, %s", err, text)
	}
	c := exec.Command(mpirun, "--allow-run-as-root", "--oversubscribe", "-np", "2", self, "-sizes", "8", "-iters", "2",
		"-json")
	c.Env = append(os.Environ(), asGclperf+"=")
	text, err := c.Output()
	if err != nil {
		t.Fatalf("%v, %s", err, text)
	}
	for _, m := range parsed(t, string(text)) {
		if m.N != 2 || m.Wrong != 0 {
			t.Errorf("%+v", m)
		}
	}
}
