// Package jobtest runs a program as the processes of a job, for tests of the program: the processes are the test
// binary.
//
//	func TestMain(m *testing.M) { jobtest.Main(m, main) }
//
//	func TestJob(t *testing.T) {
//		for rank, r := range jobtest.Start(t, 4, "-epochs", "1").Wait() {
//			...
package jobtest

import (
	"context"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// arguments is the environment variable that makes the test binary the program: its arguments, one on each line.
const arguments = "GOGCL_JOBTEST_ARGUMENTS"

// Main runs the tests, or in a process of Start the program.
func Main(m *testing.M, program func()) {
	if args, ok := os.LookupEnv(arguments); ok {
		os.Args = os.Args[:1]
		if args != "" {
			os.Args = append(os.Args, strings.Split(args, "\n")...)
		}
		program()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Entry is the entry of an environment that makes the test binary the program, with these arguments.
func Entry(args ...string) string { return arguments + "=" + strings.Join(args, "\n") }

// Timeout is how long a job may take before its processes are killed.
const Timeout = 2 * time.Minute

// Result is what became of a process.
type Result struct {
	Code           int // -1: a signal has ended it
	Stdout, Stderr string
}

// Job is a running job.
type Job struct {
	Processes []*exec.Cmd // by replica, and then the newcomers
	stdout    []*output
	stderr    []*output
	ctx       context.Context
	stop      context.CancelFunc
	make      func(ctx context.Context, rank int) *exec.Cmd
}

// output is what a process writes. It may be looked at while the process runs.
type output struct {
	mu   sync.Mutex // guards what follows
	text strings.Builder
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// Environment is that of the test without what a launcher may have put there, but with where a job writes what it knows
// when it fails.
func Environment() []string {
	var out []string
	for _, entry := range os.Environ() {
		keep := true
		for _, prefix := range []string{"OMPI_", "PMI", "SLURM_", "RANK=", "WORLD_SIZE=", "LOCAL_", "GCL_"} {
			keep = keep && !strings.HasPrefix(entry, prefix)
		}
		keep = keep || strings.HasPrefix(entry, "GCL_DUMP_DIR=")
		if keep {
			out = append(out, entry)
		}
	}
	return out
}

// Start starts the program as n processes, which find each other in a directory of the test's.
func Start(t testing.TB, n int, args ...string) *Job {
	t.Helper()
	return StartAt(t, n, "dir:"+t.TempDir(), args...)
}

// StartAt is Start, where the processes find each other as GCL_RENDEZVOUS says.
func StartAt(t testing.TB, n int, rendezvous string, args ...string) *Job {
	t.Helper()
	environment := append(Environment(), "GCL_RENDEZVOUS="+rendezvous, "GCL_JOB=test", "WORLD_SIZE="+strconv.Itoa(n))
	return start(t, n, func(ctx context.Context, rank int) *exec.Cmd {
		cmd := command(t, ctx, args, environment)
		cmd.Env = append(cmd.Env, "RANK="+strconv.Itoa(rank))
		return cmd
	})
}

// Alone starts the program as one process in no job.
func Alone(t testing.TB, args ...string) *Job {
	t.Helper()
	return start(t, 1, func(ctx context.Context, _ int) *exec.Cmd { return command(t, ctx, args, Environment()) })
}

// MPI starts the program by mpirun, whose output is one Result. The test is skipped where there is no mpirun.
func MPI(t testing.TB, n int, args ...string) *Job {
	t.Helper()
	mpirun, err := exec.LookPath("mpirun")
	if err != nil {
		t.Skip("there is no mpirun: ", err)
	}
	// Two that begin at the same time fall over each other in the directory that all share otherwise.
	dir, err := os.MkdirTemp("", "mpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return start(t, 1, func(ctx context.Context, _ int) *exec.Cmd {
		program := command(t, ctx, args, Environment())
		cmd := exec.CommandContext(ctx, mpirun, "--oversubscribe", "-np", strconv.Itoa(n), program.Path)
		cmd.Env = append(program.Env, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
			"OMPI_MCA_orte_tmpdir_base="+dir)
		return cmd
	})
}

func command(t testing.TB, ctx context.Context, args, environment []string) *exec.Cmd {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(environment[:len(environment):len(environment)], Entry(args...))
	return cmd
}

func start(t testing.TB, n int, make func(ctx context.Context, rank int) *exec.Cmd) *Job {
	if runtime.GOOS == "js" || runtime.GOOS == "wasip1" {
		t.Skip("there are no processes here")
	}
	ctx, stop := context.WithTimeout(context.Background(), Timeout)
	j := &Job{ctx: ctx, stop: stop, make: make}
	t.Cleanup(stop)
	for rank := range n {
		j.start(t, make(ctx, rank))
	}
	return j
}

func (j *Job) start(t testing.TB, cmd *exec.Cmd) {
	t.Helper()
	stdout, stderr := &output{}, &output{}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	j.Processes, j.stdout, j.stderr = append(j.Processes, cmd), append(j.stdout, stdout), append(j.stderr, stderr)
}

// Newcomer starts a process in the place of a replica of StartAt, as gclrun -max-restarts does.
func (j *Job) Newcomer(t testing.TB, rank int) {
	t.Helper()
	cmd := j.make(j.ctx, rank)
	cmd.Env = append(cmd.Env, "GCL_NEWCOMER=1")
	j.start(t, cmd)
}

// Await waits until the output of a process holds some words, or the processes have ended with the timeout.
func (j *Job) Await(words string) {
	for until := time.Now().Add(Timeout); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if slices.ContainsFunc(j.stdout, func(o *output) bool { return strings.Contains(o.String(), words) }) {
			return
		}
	}
}

// Wait waits for the end of all processes. Results are by replica.
func (j *Job) Wait() []Result {
	defer j.stop()
	var results []Result
	for rank, cmd := range j.Processes {
		_ = cmd.Wait() // the exit code says it
		results = append(results, Result{cmd.ProcessState.ExitCode(), j.stdout[rank].String(), j.stderr[rank].String()})
	}
	return results
}

// Printed waits for the end of all processes and returns what replica 0 printed. It fails the test unless each process
// has exit code 0 and nothing on standard error, and all but replica 0 print nothing.
func (j *Job) Printed(t testing.TB) string {
	t.Helper()
	all := j.Wait()
	for rank, r := range all {
		if r.Code != 0 || r.Stderr != "" || rank > 0 && r.Stdout != "" {
			t.Errorf("replica %d: %+v", rank, r)
		}
	}
	return all[0].Stdout
}
