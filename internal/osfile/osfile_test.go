package osfile

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestLock locks a file of two openings, of which only one can have it at a time.
func TestLock(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	var files [2]*os.File
	for i := range files {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	want := func(f *os.File, want bool) {
		t.Helper()
		if taken, err := Lock(f); err != nil || taken != want {
			t.Errorf("taken %v, error %v, want %v", taken, err, want)
		}
	}
	want(files[0], false)
	want(files[1], runtime.GOOS != "js" && runtime.GOOS != "wasip1" && runtime.GOOS != "plan9" && runtime.GOOS != "aix")
	if err := files[0].Close(); err != nil {
		t.Fatal(err)
	}
	want(files[1], false)
	if taken, err := Lock(files[0]); taken || err == nil && runtime.GOOS == "linux" {
		t.Errorf("taken %v, error %v, want the error of a closed file", taken, err)
	}
}

// TestSyncDir syncs a directory, and one that is not there.
func TestSyncDir(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := SyncDir(dir); err != nil {
		t.Error(err)
	}
	if err := SyncDir(filepath.Join(dir, "none")); err == nil && runtime.GOOS == "linux" {
		t.Error("a directory that is not there was synced")
	}
	if runtime.GOOS == "linux" {
		if err := SyncDir("/proc"); err != nil {
			t.Errorf("a directory that cannot be synced: %v", err)
		}
	}
}
