package checkpoint

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gogcl.dev/tensor"
)

// TestFullDisk saves on a small file system of its own, which only root can make: what was saved stays, and what was
// not leaves nothing behind.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=512k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	of := func(n, shards int) *model { return newModel(t, spec{"w", tensor.F32, tensor.Shape{n}, shards}) }
	saveIt(t, dir, of(50<<10, 3).fill(1), nil) // 200 KiB
	saveIt(t, dir, of(50<<10, 3).fill(2), nil) // and again, as long as the first is there
	before := names(t, dir)
	for _, n := range []int{75 << 10, 90 << 10, 1 << 20} {
		err := Save(context.Background(), dir, of(n, 4).fill(3).tensors, nil)
		wantError(t, err, "checkpoint: save to "+dir, filepath.Join(dir, ".saving-00000003"), "no space left on device")
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v, want ENOSPC", err)
		}
		if after := names(t, dir); !slices.Equal(after, before) {
			t.Errorf("%q, want %q", after, before)
		}
	}
	m := of(50<<10, 2)
	loadIt(t, dir, m)
	m.wantEqual(t, of(50<<10, 2).fill(2))
	saveIt(t, dir, of(10<<10, 3), nil)
}

// TestNoPermission saves and loads as another user, which root can be for one thread.
func TestNoPermission(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2).fill(1), nil)
	index := filepath.Join(dir, "checkpoint-00000001", indexName)
	as := func(f func() error) error { return f() }
	if os.Geteuid() == 0 {
		// What t.TempDir has made is two directories, the outer one root's only.
		if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
			t.Fatal(err)
		}
		// The thread is locked for good, so that it ends with the goroutine.
		as = func(f func() error) error {
			done := make(chan error)
			go func() {
				runtime.LockOSThread()
				err := unix.Setfsuid(65534)
				if err == nil {
					err = f()
				}
				done <- err
			}()
			return <-done
		}
	}
	refused := func(err error, want string) {
		t.Helper()
		if wantError(t, err, want+": permission denied"); !errors.Is(err, fs.ErrPermission) {
			t.Errorf("error %v, want fs.ErrPermission", err)
		}
	}
	save := func() error { return Save(context.Background(), dir, small(t, 2).tensors, nil) }
	chmod := func(path string, mode fs.FileMode) {
		t.Helper()
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	before := names(t, dir)
	chmod(filepath.Join(dir, lockName), 0o666)
	chmod(dir, 0o555)
	refused(as(save), filepath.Join(dir, ".saving-00000002"))
	refused(as(func() error { _, err := Open(dir); return err }), filepath.Join(dir, ".saving-00000002"))
	refused(as(func() error {
		return Save(context.Background(), filepath.Join(dir, "new"), nil, nil)
	}), filepath.Join(dir, "new"))
	if err := os.Remove(filepath.Join(dir, lockName)); err == nil {
		refused(as(save), filepath.Join(dir, lockName))
	}
	if after := names(t, dir); !slices.Equal(after, before) {
		t.Errorf("%q, want %q", after, before)
	}
	m := small(t, 2)
	if err := as(func() error { _, err := Load(context.Background(), dir, m.tensors); return err }); err != nil {
		t.Errorf("a directory that cannot be written to is not loaded: %v", err)
	}
	m.wantEqual(t, small(t, 2).fill(1))

	// The new checkpoint can be made, but the files of the old one not be removed.
	chmod(dir, 0o777)
	chmod(filepath.Join(dir, "checkpoint-00000001"), 0o555)
	err := as(save)
	wantError(t, err, "the checkpoint is saved, but an older one could not be removed: ")
	loadIt(t, dir, m)
	m.wantEqual(t, small(t, 2))
	wantError(t, as(save), "a directory left over from a crash: ", "permission denied")
	all, err := filepath.Glob(filepath.Join(dir, "*[0-9]"))
	if err != nil {
		t.Fatal(err)
	}
	hidden, err := filepath.Glob(filepath.Join(dir, ".removing-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(all, hidden...) {
		chmod(path, 0o777)
	}

	saveIt(t, dir, small(t, 2), nil)
	index = strings.Replace(index, "00000001", "00000003", 1)
	chmod(index, 0o000)
	load := func() error { _, err := Load(context.Background(), dir, small(t, 2).tensors); return err }
	refused(as(load), index)
	chmod(index, 0o666)
	chmod(filepath.Join(filepath.Dir(index), "shard-00001-of-00002.safetensors"), 0o000)
	refused(as(load), filepath.Join(filepath.Dir(index), "shard-00001-of-00002.safetensors"))
	chmod(dir, 0o000)
	refused(as(load), dir)
	chmod(dir, 0o777)
}

// TestNoRegularFile opens pipes, whose other ends nobody opens.
func TestNoRegularFile(t *testing.T) {
	dir := t.TempDir()
	saveIt(t, dir, small(t, 2), nil)
	for _, name := range []string{"shard-00001-of-00002.safetensors", indexName} {
		path := filepath.Join(dir, "checkpoint-00000001", name)
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mkfifo(path, 0o666); err != nil {
			t.Skip("the file system has no pipes: ", err)
		}
		_, err := Load(context.Background(), dir, small(t, 2).tensors)
		wantError(t, err, path+": it is not a regular file")
	}
	saveIt(t, dir, small(t, 2), nil)
	if got := names(t, dir); !slices.Contains(got, "checkpoint-00000001/"+indexName) {
		t.Error("a pipe was removed")
	}
}
