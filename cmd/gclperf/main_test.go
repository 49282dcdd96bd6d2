package main

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"gogcl.dev/internal/leaktest"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) { leaktest.Main(m) }

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
