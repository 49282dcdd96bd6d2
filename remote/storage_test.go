package remote

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/tensor"
)

// plainDir is a Dir as on systems without mappings.
type plainDir struct{ Dir }

func (d plainDir) Open(spec Spec) (Entries, error) { return d.open(spec, plain) }

// eachStorage runs test with every Storage, twice with Dir.
func eachStorage(t *testing.T, test func(t *testing.T, s Storage)) {
	t.Run("storage=memory", func(t *testing.T) { test(t, Memory{}) })
	eachDir(t, test)
}

func eachDir(t *testing.T, test func(t *testing.T, s Storage)) {
	t.Run("storage=native", func(t *testing.T) { test(t, Dir(t.TempDir())) })
	t.Run("storage=plain", func(t *testing.T) { test(t, plainDir{Dir(t.TempDir())}) })
}

// spec is of entries of 4*n bytes.
func spec(entries, n int) Spec {
	return Spec{Buffer: "w", Replica: 2, DType: tensor.F32, Shape: tensor.Shape{n}, Entries: entries}
}

// value is size bytes that no other seed has.
func value(seed uint64, size int) []byte {
	b := make([]byte, size)
	rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16), 1}).Read(b)
	return b
}

func open(t *testing.T, s Storage, spec Spec) Entries {
	t.Helper()
	e, err := s.Open(spec)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func closeIt(t *testing.T, e Entries) {
	t.Helper()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
}

func store(t *testing.T, e Entries, entry int, src []byte) {
	t.Helper()
	if err := e.Store(entry, src); err != nil {
		t.Fatal(err)
	}
}

// holds fails unless the entries are want, in order.
func holds(t *testing.T, e Entries, want ...[]byte) {
	t.Helper()
	for i, w := range want {
		got := bytes.Repeat([]byte{0xa5}, len(w))
		if err := e.Load(i, got); err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, w) {
			t.Errorf("entry %d is not what was stored", i)
		}
	}
}

// wantLost fails unless exactly these entries are known to be lost.
func wantLost(t *testing.T, e Entries, want ...int) {
	t.Helper()
	if got := e.Lost(); !slices.Equal(got, want) {
		t.Errorf("lost %v, want %v", got, want)
	}
}

// huge reports whether what math.MaxInt counts is too much for a Storage. With an int of 32 bits, files can hold it.
func huge(s Storage) bool {
	_, inMemory := s.(Memory)
	return inMemory || math.MaxInt > math.MaxInt32
}

// wantError fails unless err says all of want.
func wantError(t *testing.T, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want one that says %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q, want one that says %q", err, w)
		}
	}
}

// TestStoreLoad stores in every entry, in random order and several times.
func TestStoreLoad(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		for _, n := range []int{0, 1, 2, 3, chunkBytes/4 - 1, chunkBytes / 4, chunkBytes/4 + 1, chunkBytes/2 + 7} {
			t.Run(fmt.Sprintf("elements=%d", n), func(t *testing.T) {
				sp := spec(17, n)
				sp.Buffer = fmt.Sprint(n)
				e := open(t, s, sp)
				want := make([][]byte, sp.Entries)
				for i := range want {
					want[i] = make([]byte, 4*n)
				}
				holds(t, e, want...)
				for seed := range uint64(50) {
					i := rand.IntN(len(want))
					want[i] = value(seed, 4*n)
					src := slices.Clone(want[i])
					store(t, e, i, src)
					clear(src) // the entry is a copy
				}
				holds(t, e, want...)
				wantLost(t, e)
				if err := e.Sync(); err != nil {
					t.Error(err)
				}
				closeIt(t, e)
			})
		}
	})
}

// TestReplicas stores different values in two buffers of the same Storage and on two replicas.
func TestReplicas(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		var all []Entries
		for i := range 4 {
			sp := spec(1, 2)
			sp.Buffer, sp.Replica = string(rune('a'+i%2)), i/2
			e := open(t, s, sp)
			store(t, e, 0, value(uint64(i), 8))
			all = append(all, e)
		}
		for i, e := range all {
			holds(t, e, value(uint64(i), 8))
			closeIt(t, e)
		}
	})
}

func TestGrow(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		e := open(t, s, spec(2, 3))
		a, b, zero := value(1, 12), value(2, 12), make([]byte, 12)
		store(t, e, 1, a)
		for _, n := range []int{2, 3, 40} {
			if err := e.Grow(n); err != nil {
				t.Fatal(err)
			}
		}
		holds(t, e, zero, a, zero)
		store(t, e, 39, b)
		wantError(t, e.Grow(39), "remote: grow buffer \"w\" of replica 2 to 39 entries: there are 40 entries already")
		wantError(t, e.Grow(-1), "-1", "there are 40")
		if huge(s) {
			wantError(t, e.Grow(math.MaxInt), "entries of 12 bytes")
		}
		wantError(t, e.Store(40, a), "there are 40")
		want := slices.Repeat([][]byte{zero}, 40)
		want[1], want[39] = a, b
		holds(t, e, want...)
		closeIt(t, e)
	})
}

// TestArguments checks that bad arguments are refused and change nothing.
func TestArguments(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		e := open(t, s, spec(3, 2))
		a := value(1, 8)
		for i := range 3 {
			store(t, e, i, a)
		}
		for _, i := range []int{-1, 3, math.MaxInt, math.MinInt} {
			want := fmt.Sprintf("entry %d of buffer \"w\" of replica 2: there is no such entry: there are 3, from 0 on",
				i)
			wantError(t, e.Load(i, make([]byte, 8)), "remote: load "+want)
			wantError(t, e.Store(i, make([]byte, 8)), "remote: store "+want)
		}
		for _, n := range []int{0, 7, 9} {
			want := fmt.Sprintf("entry 1 of buffer \"w\" of replica 2: %d bytes, but an entry has 8: dtype float32, "+
				"shape (2,)", n)
			wantError(t, e.Load(1, make([]byte, n)), "remote: load "+want)
			wantError(t, e.Store(1, make([]byte, n)), "remote: store "+want)
		}
		holds(t, e, a, a, a)
		closeIt(t, e)
		wantError(t, e.Load(0, make([]byte, 8)), "load", "the entries are closed")
		wantError(t, e.Store(0, make([]byte, 8)), "store", "the entries are closed")
		wantError(t, e.Grow(4), "grow", "the entries are closed")
		wantError(t, e.Sync(), "sync", "the entries are closed")
		wantError(t, e.Close(), "close", "the entries are closed")
		wantLost(t, e)
	})
}

func TestOpenArguments(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Spec)
		want   string
	}{
		{"no name", func(s *Spec) { s.Buffer = "" }, "the buffer has no name"},
		{"replica", func(s *Spec) { s.Replica = -1 }, "replica -1 is negative"},
		{"no entries", func(s *Spec) { s.Entries = 0 }, "0 entries, want at least 1"},
		{"negative entries", func(s *Spec) { s.Entries = -4 }, "-4 entries, want at least 1"},
		{"dtype", func(s *Spec) { s.DType = 0 }, "invalid dtype DType(0)"},
		{"shape", func(s *Spec) { s.Shape = tensor.Shape{2, -1} }, "shape (2, -1): dimension 1 is negative"},
		{"elements", func(s *Spec) { s.Shape = tensor.Shape{math.MaxInt, 2} }, "elements"},
		{"bytes", func(s *Spec) { s.Shape = tensor.Shape{math.MaxInt / 2} }, "takes more than"},
		{"entry too large", func(s *Spec) { s.Shape = tensor.Shape{math.MaxInt/4 - 1} }, "1 entries of"},
		{"all too large", func(s *Spec) { s.Entries = math.MaxInt / 8 }, fmt.Sprintf("%d entries of 8 bytes", math.MaxInt/8)},
	}
	eachStorage(t, func(t *testing.T, s Storage) {
		for _, tt := range tests {
			sp := spec(1, 2)
			tt.change(&sp)
			if strings.HasSuffix(tt.name, "too large") && !huge(s) {
				continue
			}
			if _, err := s.Open(sp); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: error %v, want one that says %q", tt.name, err, tt.want)
			}
		}
	})
}

// TestSpecIsCopied changes the caller's shape, which later errors must not show.
func TestSpecIsCopied(t *testing.T) {
	sp := spec(1, 2)
	e := open(t, Memory{}, sp)
	sp.Shape[0] = 99
	wantError(t, e.Load(0, nil), "shape (2,)")
}

// TestBesideStores loads entries that are stored to meanwhile, while there come to be more. Every load must give one
// of the values, whole.
func TestBesideStores(t *testing.T) {
	const size = chunkBytes + 400 // more than a chunk
	eachStorage(t, func(t *testing.T, s Storage) {
		const entries = stripes + 1 // two share a lock
		e := open(t, s, spec(entries, size/4))
		var values [4][]byte
		for i := range values {
			values[i] = bytes.Repeat([]byte{byte(i)}, size)
		}
		var wg sync.WaitGroup
		for g := range 4 {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(uint64(g), 1))
				buf := make([]byte, size)
				for range 60 {
					i := r.IntN(entries)
					if g%2 == 0 {
						if err := e.Store(i, values[r.IntN(len(values))]); err != nil {
							t.Error(err)
						}
						continue
					}
					if err := e.Load(i, buf); err != nil {
						t.Error(err)
					} else if !slices.ContainsFunc(values[:], func(v []byte) bool { return bytes.Equal(v, buf) }) {
						t.Errorf("entry %d is a mixture", i)
					}
				}
			})
		}
		wg.Go(func() {
			for n := range 5 {
				if err := errors.Join(e.Grow(entries+n), e.Sync()); err != nil {
					t.Error(err)
				}
				e.Lost()
			}
		})
		wg.Wait()
		wantLost(t, e)
		closeIt(t, e)
	})
}
