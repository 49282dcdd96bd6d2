package tcp

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"gogcl.dev/transport"
	"gogcl.dev/transport/transporttest"
)

// launcher is a shell in the place of mpirun. Its arguments are the number of processes and their command line. Like
// mpirun it ends with an error if a process does.
const launcher = `n=$1 rank=0 pids=
shift
while test $rank -lt $n; do
	LAUNCHED_RANK=$rank "$@" &
	pids="$pids $!" rank=$((rank+1))
done
status=0
for pid in $pids; do
	wait $pid || status=1
done
exit $status`

// launch is the Command of launcher.
func launch(n int, program []string) *exec.Cmd {
	return exec.Command("/bin/sh", append([]string{"-c", launcher, "launcher", strconv.Itoa(n)}, program...)...)
}

func launchedRank() int {
	rank, err := strconv.Atoi(os.Getenv("LAUNCHED_RANK"))
	if err != nil {
		panic(err)
	}
	return rank
}

// joinLaunched connects a replica of TestLaunched or TestDoomed.
func joinLaunched(t testing.TB, rank, size int, dir string) transport.Endpoint {
	e, err := connectBy(dir, Config{
		Rank: rank, Size: size, Job: t.Name(), Secret: make([]byte, 32), Crowded: size > runtime.GOMAXPROCS(0),
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestLaunched runs the suite in processes that a launcher starts. Each of them leaves once.
func TestLaunched(t *testing.T) {
	const variable = "LAUNCHED_LEFT" // the directory where processes leave a file
	const n = 4
	left := ""
	by := transporttest.Launcher{
		Sizes: []int{n},
		Command: func(n int, program []string) *exec.Cmd {
			left = t.TempDir()
			cmd := launch(n, program)
			cmd.Env = append(os.Environ(), variable+"="+left)
			return cmd
		},
		Rank: launchedRank,
		Leave: func() {
			f, err := os.OpenFile(filepath.Join(os.Getenv(variable), os.Getenv("LAUNCHED_RANK")),
				os.O_CREATE|os.O_EXCL, 0o600)
			if err != nil {
				t.Error(err)
				return
			}
			f.Close()
		},
	}
	transporttest.RunLaunched(t, by, joinLaunched, transporttest.Buffers, transporttest.NoAlloc)
	if left == "" {
		return // a replica, or -run has left out all sets
	}
	files, err := os.ReadDir(left)
	if err != nil || len(files) != n {
		t.Errorf("%d of %d processes have left, %v", len(files), n, err)
	}
}

// doomVariable says how a process of TestDoomed fails.
const doomVariable = "LAUNCHED_DOOM"

// TestDoomed is run by TestLaunchedFails alone, in a process of its own, and fails.
func TestDoomed(t *testing.T) {
	doom := os.Getenv(doomVariable)
	if doom == "" {
		t.Skip("is for TestLaunchedFails")
	}
	by := transporttest.Launcher{
		Sizes: []int{3},
		Command: func(n int, program []string) *exec.Cmd {
			cmd := launch(n, program)
			cmd.ExtraFiles = []*os.File{os.NewFile(3, "held by all processes")}
			return cmd
		},
		Rank: func() int {
			rank := launchedRank()
			switch {
			case doom == "exits at once" && rank == 1:
				fmt.Println("too early")
				os.Exit(0)
			case doom == "is another one" && rank == 1:
				return 2
			}
			return rank
		},
		Leave: func() { fmt.Println("leaves") },
	}
	transporttest.RunLaunched(t, by, func(t testing.TB, rank, size int, dir string) transport.Endpoint {
		e := joinLaunched(t, rank, size, dir)
		if rank != 1 {
			return e
		}
		t.Cleanup(func() { e.Close() })
		switch doom {
		case "fails":
			t.Fatal("this is its fate")
		case "exits":
			os.Exit(0)
		case "is killed":
			if self, err := os.FindProcess(os.Getpid()); err == nil {
				self.Kill()
			}
		}
		select {} // "hangs"
	})
}

// TestLaunchedFails has replica 1 of 3 fail in some way. The calling test says so, and no process is left running.
func TestLaunchedFails(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("processes are started by a shell")
	}
	if os.Getenv(doomVariable) != "" {
		t.Skip("fails already")
	}
	t.Parallel()
	ring := ", last in TestDoomed/Ring/n=3/size="
	for doom, want := range map[string][]string{
		"fails": {"replica 0: exit status 1\n", "replica 1: exit status 1\n", "replica 2: exit status 1\n",
			"this is its fate", "replica 1 | leaves", "replica 2 | leaves", "launcher /bin/sh: exit status 1"},
		"exits":     {"replica 0: exit status 1\n", "replica 1: ended before its time" + ring},
		"is killed": {"replica 0: exit status 1\n", "replica 1: signal: killed" + ring},
		"exits at once": {"replica 0: exit status 1\n", "2 of 3 processes have come",
			"no process has come to RunProcesses or RunLaunched as replica 1", "a process without a rank: ended before it came",
			"no rank | too early"},
		"is another one": {"two processes say that they are replica 2", "replica 0: exit status 1\n"},
		"hangs":          {"replica 0: hangs: ", "replica 1: hangs: ", "replica 1 | SIGQUIT", "TestDoomed.func"},
	} {
		t.Run(doom, func(t *testing.T) {
			t.Parallel()
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			wait, done, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer wait.Close()
			limit := "1m"
			if doom == "hangs" {
				limit = "25s" // the last 15 are for stacks and the like, and by the first 10 all have come
			}
			cmd := exec.Command(self, "-test.run=^TestDoomed$/^n=3$/^Ring$", "-test.timeout="+limit)
			cmd.Env = append(os.Environ(), doomVariable+"="+doom)
			cmd.ExtraFiles = []*os.File{done}
			output, err := cmd.CombinedOutput()
			done.Close()
			if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("the test ends with %v, want exit status 1", err)
			}
			for _, text := range want {
				if !bytes.Contains(output, []byte(text)) {
					t.Errorf("the test does not say %q", text)
				}
			}
			if doom != "fails" && strings.Contains(string(output), "| leaves") {
				t.Error("a process leaves, where it may wait for the others")
			}
			if t.Failed() {
				t.Logf("%s", output)
			}
			wait.SetReadDeadline(time.Now().Add(20 * time.Second))
			if _, err := io.Copy(io.Discard, wait); err != nil {
				t.Errorf("a process is left running: %v", err)
			}
		})
	}
}
