package gcl

import (
	"math/rand/v2"
	"testing"

	"gogcl.dev/gcl/internal/memory"
)

// TestCrossing compares the sweep with a look at all pairs.
func TestCrossing(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 9))
	memory := make([]byte, 400)
	var m crossing
	var ins, outs [][]byte
	found := 0
	for range 20000 {
		ins, outs = ins[:0], outs[:0]
		for range 1 + r.IntN(8) {
			lo := r.IntN(390)
			src := memory[lo : lo+r.IntN(min(40, 400-lo))]
			dst := src
			switch r.IntN(4) {
			case 0:
				dst = src[r.IntN(len(src)+1):] // as a shard in its place
			case 1, 2:
				lo := r.IntN(390)
				dst = memory[lo : lo+r.IntN(min(40, 400-lo))]
			}
			if r.IntN(8) == 0 {
				src = nil
			}
			ins, outs = append(ins, src), append(outs, dst)
		}
		want := false
		for i, dst := range outs {
			for j := range outs {
				want = want || i != j && (shareBytes(dst, outs[j]) || shareBytes(dst, ins[j]))
			}
		}
		err := m.check("operand", outs, ins)
		if (err != nil) != want {
			t.Fatalf("%v; pairs overlap: %v", err, want)
		}
		if want {
			found++
		}
	}
	if found < 5000 || found > 19000 {
		t.Errorf("%d of 20000 cases overlap", found)
	}
}

// shareBytes reports whether a and b have memory in common.
func shareBytes(a, b []byte) bool {
	return len(a) > 0 && len(b) > 0 && memory.Address(a) < memory.Address(b)+uintptr(len(b)) &&
		memory.Address(b) < memory.Address(a)+uintptr(len(a))
}
