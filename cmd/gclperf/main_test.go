package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/leaktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// asGclperf is set in the environment of a process that is gclperf. Its value says what one replica does to the result
// of its second check: "wrong 1" changes a byte at replica 1, "die 1" ends the process of replica 1. "star" registers a
// method.
const asGclperf = "GOGCL_GCLPERF"

// TestMain is gclperf where it is started as that.
func TestMain(m *testing.M) {
	if what, ok := os.LookupEnv(asGclperf); ok {
		if what == "star" {
			registerStar()
			command.Main("gclperf", run)
		}
		command.Main("gclperf", func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
			return runTampered(ctx, args, stdout, stderr, tamperBy(what))
		})
	}
	leaktest.Main(m)
}

// tamperBy is what a value of asGclperf says.
func tamperBy(what string) func(int, []byte) {
	calls := 0
	return func(replica int, result []byte) {
		switch calls++; {
		case calls != 2:
		case what == fmt.Sprint("wrong ", replica):
			result[len(result)-1] ^= 1
		case what == fmt.Sprint("die ", replica):
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			time.Sleep(time.Hour) // until it comes; select {} could be a deadlock to the runtime
		}
	}
}

// golden compares with a file in testdata, or writes it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s differs; run with -update and look at it. Got:\n%s", path, got)
	}
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
	code := runTampered(ctx, args, &stdout, &stderr, tamper)
	return outcome{code, stdout.String(), stderr.String()}
}
