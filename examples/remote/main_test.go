package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// Example is all that the program prints.
func Example() {
	fmt.Println("exit code", run(context.Background(), nil, os.Stdout, os.Stderr))
	// Output:
	// a remote variable, after 0 earlier runs
	//   before the run               int32()[1]       expected int32()[1]: ok
	//   loaded, and 2 added in place int32()[3]       expected int32()[3]: ok
	//   stored                       int32()[3]       expected int32()[3]: ok
	//
	// two entries of a buffer
	//   entry 0 before the run       int32()[0]       expected int32()[0]: ok
	//   entry 0, loaded back         int32()[1]       expected int32()[1]: ok
	//   entry 1 before the run       int32()[0]       expected int32()[0]: ok
	//   entry 1, loaded back         int32()[2]       expected int32()[2]: ok
	//
	// 7 results, all as they must be
	// exit code 0
}

// TestFilesOutliveTheProgram runs the program three times on the files of one directory: each run goes on from what the
// one before has stored.
func TestFilesOutliveTheProgram(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		var out, errs strings.Builder
		if code := run(t.Context(), []string{"-storage", "file", "-dir", dir}, &out, &errs); code != command.OK {
			t.Fatalf("run %d: exit code %d\n%s%s", n, code, out.String(), errs.String())
		}
		for _, want := range []string{
			fmt.Sprintf("after %d earlier runs\n", n),
			fmt.Sprintf("before the run               int32()[%d]       expected int32()[%d]: ok\n", 1+2*n, 1+2*n),
			fmt.Sprintf("stored                       int32()[%d]       expected int32()[%d]: ok\n", 3+2*n, 3+2*n),
			fmt.Sprintf("entry 1 before the run       int32()[%d]       expected int32()[%d]: ok\n",
				2*min(n, 1), 2*min(n, 1)),
		} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("run %d printed\n%s\nwant %q in it", n, out.String(), want)
			}
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 3 {
		t.Errorf("files %v, %v, want one for each buffer", files, err)
	}
}

// TestWrongResult: a buffer that holds something else than it must is seen. Here its file is put back to what it was a
// run before.
func TestWrongResult(t *testing.T) {
	dir := t.TempDir()
	args := []string{"-storage", "file", "-dir", dir}
	var out, errs strings.Builder
	again := func() int { out.Reset(); errs.Reset(); return run(t.Context(), args, &out, &errs) }
	if code := again(); code != command.OK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	file := filepath.Join(dir, "x.0.remote")
	old, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if code := again(); code != command.OK {
		t.Fatalf("exit code %d: %s", code, errs.String())
	}
	if err := os.WriteFile(file, old, 0o644); err != nil {
		t.Fatal(err)
	}
	if code := again(); code != command.Failed ||
		errs.String() != "remote: 3 of 7 results are not what they must be\n" ||
		strings.Count(out.String(), ": WRONG\n") != 3 {
		t.Errorf("exit code %d\n%s%s", code, out.String(), errs.String())
	}
	if err := os.WriteFile(file, []byte("something else"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code := again(); code != command.Failed || !strings.Contains(errs.String(), file) {
		t.Errorf("a foreign file: exit code %d: %s", code, errs.String())
	}
}

func TestArguments(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ args, want string }{
		{"-storage disk", "-storage disk, want memory or file"},
		{"-storage", "flag needs an argument: -storage"},
		{"-storage file", "-storage file needs -dir, an existing directory"},
		{"-storage file -dir " + dir + "/none", "-dir " + dir + "/none is not an existing directory"},
		{"-storage file -dir " + file, "-dir " + file + " is not an existing directory"},
		{"-dir " + dir, "-dir " + dir + " is for -storage file"},
		{"-entries 3", "flag provided but not defined: -entries"},
		{"now", `unexpected argument "now"`},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(c.args), &out, &errs); code != command.Usage ||
			errs.String() != "remote: "+c.want+" (-h lists the flags)\n" || out.Len() > 0 {
			t.Errorf("%s: exit code %d, printed %q, %q", c.args, code, out.String(), errs.String())
		}
	}
}

func TestHelp(t *testing.T) {
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"-h"}, &out, &errs); code != command.OK || errs.Len() > 0 ||
		!strings.Contains(out.String(), "-storage") {
		t.Errorf("exit code %d, printed %q, %q", code, out.String(), errs.String())
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs strings.Builder
	if code := run(ctx, nil, &out, &errs); code != command.Interrupted ||
		errs.String() != "remote: interrupted\n" {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
