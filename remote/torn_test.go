package remote

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var errKilled = errors.New("killed")

// A life is how many steps a process has before it is killed.
type life struct {
	steps int
	torn  bool // the step in which it is killed is half done, if it has halves
}

func (l *life) step() bool {
	l.steps--
	return l.steps >= 0
}

// mortal is a medium whose process is killed: from then on nothing changes the file.
type mortal struct {
	medium
	life *life
}

func (m mortal) setWord(off int64, w uint64) error {
	if !m.life.step() {
		return errKilled
	}
	return m.medium.setWord(off, w)
}

func (m mortal) write(off int64, src []byte) error {
	if !m.life.step() {
		if m.life.steps == -1 && m.life.torn {
			m.medium.write(off, src[:len(src)/2])
		}
		return errKilled
	}
	return m.medium.write(off, src)
}

func (m mortal) resize(size int64) error {
	if !m.life.step() {
		return errKilled
	}
	return m.medium.resize(size)
}

func (m mortal) sync(off, n int64) error {
	if !m.life.step() {
		return errKilled
	}
	return nil // for what a kill leaves the disk is of no matter
}

// mortalPlatform is p for processes with that life.
func mortalPlatform(p platform, l *life) platform {
	return platform{
		create: func(path string, bytes []byte) (*os.File, error) {
			if !l.step() {
				return nil, inFile(path, errKilled)
			}
			return p.create(path, bytes)
		},
		room: p.room,
		open: func(f *os.File, size int64) (medium, error) {
			m, err := p.open(f, size)
			return mortal{m, l}, err
		},
		reserve: func(f *os.File, from, to int64) error {
			if !l.step() {
				if l.steps == -1 && l.torn {
					return errors.Join(p.reserve(f, from, (from+to)/2), errKilled)
				}
				return errKilled
			}
			return p.reserve(f, from, to)
		},
	}
}

// eachKill runs test for processes that are killed in their first step, in their second and so on, until one reports
// that it has lived to its end. It fails if that takes fewer steps than there must be.
func eachKill(t *testing.T, leastSteps int, test func(t *testing.T, dir Dir, p platform, l *life) (lived bool)) {
	for name, p := range map[string]platform{"native": native, "plain": plain} {
		for _, torn := range []bool{false, true} {
			for k := 0; ; k++ {
				lived := false
				t.Run(fmt.Sprintf("storage=%s/torn=%v/step=%d", name, torn, k), func(t *testing.T) {
					lived = test(t, Dir(t.TempDir()), p, &life{k, torn})
				})
				if lived {
					if k < leastSteps {
						t.Errorf("only %d steps, want at least %d", k, leastSteps)
					}
					break
				}
				if k > 100 || t.Failed() {
					t.Fatal("it does not live to its end")
				}
			}
		}
	}
}

// become lets an open file be that of a process with a life.
func become(e Entries, p platform, l *life) {
	k := e.(*guarded).keeper.(*file)
	k.medium = mortal{k.medium, l}
	k.platform = mortalPlatform(p, l)
}

func openOn(t *testing.T, dir Dir, p platform, sp Spec) Entries {
	t.Helper()
	e, err := dir.open(sp, p)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// TestTornStore kills in every step of a Store, over a value and where there was none.
func TestTornStore(t *testing.T) {
	const size = 4 * (chunkBytes/2 + 1) // three chunks
	for _, over := range []bool{true, false} {
		t.Run(fmt.Sprintf("over=%v", over), func(t *testing.T) {
			eachKill(t, 5, func(t *testing.T, dir Dir, p platform, l *life) bool {
				first := l.steps == 0
				e := openOn(t, dir, p, spec(3, size/4))
				old, fresh := make([]byte, size), value(9, size)
				others := value(1, size)
				store(t, e, 0, others)
				store(t, e, 2, others)
				if over {
					old = value(8, size)
					store(t, e, 1, old)
				}
				become(e, p, l)
				err := e.Store(1, fresh)
				if err != nil {
					if !errors.Is(err, errKilled) {
						t.Fatal(err)
					}
					wantError(t, err, "remote: store entry 1", fileOf(t, dir))
					// If it was no kill but an error, Lost knows already.
					if first {
						wantLost(t, e)
					} else {
						wantLost(t, e, 1)
					}
				}
				abandon(t, e)

				e = openOn(t, dir, p, spec(3, size/4))
				want := [][]byte{others, fresh, others}
				switch {
				case err == nil:
					wantLost(t, e)
				case first:
					want[1] = old
					wantLost(t, e)
				default:
					wantLost(t, e, 1)
					err := e.Load(1, make([]byte, size))
					wantError(t, err, "remote: load entry 1", fileOf(t, dir), "a store of it was cut short")
					if !errors.Is(err, ErrLost) {
						t.Errorf("error %v, want ErrLost", err)
					}
					// Closed and opened again it is still lost, until it is stored anew.
					closeIt(t, e)
					e = openOn(t, dir, p, spec(3, size/4))
					wantLost(t, e, 1)
					store(t, e, 1, fresh)
					wantLost(t, e)
				}
				holds(t, e, want...)
				closeIt(t, e)
				e = openOn(t, dir, p, spec(3, size/4))
				wantLost(t, e)
				holds(t, e, want...)
				closeIt(t, e)
				return err == nil
			})
		})
	}
}

// TestTornGrow kills in every step of a Grow: there are the old number of entries or the new one.
func TestTornGrow(t *testing.T) {
	eachKill(t, 4, func(t *testing.T, dir Dir, p platform, l *life) bool {
		const size = 4000
		e := openOn(t, dir, p, spec(2, size/4))
		a, b, zero := value(1, size), value(2, size), make([]byte, size)
		store(t, e, 0, a)
		store(t, e, 1, b)
		become(e, p, l)
		grown := e.Grow(5)
		if grown != nil && !errors.Is(grown, errKilled) {
			t.Fatal(grown)
		}
		abandon(t, e)

		e, err := dir.open(spec(5, size/4), p)
		if err != nil {
			if grown == nil {
				t.Fatal(err)
			}
			wantError(t, err, "it holds entries 2,", "wanted: entries 5,")
			e = openOn(t, dir, p, spec(2, size/4))
			holds(t, e, a, b)
			if err := e.Grow(5); err != nil {
				t.Fatal(err)
			}
		}
		wantLost(t, e)
		holds(t, e, a, b, zero, zero, zero)
		store(t, e, 4, a)
		closeIt(t, e)
		e = openOn(t, dir, p, spec(5, size/4))
		holds(t, e, a, b, zero, zero, a)
		closeIt(t, e)
		return grown == nil
	})
}

// TestGrowFails lets every step of a Grow fail, without killing: the entries stay as they are, and can grow again, to
// fewer and to more.
func TestGrowFails(t *testing.T) {
	for _, to := range []int{3, 5, 7} {
		eachKill(t, 6, func(t *testing.T, dir Dir, p platform, l *life) bool {
			e := openOn(t, dir, p, spec(2, 1000))
			a, zero := value(1, 4000), make([]byte, 4000)
			store(t, e, 1, a)
			become(e, p, l)
			err := e.Grow(5)
			l.steps = 1 << 30
			if err == nil {
				closeIt(t, e)
				return true
			}
			wantError(t, e.Load(2, zero), "there are 2")
			holds(t, e, zero, a)
			if err := e.Grow(to); err != nil {
				t.Fatal(err)
			}
			store(t, e, to-1, a)
			closeIt(t, e)
			e = openOn(t, dir, p, spec(to, 1000))
			want := slices.Repeat([][]byte{zero}, to)
			want[1], want[to-1] = a, a
			holds(t, e, want...)
			closeIt(t, e)
			return false
		})
	}
}

// TestTornMake kills in every step of an Open that makes a file: the next one makes it, even with another Spec.
func TestTornMake(t *testing.T) {
	eachKill(t, 4, func(t *testing.T, dir Dir, p platform, l *life) bool {
		e, err := dir.open(spec(3, 1000), mortalPlatform(p, l))
		again := spec(2, 500)
		if err == nil {
			abandon(t, e)
			again = spec(3, 1000)
		} else if !errors.Is(err, errKilled) {
			t.Fatal(err)
		} else {
			wantError(t, err, fileOf(t, dir))
		}
		next, nextErr := dir.open(again, p)
		if nextErr != nil && strings.Contains(nextErr.Error(), "wanted: entries 2") {
			// The header that makes it whole was written, only not yet on the disk.
			again = spec(3, 1000)
			next, nextErr = dir.open(again, p)
		}
		if nextErr != nil {
			t.Fatal(nextErr)
		}
		zero := make([]byte, 4*again.Shape[0])
		holds(t, next, slices.Repeat([][]byte{zero}, again.Entries)...)
		wantLost(t, next)
		closeIt(t, next)
		return err == nil
	})
}

// TestTail opens a file that is longer than its header says, and grows it: nothing of the tail is taken for entries.
func TestTail(t *testing.T) {
	eachDir(t, func(t *testing.T, s Storage) {
		e := open(t, s, spec(2, 2))
		a, zero := value(1, 8), make([]byte, 8)
		store(t, e, 0, a)
		store(t, e, 1, a)
		closeIt(t, e)
		whole := read(t, fileOf(t, s))
		if err := os.WriteFile(fileOf(t, s), append(whole, whole[headBytes:]...), 0o666); err != nil {
			t.Fatal(err)
		}
		e = open(t, s, spec(2, 2))
		if err := e.Grow(5); err != nil {
			t.Fatal(err)
		}
		holds(t, e, a, a, zero, zero, zero)
		closeIt(t, e)
	})
}

// TestTornOpenClose kills in every step of opening and closing what is there.
func TestTornOpenClose(t *testing.T) {
	eachKill(t, 5, func(t *testing.T, dir Dir, p platform, l *life) bool {
		e := openOn(t, dir, p, spec(2, 3))
		a, b := value(1, 12), value(2, 12)
		store(t, e, 0, a)
		store(t, e, 1, b)
		closeIt(t, e)
		e, err := dir.open(spec(2, 3), mortalPlatform(p, l))
		if err == nil {
			err = e.Close()
		}
		if err != nil {
			if !errors.Is(err, errKilled) {
				t.Fatal(err)
			}
			wantError(t, err, fileOf(t, dir))
		}
		again := openOn(t, dir, p, spec(2, 3))
		wantLost(t, again)
		holds(t, again, a, b)
		closeIt(t, again)
		return err == nil
	})
}
