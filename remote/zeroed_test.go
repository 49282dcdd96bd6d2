package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// zero clears bytes of a file.
func zero(t *testing.T, path string, from, to int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, to-from), from); err != nil {
		t.Fatal(err)
	}
}

// TestZeroed clears what is behind the header, all of it or some, in closed files and in ones that were not closed:
// entries that have been stored are lost, and so are those of which the file no longer says that they never were. An
// entry that never was stored stays one of zeros where its row is whole.
func TestZeroed(t *testing.T) {
	const size, entries = 400, groupEntries + 2 // two groups
	end, err := fileBytes(size, entries)
	if err != nil {
		t.Fatal(err)
	}
	const last = entries - 1
	all := make([]int, entries)
	for i := range all {
		all[i] = i
	}
	for _, tt := range []struct {
		name     string
		from, to int64
		lost     []int // of those stored, 0, 1 and last, and of those that never were
		atOpen   bool  // also of a closed file
	}{
		{"everything", headBytes, end, all, true},
		{"first table", headBytes, headBytes + tableBytes, all[:groupEntries], true},
		{"one row", rowAt(size, 1), rowAt(size, 2), []int{1}, true},
		{"one row of what was never stored", rowAt(size, 7), rowAt(size, 8), []int{7}, true},
		{"second group", rowAt(size, groupEntries), end, all[groupEntries:], true},
		{"all bytes of the first group", entryAt(size, 0), rowAt(size, groupEntries), []int{0, 1}, false},
		{"bytes of one", entryAt(size, 1), entryAt(size, 2), []int{1}, false},
		{"bytes of what was never stored", entryAt(size, 5), entryAt(size, 9), nil, false},
	} {
		for _, closed := range []bool{true, false} {
			eachDir(t, func(t *testing.T, s Storage) {
				e := open(t, s, spec(entries, size/4))
				values := map[int][]byte{0: value(1, size), 1: value(2, size), last: value(3, size)}
				for i, v := range values {
					store(t, e, i, v)
				}
				if closed {
					closeIt(t, e)
				} else {
					abandon(t, e)
				}
				zero(t, fileOf(t, s), tt.from, tt.to)
				e = open(t, s, spec(entries, size/4))
				if closed && !tt.atOpen {
					wantLost(t, e)
				} else {
					wantLost(t, e, tt.lost...)
				}
				buf := make([]byte, size)
				for i := range entries {
					switch err := e.Load(i, buf); {
					case slices.Contains(tt.lost, i):
						if !errors.Is(err, ErrLost) || !e.Stored(i) {
							t.Errorf("%s, closed %v: entry %d: error %v, stored %v, want ErrLost",
								tt.name, closed, i, err, e.Stored(i))
						}
					case err != nil:
						t.Errorf("%s, closed %v: %v", tt.name, closed, err)
					default:
						want := values[i]
						if want == nil {
							want = make([]byte, size)
						}
						if !slices.Equal(buf, want) || e.Stored(i) != (values[i] != nil) {
							t.Errorf("%s, closed %v: entry %d is not what it was", tt.name, closed, i)
						}
					}
				}
				// What is stored anew is there.
				store(t, e, 1, values[1])
				closeIt(t, e)
				e = open(t, s, spec(entries, size/4))
				if err := e.Load(1, buf); err != nil || !slices.Equal(buf, values[1]) {
					t.Errorf("%s, closed %v: entry 1: %v", tt.name, closed, err)
				}
				closeIt(t, e)
			})
		}
	}
}

// TestNoRoom has a disk with too little room for a file or for what it is to grow to: nothing is reserved, and what
// there was is there still.
func TestNoRoom(t *testing.T) {
	for name, p := range map[string]platform{"native": native, "plain": plain} {
		t.Run("storage="+name, func(t *testing.T) {
			dir := Dir(t.TempDir())
			full := p
			var asked int64
			full.room = func(at string, bytes int64) error {
				if at != string(dir) {
					t.Errorf("asked for room in %s, want %s", at, dir)
				}
				asked = bytes
				return syscall.ENOSPC
			}
			full.reserve = func(*os.File, int64, int64) error { t.Error("something is reserved"); return nil }
			_, err := dir.open(spec(3, 1000), full)
			if wantError(t, err, fileOf(t, dir), syscall.ENOSPC.Error()); asked != headBytes+tableBytes+3*4000 {
				t.Errorf("asked for %d bytes, want %d", asked, headBytes+tableBytes+3*4000)
			}
			if files, err := os.ReadDir(string(dir)); err != nil || len(files) != 0 {
				t.Errorf("files %v, error %v, want none", files, err)
			}
			e := openOn(t, dir, p, spec(3, 1000))
			a, zero := value(1, 4000), make([]byte, 4000)
			store(t, e, 2, a)
			k := e.(*guarded).keeper.(*file)
			k.platform = full
			if wantError(t, e.Grow(9), fileOf(t, dir), "grow", syscall.ENOSPC.Error()); asked != 6*4000 {
				t.Errorf("asked for %d bytes, want %d", asked, 6*4000)
			}
			holds(t, e, zero, zero, a)
			k.platform = p
			if err := e.Grow(9); err != nil {
				t.Error(err)
			}
			closeIt(t, e)

			// Of what there is nothing more is needed.
			asked = -1
			two := spec(1, 2)
			two.Buffer = "v"
			if wantError(t, dir.roomOn([]Spec{spec(9, 1000), two}, full), "the 2 files",
				string(dir)); asked != headBytes+tableBytes+8 {
				t.Errorf("asked for %d bytes, want %d", asked, headBytes+tableBytes+8)
			}
		})
	}
}

// TestDirWithoutName opens files of no directory.
func TestDirWithoutName(t *testing.T) {
	_, err := Dir("").Open(spec(1, 2))
	wantError(t, err, `remote: open buffer "w" of replica 2: the directory has no name`)
	if _, err := os.Stat("w.2.remote"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v: there is a file", err)
	}
}

// TestNamesOfEntries opens a file for variables that have other entries than they had.
func TestNamesOfEntries(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		of := func(entries int, names ...string) Spec {
			sp := spec(entries, 2)
			sp.Names = names
			return sp
		}
		a, b := value(1, 8), value(2, 8)
		e := open(t, s, of(4, "a", "", "c"))
		for i := range 3 {
			store(t, e, i, a)
		}
		closeIt(t, e)
		for _, names := range [][]string{{"c"}, {"a", "b", "a"}, {"A"}, {"", "", "b"}} {
			_, err := s.Open(of(4, names...))
			wantError(t, err, fileOf(t, s)+": entry ", " is of a variable with another name than ")
		}
		_, err := s.Open(of(1, "a", "b"))
		wantError(t, err, "names for 2 entries, there are 1")

		// Names that are new, of nobody, or of what was never stored are those of the file from then on.
		e = open(t, s, of(6, "", "b", "", "d", "", "f"))
		for i := 3; i < 6; i++ {
			store(t, e, i, b)
		}
		closeIt(t, e)
		for i := range 6 {
			names := make([]string, 6)
			names[i] = "x"
			if i != 4 {
				_, err := s.Open(of(6, names...))
				wantError(t, err, `another name than "x"`)
			}
		}
		closeIt(t, open(t, s, of(6, "", "", "", "", "x"))) // which was nobody's
		closeIt(t, open(t, s, of(6)))
		_, err = s.Open(of(6, "", "", "", "", "y"))
		wantError(t, err, `entry 4 is of a variable with another name than "y"`)
	})
}

// TestUnnamedBefore makes a file for a named buffer where there is one of its number.
func TestUnnamedBefore(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		before := spec(3, 2)
		before.Buffer, before.Number = "7", 7
		a := value(1, 8)
		e := open(t, s, before)
		store(t, e, 0, a)
		closeIt(t, e)
		dir := filepath.Dir(fileOf(t, s))
		path := filepath.Join(dir, "7.2.remote")

		named := spec(3, 2)
		named.Number = 7
		_, err := s.Open(named)
		wantError(t, err, path+`: it may be of this buffer, from when it had no name: give it the name "7" to go on`)
		if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
			t.Errorf("files %v, error %v, want one", files, err)
		}
		page := read(t, path)
		for n := range 2 {
			page[n*pageBytes+8] = 1
			seal(page[n*pageBytes : (n+1)*pageBytes])
		}
		if err := os.WriteFile(path, page, 0o666); err != nil {
			t.Fatal(err)
		}
		_, err = s.Open(named)
		wantError(t, err, path+": its format has version 1")

		// One of something else, of another number or none are in nobody's way.
		for i, change := range []func(s *Spec){
			func(s *Spec) { s.Number = 8 },
			func(s *Spec) { s.Number = 0 },
			func(s *Spec) { s.Replica++ },
		} {
			sp := named
			sp.Buffer = strings.Repeat("w", i+1)
			change(&sp)
			closeIt(t, open(t, s, sp))
		}
	})
}

// limited is a storage that has room for so many entries.
type limited struct {
	Memory
	entries int
	opened  *int
}

func (l limited) Open(spec Spec) (Entries, error) {
	*l.opened++
	return l.Memory.Open(spec)
}

func (l limited) room(specs []Spec) error {
	need := 0
	for _, s := range specs {
		need += s.Entries
	}
	if need > l.entries {
		return fmt.Errorf("%d entries: %w", need, syscall.ENOSPC)
	}
	return nil
}

// TestNoRoomForProgram has a session want more room for all its buffers than there is, though there is enough for each,
// and then one of its buffers grow on all replicas: nothing is opened, and nothing grows.
func TestNoRoomForProgram(t *testing.T) {
	build := func(room int) (*Buffer, *ir.Session, int, error) {
		p, opened := ir.New(2), 0
		UseStorage(p, limited{Memory{}, room, &opened})
		b, c := NewBuffer(p, ir.Spec{DType: tensor.F32}, 2), NewBuffer(p, ir.Spec{DType: tensor.F32}, 3)
		Load(p.Main(), b, 0)
		Load(p.Main(), c, 0)
		s, err := ir.NewSession(p)
		return b, s, opened, err
	}
	_, _, opened, err := build(9)
	if wantError(t, err, "10 entries"); opened != 0 {
		t.Errorf("%d buffers were opened", opened)
	}
	b, s, opened, err := build(10)
	if err != nil || opened != 4 {
		t.Fatalf("%d buffers were opened, error %v", opened, err)
	}
	defer s.Close()
	if err := b.SetEntries(5); err != nil {
		t.Error(err)
	}
	if wantError(t, b.SetEntries(6), "12 entries"); b.Entries() != 5 {
		t.Errorf("%d entries, want 5", b.Entries())
	}
	for r := range 2 {
		e, err := b.in(s, r)
		if err != nil {
			t.Fatal(err)
		}
		wantError(t, e.Load(5, make([]byte, 4)), "there are 5")
	}
}
