package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/internal/measure"
)

// asGcltune is set in the environment of a process that is gcltune. "die 1" ends the process of replica 1 at its second
// check.
const asGcltune = "GOGCL_GCLTUNE"

// TestMain is gcltune where it is started as that.
func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(asGcltune); ok {
		command.Main("gcltune", func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			p, calls := newProgram(args, stdout, stderr), 0
			p.tamper = func(replica int, _ []byte) {
				if calls++; calls == 2 && what == fmt.Sprint("die ", replica) {
					self, _ := os.FindProcess(os.Getpid())
					_ = self.Kill()
					time.Sleep(time.Hour) // until it comes; select {} could be a deadlock to the runtime
				}
			}
			return p.run(ctx)
		})
	}
	leaktest.Main(m)
}

// safeBuffer is a bytes.Buffer that several may write to.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// outcome is what a run of the program left behind.
type outcome struct {
	code           int
	stdout, stderr string
}

// perform runs the program.
func perform(t *testing.T, ctx context.Context, tamper func(int, []byte), args ...string) outcome {
	t.Helper()
	var stdout, stderr safeBuffer
	p := newProgram(args, &stdout, &stderr)
	p.tamper = tamper
	return outcome{p.run(ctx), stdout.String(), stderr.String()}
}

// settled are the settings of a command line.
func settled(t *testing.T, args ...string) *settings {
	t.Helper()
	p := newProgram(args, io.Discard, io.Discard)
	given, err := measure.Read(flags(&p.raw), args)
	if err != nil {
		t.Fatal(err)
	}
	s, err := p.raw.settings(given, 0)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// networks are those that there are here between processes.
func networks() []string {
	if runtime.GOOS == "linux" {
		return []string{"unix", "tcp", "shm"}
	}
	return []string{"tcp"}
}

// TestHelp: every flag is explained, in lines that fit.
func TestHelp(t *testing.T) {
	got := perform(t, t.Context(), nil, "-h")
	for word := range strings.FieldsSeq("-table -n -passes -limit -collective -transport GCL_OPTIONS docs/design/tuning.md") {
		if !strings.Contains(got.stdout, word) {
			t.Errorf("-h does not explain %s", word)
		}
	}
	for line := range strings.Lines(got.stdout) {
		wide := strings.ReplaceAll(strings.TrimSuffix(line, "\n"), "    \t", "        ") // as a terminal shows it
		if len(wide) > command.Columns {
			t.Errorf("%d columns: %s", len(wide), line)
		}
	}
	if got.code != command.OK || got.stderr != "" {
		t.Error(got)
	}
}
