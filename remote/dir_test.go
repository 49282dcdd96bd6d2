package remote

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"gogcl.dev/tensor"
)

// fileOf is the only file of a Dir.
func fileOf(t *testing.T, s Storage) string {
	t.Helper()
	var dir Dir
	switch s := s.(type) {
	case Dir:
		dir = s
	case plainDir:
		dir = s.Dir
	}
	return filepath.Join(string(dir), "w.2.remote")
}

// abandon gives up a file as the kernel does when a process is killed.
func abandon(t *testing.T, e Entries) {
	t.Helper()
	k := e.(*guarded).keeper.(*file)
	if err := errors.Join(k.medium.close(), k.f.Close()); err != nil {
		t.Fatal(err)
	}
}

// flip changes a byte of a file.
func flip(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		t.Fatal(err)
	}
	b[0] ^= 0x10
	if _, err := f.WriteAt(b[:], off); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestReopen opens what was closed, grown and closed again, with either platform.
func TestReopen(t *testing.T) {
	dir := Dir(t.TempDir())
	both := []Storage{dir, plainDir{dir}}
	a, b, zero := value(1, 20), value(2, 20), make([]byte, 20)
	e := open(t, both[0], spec(3, 5))
	store(t, e, 2, a)
	closeIt(t, e)
	for i := range 4 {
		e := open(t, both[i%2], spec(3, 5))
		holds(t, e, zero, zero, a)
		wantLost(t, e)
		closeIt(t, e)
	}
	e = open(t, both[1], spec(3, 5))
	if err := e.Grow(5); err != nil {
		t.Fatal(err)
	}
	store(t, e, 4, b)
	closeIt(t, e)
	for i := range 2 {
		e := open(t, both[i], spec(5, 5))
		holds(t, e, zero, zero, a, zero, b)
		closeIt(t, e)
	}
}

// TestOpenErrors opens files with which something is wrong, and sees that they are left as they are.
func TestOpenErrors(t *testing.T) {
	page := func(f []byte, n int) []byte { return f[n*pageBytes : (n+1)*pageBytes] }
	both := func(f []byte, change func(page []byte)) []byte {
		for n := range 2 {
			change(page(f, n))
			seal(page(f, n))
		}
		return f
	}
	put := func(at int, v uint64) func(f []byte) []byte {
		return func(f []byte) []byte {
			return both(f, func(p []byte) { binary.LittleEndian.PutUint64(p[at:], v) })
		}
	}
	same := func(f []byte) []byte { return f }
	largeShape := "its header is damaged: tensor: shape (1099511627783, 1099511627776) has more than"
	if math.MaxInt == math.MaxInt32 {
		largeShape = "its header is damaged: dimension 0 of the shape is 1099511627783"
	}
	tests := []struct {
		name   string
		change func(file []byte) []byte
		spec   func(*Spec)
		want   string
	}{
		{"foreign", func([]byte) []byte { return []byte("my thesis") }, nil, "it is not a file of remote entries"},
		{"foreign, long", func([]byte) []byte { return bytes.Repeat([]byte("my thesis"), 10000) }, nil, "it is not a file of remote entries"},
		{"zeros", func(f []byte) []byte { clear(f); return f }, nil, "it is not a file of remote entries"},
		{"truncated magic", func(f []byte) []byte { return f[:5] }, nil, "it is not a file of remote entries"},
		{"truncated header", func(f []byte) []byte { return f[:100] }, nil, "it is truncated: 100 bytes, a header has 4096"},
		{"truncated second header", func(f []byte) []byte { return f[:pageBytes] }, nil, "it is truncated: 4096 bytes, its header speaks of 3 entries"},
		{"truncated in the last entry", func(f []byte) []byte { return f[:len(f)-1] }, nil,
			"it is truncated: 12383 bytes, its header speaks of 3 entries of 28 bytes, which take 12384"},
		{"old version", func(f []byte) []byte { return both(f, func(p []byte) { p[8] = 1 }) }, nil,
			"its format has version 1, this program reads version 3: save a checkpoint"},
		{"version", func(f []byte) []byte { return both(f, func(p []byte) { p[8]++ }) }, nil,
			"its format has version 4, this program reads version 3"},
		{"cut to nothing", func([]byte) []byte { return nil }, nil,
			"it is empty: what was stored in it is lost, if anything was; to begin anew, remove the buffer's files " +
				"of all replicas"},
		{"byte order", func(f []byte) []byte {
			return both(f, func(p []byte) { p[12], p[13], p[14], p[15] = p[15], p[14], p[13], p[12] })
		}, nil, "its bytes are in the order of another machine"},
		{"both headers damaged", func(f []byte) []byte {
			page(f, 0)[30] ^= 1
			page(f, 1)[pageBytes-1] ^= 1
			return f
		}, nil,
			"its header is damaged: checksum "},
		{"lying entries", put(24, 1<<30), func(s *Spec) { s.Entries = 1 << 30 }, "it is truncated: 12384 bytes, its header speaks of 1073741824 entries"},
		{"more entries than a file has", put(24, 1<<62), nil, "header"},
		{"more entries than numbers", put(24, 1<<63), nil, "too many for this machine"},
		{"lying bytes", put(40, 1<<20), nil, "its header is damaged: entries of 1048576 bytes, but float32 of shape (7,) takes 28"},
		{"lying replica", put(48, 1<<63), nil, "too many for this machine"},
		{"lying shard", put(56, 1<<63), nil, "too many for this machine"},
		{"a shard of nothing", put(56, 1), nil, "its header is damaged: shard 1, and no shape of a whole"},
		{"lying whole", func(f []byte) []byte {
			return both(f, func(p []byte) { p[64], p[94], p[95] = 1, 0xff, 0xff })
		}, nil,
			"its header is damaged: names and shapes are longer than it is"},
		{"lying names", func(f []byte) []byte { return both(f, func(p []byte) { p[72], p[73] = 0xff, 0xff }) }, nil,
			"its header is damaged: names and shapes are longer than it is"},
		{"lying rank", func(f []byte) []byte { return both(f, func(p []byte) { p[84], p[85] = 0xff, 0xff }) }, nil,
			"its header is damaged: names and shapes are longer than it is"},
		{"lying shape", func(f []byte) []byte { return both(f, func(p []byte) { p[93] = 0xff }) }, nil,
			"its header is damaged: dimension 0 of the shape is "},
		{"large shape", func(f []byte) []byte { return both(f, func(p []byte) { p[84], p[91], p[99] = 2, 1, 1 }) }, nil, largeShape},
		{"no such dtype", func(f []byte) []byte { return both(f, func(p []byte) { p[74] = 'g' }) }, nil,
			`its header is damaged: tensor: unknown dtype "gloat32"`},
		{"dtype", same, func(s *Spec) { s.DType = tensor.I32 },
			"it holds entries 3, dtype float32, shape (7,); wanted: entries 3, dtype int32, shape (7,)"},
		{"shape", same, func(s *Spec) { s.Shape = tensor.Shape{7, 1} },
			"it holds entries 3, dtype float32, shape (7,); wanted: entries 3, dtype float32, shape (7, 1)"},
		{"fewer entries wanted", same, func(s *Spec) { s.Entries = 2 }, "it holds entries 3, dtype float32, shape (7,); wanted: entries 2"},
		{"shards", same, func(s *Spec) { s.Whole = tensor.Shape{14} },
			"its entries are whole tensors; wanted: shard 0 of tensors of shape (14,)"},
		{"another buffer", func(f []byte) []byte { return both(f, func(p []byte) { p[83] = 'W' }) }, nil, `it holds buffer "W" of replica 2`},
		{"another replica", put(48, 5), nil, `it holds buffer "w" of replica 5`},
	}
	eachDir(t, func(t *testing.T, s Storage) {
		path := fileOf(t, s)
		e := open(t, s, spec(3, 7))
		for i := range 3 {
			store(t, e, i, value(uint64(i), 28))
		}
		closeIt(t, e)
		good := read(t, path)
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				bad := tt.change(bytes.Clone(good))
				if err := os.WriteFile(path, bad, 0o666); err != nil {
					t.Fatal(err)
				}
				sp := spec(3, 7)
				if tt.spec != nil {
					tt.spec(&sp)
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				e, err := s.Open(sp)
				runtime.ReadMemStats(&after)
				if err == nil {
					closeIt(t, e)
				}
				wantError(t, err, `remote: open buffer "w" of replica 2: file `+path+": ", tt.want)
				if got := after.TotalAlloc - before.TotalAlloc; got > 1<<16 {
					t.Errorf("%d bytes were allocated", got)
				}
				if !bytes.Equal(read(t, path), bad) {
					t.Error("the file has changed")
				}
			})
		}
		// And the file itself was all right.
		if err := os.WriteFile(path, good, 0o666); err != nil {
			t.Fatal(err)
		}
		e = open(t, s, spec(3, 7))
		holds(t, e, value(0, 28), value(1, 28), value(2, 28))
		closeIt(t, e)
	})
}

// TestNoFile is of paths that cannot be files of entries.
func TestNoFile(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		path := fileOf(t, s)
		if err := os.Mkdir(path, 0o777); err != nil {
			t.Fatal(err)
		}
		_, err := s.Open(spec(1, 2))
		wantError(t, err, path)
	})
	missing := Dir(filepath.Join(t.TempDir(), "missing"))
	_, err := missing.Open(spec(1, 2))
	wantError(t, err, "file "+fileOf(t, missing)+": there is no directory "+string(missing)+", want an existing one")
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v, want fs.ErrNotExist", err)
	}
	var named *fs.PathError
	if _, err := plain.create(fileOf(t, missing), nil); !errors.As(err, &named) || named.Path != fileOf(t, missing) {
		t.Errorf("error %v, want one that names %s", err, fileOf(t, missing))
	}
	long := spec(1, 2)
	long.Shape = make(tensor.Shape, 510)
	_, err = Dir(t.TempDir()).Open(long)
	wantError(t, err, "the buffer's name of 1 bytes and shapes of 510 dimensions take")
}

func TestOpenTwice(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		e := open(t, s, spec(1, 2))
		_, err := s.Open(spec(1, 2))
		wantError(t, err, `remote: open buffer "w" of replica 2: file `+fileOf(t, s)+": it is open already, here or "+
			"in another process")
		closeIt(t, e)
		closeIt(t, open(t, s, spec(1, 2)))
	})
}

// TestDamage changes bytes of entries, as a failing disk or a loss of power does: of a closed file, whose entries are
// looked at when they are loaded, and of one that was not closed, whose entries are looked at when it is opened.
func TestDamage(t *testing.T) {
	const size = 4 * (chunkBytes/2 + 1) // bytes in three chunks, 4 bytes to the next entry
	row, first := rowAt(size, 1), entryAt(size, 1)
	places := map[string]int64{
		"state": row + 4, "sum": row, "first byte": first, "second chunk": first + chunkBytes,
		"last byte": first + size - 1,
	}
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		places["state"], places["sum"] = row+3, row+7
	}
	eachDir(t, func(t *testing.T, s Storage) {
		for name, at := range places {
			for _, closed := range []bool{true, false} {
				os.Remove(fileOf(t, s))
				e := open(t, s, spec(4, size/4))
				a, b := value(1, size), value(2, size)
				for i := range 3 {
					store(t, e, i, a)
				}
				if closed {
					closeIt(t, e)
				} else {
					abandon(t, e)
				}
				flip(t, fileOf(t, s), at)
				e = open(t, s, spec(4, size/4))
				if closed && name != "state" {
					wantLost(t, e)
				} else {
					wantLost(t, e, 1)
				}
				err := e.Load(1, make([]byte, size))
				wantError(t, err, `remote: load entry 1 of buffer "w" of replica 2: file `+fileOf(t, s)+": ",
					ErrLost.Error())
				if !errors.Is(err, ErrLost) {
					t.Errorf("%s: error %v, want ErrLost", name, err)
				}
				wantLost(t, e, 1)
				closeIt(t, e)

				// It stays lost, though the file was closed, until it is stored.
				e = open(t, s, spec(4, size/4))
				wantLost(t, e, 1)
				store(t, e, 1, b)
				wantLost(t, e)
				closeIt(t, e)
				e = open(t, s, spec(4, size/4))
				wantLost(t, e)
				holds(t, e, a, b, a, make([]byte, size))
				closeIt(t, e)
			}
		}
	})
}

// TestDamagedHeader destroys one of the two headers.
func TestDamagedHeader(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		for n := range int64(4) {
			os.Remove(fileOf(t, s))
			e := open(t, s, spec(2, 2))
			if n >= 2 {
				// One more header, so that the one that says the file was closed comes to be in the other page.
				abandon(t, e)
				e = open(t, s, spec(2, 2))
			}
			if err := e.Grow(3); err != nil {
				t.Fatal(err)
			}
			a := value(1, 8)
			for i := range 3 {
				store(t, e, i, a)
			}
			closeIt(t, e)
			flip(t, fileOf(t, s), n%2*pageBytes+40)
			flip(t, fileOf(t, s), entryAt(8, 0)) // entry 0: nobody can say that the file was closed
			e = open(t, s, spec(3, 2))
			wantLost(t, e, 0)
			store(t, e, 0, a)
			closeIt(t, e)
			e = open(t, s, spec(3, 2))
			wantLost(t, e)
			holds(t, e, a, a, a)
			closeIt(t, e)
		}
	})
}

// TestDamagedHeaderNotClosed destroys one of the two headers of a file that was made or grown by a process that was
// killed later. The other must not take the entries for fewer.
func TestDamagedHeaderNotClosed(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		for _, grow := range []bool{false, true} {
			for n := range int64(2) {
				os.Remove(fileOf(t, s))
				e := open(t, s, spec(2, 2))
				a, entries := value(1, 8), 2
				if grow {
					entries = 3
					if err := e.Grow(entries); err != nil {
						t.Fatal(err)
					}
				}
				store(t, e, entries-1, a)
				abandon(t, e)
				flip(t, fileOf(t, s), n*pageBytes+40)
				e = open(t, s, spec(entries, 2))
				wantLost(t, e)
				got := make([]byte, 8)
				if err := e.Load(entries-1, got); err != nil || !bytes.Equal(got, a) {
					t.Errorf("grow %v, header %d damaged: entry %d is %v, error %v, want %v",
						grow, n, entries-1, got, err, a)
				}
				closeIt(t, e)
			}
		}
	})
}

// TestFullInjected has the reserving of room fail halfway.
func TestFullInjected(t *testing.T) {
	for name, p := range map[string]platform{"native": native, "plain": plain} {
		t.Run("storage="+name, func(t *testing.T) {
			full := p
			full.reserve = func(f *os.File, from, to int64) error {
				if err := p.reserve(f, from, (from+to)/2); err != nil {
					return err
				}
				return syscall.ENOSPC
			}
			dir := Dir(t.TempDir())
			_, err := dir.open(spec(3, 1000), full)
			wantError(t, err, fileOf(t, dir), syscall.ENOSPC.Error())

			e, err := dir.open(spec(3, 1000), p) // there is room again
			if err != nil {
				t.Fatal(err)
			}
			a, zero := value(1, 4000), make([]byte, 4000)
			store(t, e, 2, a)
			size := len(read(t, fileOf(t, dir)))
			e.(*guarded).keeper.(*file).platform = full
			wantError(t, e.Grow(9), fileOf(t, dir), "grow", syscall.ENOSPC.Error())
			if got := len(read(t, fileOf(t, dir))); got != size {
				t.Errorf("the file has %d bytes, had %d", got, size)
			}
			wantError(t, e.Load(3, zero), "there are 3")
			holds(t, e, zero, zero, a)
			e.(*guarded).keeper.(*file).platform = p
			if err := e.Grow(9); err != nil {
				t.Error(err)
			}
			holds(t, e, zero, zero, a, zero, zero, zero, zero, zero, zero)
			closeIt(t, e)
		})
	}
}
