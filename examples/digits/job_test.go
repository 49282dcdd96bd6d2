package main

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

func TestMain(m *testing.M) { jobtest.Main(m, main) }

// steady is an output without the speeds, which differ from run to run. What mpirun shows is as on a terminal.
func steady(output string) string {
	output = regexp.MustCompile(`\d+ samples/s *`).ReplaceAllString(output, "N samples/s")
	return strings.TrimLeft(regexp.MustCompile(`[\r\n]+`).ReplaceAllString(output, "\n"), "\n")
}

// TestJob: four processes print what one process with four goroutines prints, to the bit of every weight, and only
// replica 0 prints.
func TestJob(t *testing.T) {
	args := []string{"-epochs", "3"}
	for _, method := range []string{"auto", "clockwise_ring"} {
		t.Run(method, func(t *testing.T) {
			args := append(args, "-method", method)
			want := output(t, strings.Join(args, " "))
			if alone := jobtest.Alone(t, args...).Wait()[0]; alone.Code != command.OK || steady(alone.Stdout) != want {
				t.Errorf("alone: %+v, want\n%s", alone, want)
			}
			for rank, r := range jobtest.Start(t, 4, args...).Wait() {
				if rank > 0 {
					want = ""
				}
				if r.Code != command.OK || r.Stderr != "" || steady(r.Stdout) != want {
					t.Errorf("replica %d: %+v, want\n%s", rank, r, want)
				}
			}
		})
	}
}

// TestMPI is TestJob under mpirun.
func TestMPI(t *testing.T) {
	args := []string{"-epochs", "2", "-n", "3"}
	r := jobtest.MPI(t, 3, args...).Wait()[0]
	if want := output(t, strings.Join(args, " ")); r.Code != command.OK || steady(r.Stdout) != want {
		t.Errorf("%+v, want\n%s", r, want)
	}
}

// TestJobMistakes: replica 0 says what is wrong, and all have the exit code.
func TestJobMistakes(t *testing.T) {
	for rank, r := range jobtest.Start(t, 2, "-n", "3").Wait() {
		want := "digits: -n 3: the launcher has started 2 replicas (-h lists the flags)\n"
		if rank > 0 {
			want = ""
		}
		if r.Code != command.Usage || r.Stdout != "" || r.Stderr != want {
			t.Errorf("replica %d: %+v", rank, r)
		}
	}
}

// TestJobInterrupt: one replica that is told to stop ends all.
func TestJobInterrupt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows one process cannot interrupt another")
	}
	j := jobtest.Start(t, 3, "-epochs", "1000000")
	j.Await("epoch 1/")
	if err := j.Processes[2].Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	for rank, r := range j.Wait() {
		want := ""
		if rank == 0 {
			want = "digits: interrupted\n"
		}
		if r.Code != command.Interrupted || r.Stderr != want {
			t.Errorf("replica %d: %s", rank, fmt.Sprint(r.Code, " ", r.Stderr))
		}
	}
}
