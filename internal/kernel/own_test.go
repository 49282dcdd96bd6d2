package kernel

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestOwn folds by an operator of the program's own, neither commutative nor associative: any number of sources, more
// than a block of each, into destinations any of which may be a source.
func TestOwn(t *testing.T) {
	combine := func(dst, a, b []byte) {
		for i := range dst {
			dst[i] = 3*a[i] - b[i]
		}
	}
	op, ok := NewOp(Uint8, combine)
	if !ok || !op.Own() || op.Valid() || Add.Own() {
		t.Fatalf("%v, %v", op, ok)
	}
	for _, other := range []Type{0, Int8, typeEnd, 99} {
		if Binary(op, other) != nil || Second(op, other) != nil || Many(op, other) != nil {
			t.Errorf("it takes %v", other)
		}
	}
	if Binary(op+1, Uint8) != nil || Second(Add, Int8) == nil {
		t.Error("an operator that nobody made, or none of the package's")
	}
	a, b, dst := []byte{1, 2}, []byte{5, 9}, make([]byte, 2)
	if Binary(op, Uint8)(dst, a, b); !bytes.Equal(dst, []byte{254, 253}) {
		t.Errorf("a op b: %v", dst)
	}
	if Second(op, Uint8)(dst, a, b); !bytes.Equal(dst, []byte{14, 25}) {
		t.Errorf("b op a: %v", dst)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		n, sources := rng.IntN(3*ownBlock), 1+rng.IntN(5)
		srcs := make([][]byte, sources)
		for i := range srcs {
			srcs[i] = make([]byte, n)
			for k := range srcs[i] {
				srcs[i][k] = byte(rng.Uint32())
			}
		}
		want := slices.Clone(srcs[0])
		for _, s := range srcs[1:] {
			combine(want, want, s)
		}
		dsts := [][]byte{make([]byte, n), srcs[rng.IntN(sources)], make([]byte, n)}[rng.IntN(2):]
		Fold{Op: op, Type: Uint8, Wide: true}.Loop()(dsts, srcs, 3, true)
		for i, d := range dsts {
			if !bytes.Equal(d, want) {
				t.Fatalf("%d sources of %d bytes: destination %d of %d differs", sources, n, i, len(dsts))
			}
		}
	}
}
