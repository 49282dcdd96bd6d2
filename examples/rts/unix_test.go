//go:build unix

package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/jobtest"
)

// TestEnds ends the program in every way there is while it trains: it leaves no files, and a checkpoint.
func TestEnds(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(p *os.Process, stdout io.Closer) error
		code int // -1: of a signal
		want string
	}{
		{"interrupt", signalled(syscall.SIGINT), command.Interrupted, "rts: interrupted after "},
		{"terminate", signalled(syscall.SIGTERM), 143, "rts: interrupted after "},
		{"hang up", signalled(syscall.SIGHUP), 129, "rts: interrupted after "},
		{"closed pipe", func(_ *os.Process, stdout io.Closer) error { return stdout.Close() }, command.Failed, "rts: standard output: "},
		{"kill", signalled(syscall.SIGKILL), -1, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "hang up" && signal.Ignored(syscall.SIGHUP) {
				t.Skip("the tests run under nohup, or something like it, and then the program too does not end")
			}
			temporary, dir := t.TempDir(), t.TempDir()
			program, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute) // what is not ended would go on for ever
			defer stop()
			cmd := exec.CommandContext(ctx, program)
			cmd.Env = append(os.Environ(), "TMPDIR="+temporary, jobtest.Entry("-storage", "file", "-epochs", "1000000",
				"-checkpoint", dir))
			var stderr strings.Builder
			cmd.Stderr = &stderr
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(stdout)
			for lines.Scan() && !strings.HasPrefix(lines.Text(), "epoch 2/") {
			}
			if err := tt.end(cmd.Process, stdout); err != nil {
				t.Error(err)
			}
			for lines.Scan() { // or the program would wait for room in the pipe
			}
			_ = cmd.Wait() // the exit code says it
			if code := cmd.ProcessState.ExitCode(); code != tt.code || !strings.HasPrefix(stderr.String(), tt.want) {
				t.Errorf("exit code %d, standard error %q", code, &stderr)
			}
			if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
				t.Errorf("there remain %v, error %v", left, err)
			}
			got := runWith(jobtest.Countdown(t.Context(), 1), "-epochs", "1000000", "-checkpoint", dir, "-resume")
			if got.code != command.Interrupted || !strings.Contains(got.stdout, "\nresumed from ") {
				t.Errorf("%+v", got)
			}
		})
	}
}

// TestJobEnds: a process that is told to stop tells the others, and all stop after the same step, with one checkpoint
// that one process resumes. After a kill the others fail.
func TestJobEnds(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		dir := t.TempDir() + "/c"
		j := jobtest.Start(t, 4, "-epochs", "1000000", "-checkpoint", dir)
		j.Await("epoch 2/")
		if err := j.Processes[2].Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		for rank, r := range j.Wait() {
			code := command.Interrupted
			if rank == 2 { // which the signal has reached
				code = 143
			}
			switch {
			case s == syscall.SIGTERM && (r.Code != code || (r.Stderr != "") != (rank == 0)):
				t.Errorf("%v: replica %d: %d, %q", s, rank, r.Code, r.Stderr)
			case s == syscall.SIGTERM && rank == 0 && !strings.HasPrefix(r.Stderr, "rts: interrupted after "):
				t.Errorf("%v: replica %d: %d, %q", s, rank, r.Code, r.Stderr)
			case s == syscall.SIGKILL && rank != 2 && r.Code != command.Failed:
				t.Errorf("%v: replica %d: %d, %q", s, rank, r.Code, r.Stderr)
			}
		}
		again := jobtest.Countdown(t.Context(), 1)
		got := runWith(again, "-epochs", "1000000", "-checkpoint", dir, "-resume", "-verify")
		if got.code != command.Interrupted || !strings.Contains(got.stdout, "\nresumed from ") {
			t.Errorf("%v: %+v", s, got)
		}
	}
}

func signalled(s os.Signal) func(*os.Process, io.Closer) error {
	return func(p *os.Process, _ io.Closer) error { return p.Signal(s) }
}

// TestPicturePipe does not wait for someone who reads.
func TestPicturePipe(t *testing.T) {
	path := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(path, 0o666); err != nil {
		t.Skip("no named pipes: ", err)
	}
	wantMistake(t, runWith(t.Context(), "-svg", path), "-svg "+path+": it is not a regular file")
}
