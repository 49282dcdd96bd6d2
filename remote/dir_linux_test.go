package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// TestFullDisk fills a small file system of its own, which only root can make.
func TestFullDisk(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		at := filepath.Dir(fileOf(t, s))
		if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=512k"); err != nil {
			t.Skipf("no small file system: mount: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(at, 0); err != nil {
				t.Error(err)
			}
		})
		const n = 16 << 10 // elements, 64 KiB
		_, err := s.Open(spec(100, n))
		wantError(t, err, fileOf(t, s), "no space left on device")
		if !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v, want ENOSPC", err)
		}
		if dir, is := s.(Dir); is {
			if wantError(t, err, "bytes more are needed, and its disk has"); dir.room([]Spec{spec(4, n)}) != nil {
				t.Error("there is no room for what there is room for")
			}
			other := spec(4, n)
			other.Buffer = "v"
			wantError(t, dir.room([]Spec{spec(4, n), other}), "remote: the 2 files of the program's buffers in "+
				"directory "+at, "bytes more are needed")
		}
		e := open(t, s, spec(3, n))
		var want [][]byte
		for i := range 3 {
			want = append(want, value(uint64(i), 4*n))
			store(t, e, i, want[i])
		}
		if err := e.Grow(100); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("error %v, want ENOSPC", err)
		}
		holds(t, e, want...)
		if err := e.Grow(5); err != nil {
			t.Fatal(err)
		}
		// With the disk full to the brim, all entries can be stored.
		if err := os.WriteFile(filepath.Join(at, "brim"), make([]byte, 1<<20), 0o666); !errors.Is(err, unix.ENOSPC) {
			t.Fatalf("error %v, want ENOSPC", err)
		}
		for i := range 5 {
			store(t, e, i, value(0, 4*n))
		}
		closeIt(t, e)
	})
}

// TestTruncatedMeanwhile takes away the pages under a mapping, which would end a process that does not expect it.
func TestTruncatedMeanwhile(t *testing.T) {
	const n = 64 << 10 // more than pages of any size
	dir := Dir(t.TempDir())
	e := open(t, dir, spec(4, n))
	a := value(1, 4*n)
	for i := range 4 {
		store(t, e, i, a)
	}
	if err := os.Truncate(fileOf(t, dir), entryAt(4*n, 1)+64<<10); err != nil {
		t.Fatal(err)
	}
	const want = ": its bytes cannot be reached in memory: has it been truncated, or does the disk fail?"
	for i := 1; i < 4; i++ {
		wantError(t, e.Load(i, make([]byte, 4*n)), "load entry", fileOf(t, dir)+want)
		wantError(t, e.Store(i, a), "store entry", fileOf(t, dir)+want)
	}
	holds(t, e, a)
	wantLost(t, e, 1, 2, 3)
	closeIt(t, e)
	_, err := dir.Open(spec(4, n))
	wantError(t, err, fileOf(t, dir), "it is truncated")
}

// TestNoPermission opens a file as another user, which root can be for one thread.
func TestNoPermission(t *testing.T) {
	dir := Dir(t.TempDir())
	closeIt(t, open(t, dir, spec(1, 2)))
	if err := os.Chmod(fileOf(t, dir), 0o000); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		// What t.TempDir has made is two directories, the outer one root's only.
		if err := os.Chmod(filepath.Dir(string(dir)), 0o755); err != nil {
			t.Fatal(err)
		}
		// The thread is locked for good, so that it ends with the goroutine.
		done := make(chan error)
		go func() {
			runtime.LockOSThread()
			if err := unix.Setfsuid(65534); err != nil {
				done <- err
				return
			}
			_, err := dir.Open(spec(1, 2))
			done <- err
		}()
		refused(t, dir, <-done)
		return
	}
	_, err := dir.Open(spec(1, 2))
	refused(t, dir, err)
}

func refused(t *testing.T, dir Dir, err error) {
	t.Helper()
	wantError(t, err, fileOf(t, dir), "permission denied")
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("error %v, want fs.ErrPermission", err)
	}
}

// TestNoRegularFile opens a pipe.
func TestNoRegularFile(t *testing.T) {
	dir := Dir(t.TempDir())
	if err := unix.Mkfifo(fileOf(t, dir), 0o666); err != nil {
		t.Skip("the file system has no pipes: ", err)
	}
	_, err := dir.Open(spec(1, 2))
	wantError(t, err, fileOf(t, dir), "it is not a regular file")
}

// TestMappingRefused asks for more addresses than there are.
func TestMappingRefused(t *testing.T) {
	dir := Dir(t.TempDir())
	e := open(t, dir, spec(1, 2))
	a := value(1, 8)
	store(t, e, 0, a)
	k := e.(*guarded).keeper.(*file)
	k.platform.room, k.platform.reserve = plain.room, func(*os.File, int64, int64) error { return nil }
	entries := math.MaxInt / 32
	if math.MaxInt == math.MaxInt32 {
		entries = math.MaxInt
	}
	wantError(t, e.Grow(entries), "remote: grow", "file "+fileOf(t, dir)+": ", "map")
	holds(t, e, a)
	wantError(t, e.Load(1, a), "there are 1")
	closeIt(t, e)
	e = open(t, dir, spec(1, 2))
	holds(t, e, a)
	closeIt(t, e)
}

// TestMadeWhole has the making of a file fail before there is anything in it: there is no file then, where the empty
// one of a process that was killed would be an error for good.
func TestMadeWhole(t *testing.T) {
	at := t.TempDir()
	if err := unix.Mount("tmpfs", at, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("no small file system: mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(at, 0); err != nil {
			t.Error(err)
		}
	})
	if err := os.WriteFile(filepath.Join(at, "brim"), make([]byte, 1<<20), 0o666); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("error %v, want ENOSPC", err)
	}
	for name, p := range map[string]platform{"native": native, "plain": plain} {
		p.room = plain.room
		if _, err := Dir(at).open(spec(1, 2), p); !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%s: error %v, want ENOSPC", name, err)
		}
		if files, err := os.ReadDir(at); err != nil || len(files) != 1 {
			t.Errorf("%s: files %v, error %v, want one", name, files, err)
		}
	}
}

// TestMadeByOne makes a file in many goroutines at once: one has it, the others are told so, and nobody finds it empty.
func TestMadeByOne(t *testing.T) {
	dir := Dir(t.TempDir())
	for i := range 40 {
		sp := spec(1, 2)
		sp.Buffer = fmt.Sprint(i)
		p := []platform{native, plain}[i%2]
		opened := make([]Entries, 8)
		errs := make([]error, len(opened))
		var wg sync.WaitGroup
		for k := range opened {
			wg.Go(func() { opened[k], errs[k] = dir.open(sp, p) })
		}
		wg.Wait()
		var have int
		for k, e := range opened {
			if errs[k] == nil {
				have++
				closeIt(t, e)
			} else {
				wantError(t, errs[k], "it is open already")
			}
		}
		if have > 1 || have == 0 && i%2 == 0 {
			t.Errorf("%d have the file, want 1", have)
		}
	}
}
