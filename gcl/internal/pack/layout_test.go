package pack

import (
	"math/rand/v2"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
)

// randomExtents are tensors of all types, many of them empty or short.
func randomExtents(r *rand.Rand) []Extent {
	out := make([]Extent, r.IntN(12))
	for t := range out {
		out[t] = Extent{Work: kernel.Type(1 + r.IntN(numTypes-1)),
			Elements: []int{0, 1, r.IntN(20), r.IntN(3000)}[r.IntN(4)]}
	}
	return out
}

// TestLayout looks at where every element lies.
func TestLayout(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	var l Layout
	for range 2000 {
		extents, ranks := randomExtents(r), r.IntN(9)
		cut := 1 + r.IntN(40)
		if ranks > 0 {
			cut = ranks * (1 + r.IntN(4))
		}
		l.fit(extents, cut, ranks)
		checkLayout(t, &l, extents, cut, ranks)
		if t.Failed() {
			t.Fatalf("%v in %d chunks, %d ranks", extents, cut, ranks)
		}
	}
}

func checkLayout(t *testing.T, l *Layout, extents []Extent, cut, ranks int) {
	t.Helper()
	owner := make([]int, l.Bytes()) // Of each byte: tensor+1
	next := make([]int, len(extents))
	for f := range cut {
		if l.Bounds[f]%Align != 0 || l.Bounds[f] > l.Bounds[f+1] {
			t.Errorf("chunk %d is bytes %d to %d", f, l.Bounds[f], l.Bounds[f+1])
		}
		padding := l.Bounds[f+1] - l.Bounds[f]
		for _, frag := range l.ChunkRange(f, f+1).Fragments {
			e := extents[frag.Tensor]
			lo, hi := chunks.Split(e.Elements, cut, f)
			if ranks > 0 {
				lo, hi = chunks.SplitPadded(e.Elements, ranks, cut, f)
			}
			if frag.Lo != lo || frag.Hi != hi || lo == hi || lo != next[frag.Tensor] {
				t.Errorf("chunk %d of tensor %d is elements %d to %d, want %d to %d, from %d on",
					f, frag.Tensor, frag.Lo, frag.Hi, lo, hi, next[frag.Tensor])
			}
			next[frag.Tensor] = hi
			size := e.Work.Size()
			if frag.At%size != 0 || frag.At < l.Bounds[f] || frag.At+(hi-lo)*size > l.Bounds[f+1] {
				t.Errorf("chunk %d of tensor %d is at %d, of %d bytes each", f, frag.Tensor, frag.At, size)
				return
			}
			for i := range (hi - lo) * size {
				if owner[frag.At+i] != 0 {
					t.Errorf("byte %d belongs to tensors %d and %d", frag.At+i, owner[frag.At+i]-1, frag.Tensor)
				}
				owner[frag.At+i] = frag.Tensor + 1
			}
			padding -= (hi - lo) * size
		}
		if padding < 0 || padding >= Align {
			t.Errorf("chunk %d has %d bytes of padding", f, padding)
		}
	}
	for i, n := range next {
		if n != extents[i].Elements {
			t.Errorf("tensor %d: %d of %d elements have a place", i, n, extents[i].Elements)
		}
	}
	covered := 0
	for i, s := range l.stretches {
		for at := s.at; at < s.end; at++ {
			if owner[at] == 0 || extents[owner[at]-1].Work != s.work {
				t.Errorf("byte %d in a stretch of %v", at, s.work)
				return
			}
			if got := l.stretchAt(at); got != i {
				t.Errorf("byte %d is found in stretch %d, not %d", at, got, i)
				return
			}
		}
		covered += s.end - s.at
	}
	for _, o := range owner {
		if o != 0 {
			covered--
		}
	}
	if covered != 0 {
		t.Errorf("stretches cover %d bytes more than there are", covered)
	}
	if got := l.stretchAt(l.Bytes()); got != len(l.stretches) {
		t.Errorf("past the end is stretch %d of %d", got, len(l.stretches))
	}
}

// TestLayoutsAreKept asks for more layouts than are kept, again and again.
func TestLayoutsAreKept(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 9))
	var ls Layouts
	sets := make([][]Extent, 2*maxLayouts)
	for i := range sets {
		sets[i] = append(randomExtents(r), Extent{Work: kernel.Float32, Elements: i})
	}
	numbers, made := map[uint64]int{}, map[*Layout]bool{}
	for range 4000 {
		i, cut := r.IntN(len(sets)), 1+r.IntN(3)
		l := ls.Of(sets[i], cut, 0)
		checkLayout(t, l, sets[i], cut, 0)
		if t.Failed() {
			t.FailNow()
		}
		if was, seen := numbers[l.Number]; seen && was != i*3+cut {
			t.Fatalf("number %d has been another layout's", l.Number)
		}
		numbers[l.Number], made[l] = i*3+cut, true
		if again := ls.Of(sets[i], cut, 0); again != l || again.Number != l.Number {
			t.Fatal("the layout just asked for is made again")
		}
	}
	if len(made) != maxLayouts {
		t.Errorf("%d layouts are kept, want %d", len(made), maxLayouts)
	}
}

// A hash that two sets have in common does not confuse them.
func TestLayoutsWithOneHash(t *testing.T) {
	var ls Layouts
	a, b := []Extent{{Work: kernel.Int8, Elements: 100}}, []Extent{{Work: kernel.Float64, Elements: 900}}
	l := ls.Of(a, 3, 0)
	number := l.Number
	hash := wire.Mix(wire.Mix(wire.Seed, 3), 0)
	hash = wire.Mix(wire.Mix(hash, uint64(kernel.Float64)), 900)
	*ls.known.Place(hash) = l // as if b had it too
	got := ls.Of(b, 3, 0)
	checkLayout(t, got, b, 3, 0)
	if got.Number == number {
		t.Error("another layout has the same number")
	}
}
