package segment

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestOpen: a segment that another process maps is the same memory. It has no name, and cannot be made shorter.
func TestOpen(t *testing.T) {
	s, err := Make(3, small)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	p, err := Open(s.FD(), 3, small)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	out, in := ringOf(t, s, p, 1)
	if n, err := out.Send([]byte("head"), []byte("body"), []byte("tail"), func() {}); n != 12 || err != nil {
		t.Fatal(n, err)
	}
	if b, err := in.Peek(12); string(b) != "headbodytail" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
	out.End()
	s.Free(out, true)
	if b, err := in.Peek(1); len(b) != 12 || b[0] != 0 || err != nil {
		t.Errorf("memory that was given back holds %q, %v", b, err)
	}
	for _, bytes := range []int64{0, small.Bytes - pageBytes, small.Bytes + pageBytes} {
		if unix.Ftruncate(s.FD(), bytes) == nil {
			t.Errorf("its length can be changed to %d", bytes)
		}
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", s.FD()))
	if err != nil || !strings.HasSuffix(name, "(deleted)") {
		t.Errorf("it is called %s, %v", name, err)
	}
}

// TestOpenRefuses: a descriptor that is no segment of the rank is an error that says why.
func TestOpenRefuses(t *testing.T) {
	file := func(t *testing.T, seals int, bytes int64, fill func([]byte)) int {
		fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, headerUsed)
		fill(b)
		if _, err := unix.Pwrite(fd, b, 0); err != nil {
			t.Fatal(err)
		}
		if err := unix.Ftruncate(fd, bytes); err != nil {
			t.Fatal(err)
		}
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
			t.Fatal(err)
		}
		return fd
	}
	good := func(b []byte) { putHeader(b, 3, small) }
	for _, test := range []struct {
		name string
		make func(t *testing.T) int
		want string // "" for one that is taken
	}{
		{"good", func(t *testing.T) int { return file(t, seals, small.Bytes, good) }, ""},
		{"an ordinary file", func(t *testing.T) int {
			fd, err := unix.Open(filepath.Join(t.TempDir(), "f"), unix.O_CREAT|unix.O_RDWR|unix.O_CLOEXEC, 0o600)
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}, "seal"},
		{"an eventfd", func(t *testing.T) int {
			fd, err := MakeBell()
			if err != nil {
				t.Fatal(err)
			}
			return fd
		}, "no memory that can be sealed"},
		{"without seals", func(t *testing.T) int { return file(t, 0, small.Bytes, good) }, "seals 0x0, want 0x7"},
		{"may shrink", func(t *testing.T) int { return file(t, seals&^unix.F_SEAL_SHRINK, small.Bytes, good) },
			"seals 0x5, want 0x7"},
		{"too short", func(t *testing.T) int { return file(t, seals, small.Bytes-pageBytes, good) },
			"has 4190208 bytes, want 4194304"},
		{"empty", func(t *testing.T) int { return file(t, seals, 0, good) }, "has 0 bytes"},
		{"zeros", func(t *testing.T) int { return file(t, seals, small.Bytes, func([]byte) {}) }, "has magic number 0"},
		{"another rank", func(t *testing.T) int {
			return file(t, seals, small.Bytes, func(b []byte) { putHeader(b, 4, small) })
		}, "has rank 4, want 3"},
		{"huge pages", func(t *testing.T) int {
			fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|unix.MFD_HUGETLB)
			if err != nil {
				t.Skip(err)
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
				t.Fatal(err)
			}
			return fd
		}, "want memory of ordinary pages"},
		{"read only", func(t *testing.T) int {
			return file(t, seals|unix.F_SEAL_WRITE, small.Bytes, good)
		}, "mmap"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fd := test.make(t)
			defer unix.Close(fd)
			p, err := Open(fd, 3, small)
			if err == nil {
				p.Close()
			}
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
	if _, err := Make(0, Form{}); err == nil {
		t.Error("Make without a Form: no error")
	}
	if _, err := Open(0, 0, Form{}); err == nil {
		t.Error("Open without a Form: no error")
	}
}

// TestStrict: memory is asked for before it is touched where the system is in mode 2, and nowhere else.
func TestStrict(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mode")
	if strict(file) {
		t.Error("a system that says nothing is strict")
	}
	for mode, want := range map[string]bool{"0\n": false, "1\n": false, "2\n": true, "22\n": false} {
		if err := os.WriteFile(file, []byte(mode), 0o600); err != nil {
			t.Fatal(err)
		}
		if strict(file) != want {
			t.Errorf("mode %q: strict %t", mode, !want)
		}
	}
	s, err := Make(0, small)
	if err != nil {
		t.Fatal(err)
	}
	if (s.hold != nil) != strict(overcommitFile) {
		t.Error("memory is not asked for as the system wants it")
	}
	s.Close()
	if s, err = makeSegment(0, small, true); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	held := func() int64 {
		var stat unix.Stat_t
		if err := unix.Fstat(s.FD(), &stat); err != nil {
			t.Fatal(err)
		}
		return stat.Blocks * 512
	}
	before := held()
	if want := int64(directoryAt + directoryBytes); before < want {
		t.Errorf("%d bytes are held for header and directory, want %d", before, want)
	}
	if _, err := s.Seat(1, 2, 1<<20); err != nil || held() < before+1<<20 {
		t.Errorf("%d bytes are held with a block of 1 MiB, before %d, %v", held(), before, err)
	}
}

// TestBell: a bell is an eventfd that does not block; what is none is refused.
func TestBell(t *testing.T) {
	bell, err := MakeBell()
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(bell)
	if err := CheckBell(bell); err != nil {
		t.Error(err)
	}
	for range 1000 {
		RingBell(bell)
	}
	var count [8]byte
	if n, err := unix.Read(bell, count[:]); n != 8 || err != nil || binary.NativeEndian.Uint64(count[:]) != 1000 {
		t.Errorf("after rings: %d, %v, %v", n, err, count)
	}
	blocking, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(blocking)
	null, err := unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(null)
	for fd, want := range map[int]string{
		blocking: "blocks", null: `"/dev/null", want one of "anon_inode:[eventfd]"`, -1: "want one",
	} {
		if err := CheckBell(fd); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// limited calls f while a limit of this process is as given.
func limited(t *testing.T, resource int, limit uint64, f func()) {
	t.Helper()
	var was unix.Rlimit
	if err := unix.Getrlimit(resource, &was); err != nil {
		t.Fatal(err)
	}
	if limit > was.Max {
		t.Skipf("the limit is %d", was.Max)
	}
	if err := unix.Setrlimit(resource, &unix.Rlimit{Cur: limit, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := unix.Setrlimit(resource, &was); err != nil {
			t.Error(err)
		}
	}()
	var is unix.Rlimit
	if err := unix.Getrlimit(resource, &is); err != nil || is.Cur != limit { // qemu does not set some
		t.Skipf("the limit is %d, although it was set to %d: %v", is.Cur, limit, err)
	}
	f()
}

// TestLimits: a segment that is longer than files may be is an error, not the signal that ends a process, and so are
// more addresses than the process may have.
func TestLimits(t *testing.T) {
	var err error
	limited(t, unix.RLIMIT_FSIZE, uint64(small.Bytes)-1, func() { _, err = Make(0, small) })
	if err == nil || !strings.Contains(err.Error(), "ulimit -f") {
		t.Errorf("%v, want an error with the limit of files", err)
	}
	const limit = 1 << 50 // more than there are, so that nothing else fails
	n := int(limit / small.Bytes)
	for more, want := range []bool{false, true} {
		limited(t, unix.RLIMIT_AS, limit, func() { err = CheckRoom(small, n+more) })
		if got := err != nil && strings.Contains(err.Error(), "ulimit -v"); got != want {
			t.Errorf("%d segments: %v", n+more, err)
		}
	}
}
