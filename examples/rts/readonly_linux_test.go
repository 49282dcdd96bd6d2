package main

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestReadOnly finds before training that nothing can be saved, also where there is something to resume.
func TestReadOnly(t *testing.T) {
	dir := t.TempDir() + "/c"
	output(t, "-checkpoint", dir, "-epochs", "1")
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755); err != nil { // it is root's only
		t.Fatal(err)
	}
	for _, flag := range []string{"-verify", "-resume"} {
		got := asNobody(t, "-checkpoint", dir, flag)
		wantMistake(t, got, "checkpoint: open "+dir+": ")
		if !strings.Contains(got.stderr, "permission denied") {
			t.Errorf("standard error %q", got.stderr)
		}
	}
}

// asNobody is runWith as another user, if root runs the test: opening files, which is all the difference.
func asNobody(t *testing.T, args ...string) result {
	if os.Geteuid() != 0 {
		return runWith(t.Context(), args...)
	}
	done := make(chan result)
	go func() {
		runtime.LockOSThread() // for good, so that the thread ends with the goroutine
		if err := syscall.Setfsuid(65534); err != nil {
			t.Error(err)
		}
		done <- runWith(t.Context(), args...)
	}()
	return <-done
}
