package transporttest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/transport"
)

// RunProcesses runs the suite with one process for each replica. join is called in each of them, once for each case,
// and connects the replica with the others: rank, of size. dir is an empty directory that the replicas of the case
// share, and no other case has: a place for addresses. The suite closes what join returns.
//
//	func TestProcesses(t *testing.T) {
//		transporttest.RunProcesses(t, join, transporttest.NoAlloc)
//	}
//
// The processes run the same test binary, with the calling test alone. So whatever the test does before RunProcesses,
// each of them does as well. Calls of RunProcesses that the process does not belong to skip their test.
//
//	test binary                       the same binary, for replica 0, 1, ...
//	TestProcesses                     TestProcesses
//	 └ RunProcesses                    └ RunProcesses
//	    ├ n=2: starts 2 ────────────────▶  ├ Ring/n=2/size=64: join, the rounds, Close
//	    ├ n=3: starts 3                    ├ Fold/n=2/size=64: join, ...
//	    └ n=5: starts 5                    └ ...
//
// The processes of a set go through all cases one after the other, in step. One that fails a case fails it for all, and
// prints why, which the calling test shows with its rank. One that ends has the others fail. After three minutes, or
// shortly before the deadline of the calling test, those still running write their stacks and are killed. If the
// calling test ends, so do the processes.
//
// RunProcesses implies Brief, and takes a third of the sizes for each number of replicas. With -short there is only
// n=3. Elements of -run below those of the calling test choose among n=2, n=3, n=5 and the cases below.
//
// Deadlock runs as in Run: it asks for names only where the transport promises them. NoAlloc has each process count its
// own allocations.
func RunProcesses(t *testing.T, join func(t testing.TB, rank, size int, dir string) transport.Endpoint,
	options ...Option) {
	t.Helper()
	RunLaunched(t, Launcher{}, join, options...)
}

// Launcher is how the processes of RunLaunched are started. The zero Launcher is that of RunProcesses.
type Launcher struct {
	// Sizes are the numbers of replicas to test, from 2 on, one set of processes each. nil is 2, 3 and 5. With -short
	// there is only the middle one, or the greater of two in the middle. A few cases are for 2 replicas alone, a few
	// for 3.
	Sizes []int

	// Command returns a command that is not started yet. It starts n processes on this host, each with the name and
	// the arguments in program, and ends after the last of them. Its environment is that of the processes. nil starts
	// them by /bin/sh.
	Command func(n int, program []string) *exec.Cmd

	// Rank returns the rank of the process that calls it, from 0 to n-1. Each process calls Rank once, before all
	// cases. nil goes with a nil Command.
	Rank func() int

	// Leave, if not nil, is called in each process once, after the last case, whether cases have failed or not, on the
	// goroutine that called RunLaunched. The process exits soon after. A process does not call Leave once another one
	// has ended before its time, since a Leave that waits for all would never return.
	Leave func()
}

// RunLaunched is RunProcesses with processes that a launcher starts, for transports whose processes must be children
// of one: MPI's of mpirun.
//
//	func TestMPI(t *testing.T) {
//		by := transporttest.Launcher{
//			Sizes: []int{2, 4},
//			Command: func(n int, program []string) *exec.Cmd {
//				return exec.Command("mpirun", append([]string{"-np", strconv.Itoa(n)}, program...)...)
//			},
//			Rank:  mpi.Init, // MPI_Init_thread, then MPI_Comm_rank
//			Leave: mpi.Finalize,
//		}
//		transporttest.RunLaunched(t, by, join)
//	}
//
// The launcher starts a shell for each process, and the shell starts the test binary. The output of a process goes to a
// file and is shown with its rank, so the launcher need not mark it. The launcher learns of a failure a second late.
// Launchers then kill the other processes, which have had this second to write why they fail. mpirun sees at once that
// a process has ended without MPI_Finalize: the others then write nothing, and the calling test names the case in which
// each of them was.
func RunLaunched(t *testing.T, by Launcher, join func(t testing.TB, rank, size int, dir string) transport.Endpoint,
	options ...Option) {
	t.Helper()
	if (by.Command == nil) != (by.Rank == nil) {
		t.Fatal("a Launcher has both Command and Rank, or neither")
	}
	if by.Command == nil {
		by.Command, by.Rank = shellCommand, shellRank
	}
	if len(by.Sizes) == 0 {
		by.Sizes = []int{2, 3, 5}
	}
	options = append(options[:len(options):len(options)], Brief)
	if name := os.Getenv(envTest); name != "" {
		if name != t.Name() {
			t.Skipf("this process is a replica of %s", name)
		}
		runReplica(t, by, join, options)
		return
	}
	if runtime.GOOS == "windows" {
		t.Skip("processes are started by a shell")
	}
	sizes := by.Sizes
	if middle := len(sizes) / 2; testing.Short() {
		sizes = sizes[middle : middle+1]
	}
	for _, n := range sizes {
		if n < 2 {
			t.Fatalf("a set of %d processes tests nothing", n)
		}
		name := t.Name()
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { runSet(t, name, n, by) })
	}
}

// The environment of a process that is a replica.
const (
	envTest  = "GOGCL_TRANSPORTTEST_NAME"  // of the test that calls RunLaunched
	envSize  = "GOGCL_TRANSPORTTEST_SIZE"  // number of replicas
	envDir   = "GOGCL_TRANSPORTTEST_DIR"   // of the set
	envFiles = "GOGCL_TRANSPORTTEST_FILES" // set by wrapper: a name of processFiles
	envRank  = "GOGCL_TRANSPORTTEST_RANK"  // set by shellLauncher
)

// shellCommand is the Command of RunProcesses.
func shellCommand(n int, program []string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", shellLauncher, "launcher", strconv.Itoa(n)}, program...)...)
}

// shellRank is the Rank of RunProcesses.
func shellRank() int {
	rank, err := strconv.Atoi(os.Getenv(envRank))
	if err != nil {
		return -1 // the calling test says that there is no such rank
	}
	return rank
}

// replicaArgs are the arguments of a process that is a replica of a test.
func replicaArgs(name string) []string {
	return []string{"-test.run=" + pattern(name), "-test.count=1", "-test.timeout=0",
		fmt.Sprintf("-test.v=%v", testing.Verbose()), fmt.Sprintf("-test.short=%v", testing.Short())}
}

// pattern is the -test.run of a replica: the calling test, and the elements of this process's own below it.
func pattern(name string) string {
	var parts []string
	for part := range strings.SplitSeq(name, "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	if run := flag.Lookup("test.run"); run != nil {
		given := strings.Split(run.Value.String(), "/")
		if below := len(parts) + 1; len(given) > below { // one is that of the set
			parts = append(parts, given[below:]...)
		}
	}
	return strings.Join(parts, "/")
}
