package main

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// TestRounding: conversions of 16 bits, worked out by hand.
func TestRounding(t *testing.T) {
	for _, test := range []struct {
		d    tensor.DType
		f    float64
		bits uint64
	}{
		{tensor.F16, 1, 0x3c00},
		{tensor.F16, -2, 0xc000},
		{tensor.F16, 1 + 1.0/2048, 0x3c00},            // a tie goes to even
		{tensor.F16, 1 + 3.0/2048, 0x3c02},            // and so does this one
		{tensor.F16, 1 + 1.0/2048 + 1e-12, 0x3c01},    // rounded once: more than a tie
		{tensor.F16, 65504, 0x7bff},                   // the greatest
		{tensor.F16, 65520, 0x7c00},                   // a tie with infinity
		{tensor.F16, math.Ldexp(1, -24), 0x0001},      // the smallest
		{tensor.F16, math.Ldexp(1, -25), 0x0000},      // a tie with 0
		{tensor.F16, math.Ldexp(1023.5, -24), 0x0400}, // up to the smallest that is normal
		{tensor.F16, math.Copysign(0, -1), 0x8000},
		{tensor.F16, math.NaN(), 0x7e00},
		{tensor.BF16, 1, 0x3f80},
		{tensor.BF16, 1 + 1.0/256, 0x3f80},
		{tensor.BF16, 1 + 3.0/256, 0x3f82},
		{tensor.BF16, math.Inf(-1), 0xff80},
		{tensor.F32, 0.1, 0x3dcccccd},
	} {
		if got := fromF(test.d, test.f); got != test.bits {
			t.Errorf("%v of %v: %#x, want %#x", test.d, test.f, got, test.bits)
		}
	}
	for _, d := range []tensor.DType{tensor.F16, tensor.BF16} {
		for bits := range uint64(1 << 16) {
			if f := toF(d, bits); f == f && fromF(d, f) != bits {
				t.Fatalf("%v: %#x is %v, which is %#x", d, bits, f, fromF(d, f))
			}
		}
	}
}

// TestFold: operators on a few elements, worked out by hand.
func TestFold(t *testing.T) {
	half := func(f float64) uint64 { return fromF(tensor.F16, f) }
	for i, test := range []struct {
		op   gcl.Operator
		d    tensor.DType
		v    []uint64
		want uint64
	}{
		{gcl.Add, tensor.U8, []uint64{200, 100}, 44},
		{gcl.Mul, tensor.U16, []uint64{300, 300}, 90000 & 0xffff},
		{gcl.SquareAdd, tensor.I32, []uint64{3, 4}, 25},
		{gcl.Min, tensor.I8, []uint64{0xff, 1}, 0xff}, // -1
		{gcl.Min, tensor.U8, []uint64{0xff, 1}, 1},
		{gcl.Max, tensor.I64, []uint64{1 << 63, 0}, 0},
		{gcl.LogicalAnd, tensor.Bool, []uint64{1, 0}, 0},
		{gcl.LogicalOr, tensor.Bool, []uint64{1, 0}, 1},
		{gcl.Mean, tensor.F16, []uint64{half(1), half(2)}, half(1.5)},
		{gcl.Max, tensor.F16, []uint64{half(math.Copysign(0, -1)), half(0)}, half(0)},
		{gcl.Min, tensor.F16, []uint64{half(1), half(math.NaN())}, half(math.NaN())},
		{gcl.Add, tensor.F16, []uint64{half(2048), half(1), half(1)}, half(2050)}, // rounded once, at the end
		{gcl.SquareAdd, tensor.F64, []uint64{math.Float64bits(3), math.Float64bits(4)}, math.Float64bits(25)},
	} {
		if got := fold(test.op, test.d, realNums, test.v, true); got != test.want {
			t.Errorf("%d: %v of %x in %v: %#x, want %#x", i, test.op, test.v, test.d, got, test.want)
		}
	}
	if got := fold(gcl.SquareAdd, tensor.U8, rawBits, []uint64{3}, true); got != 3 {
		t.Errorf("a group of one: %d, want 3", got)
	}
}

// TestWant: where the elements go, in a group of three with inputs that are written by hand.
func TestWant(t *testing.T) {
	for _, test := range []struct {
		c    *call
		in   []string // by rank: bytes
		want []string // "-": no result
	}{
		{&call{k: allReduce, op: gcl.Add, opds: []operand{{n: 2}}},
			[]string{"\x01\x02", "\x10\x20", "\x03\x04"}, []string{"\x14\x26", "\x14\x26", "\x14\x26"}},
		{&call{k: reduceScatter, op: gcl.Max, opds: []operand{{n: 4}}},
			[]string{"abcd", "bbbb", "aaaa"}, []string{"bb", "cd", "\x00\x00"}},
		{&call{k: reduce, op: gcl.Min, root: 1, opds: []operand{{n: 1}}}, []string{"c", "b", "a"}, []string{"-", "a", "-"}},
		{&call{k: allGather, opds: []operand{{n: 2}}}, []string{"ab", "cd", "ef"}, []string{"abcdef", "abcdef", "abcdef"}},
		{&call{k: allToAll, opds: []operand{{n: 1}}}, []string{"abc", "def", "ghi"}, []string{"adg", "beh", "cfi"}},
		{&call{k: broadcast, root: 2, opds: []operand{{n: 2}}}, []string{"ab", "cd", "ef"}, []string{"ef", "ef", "ef"}},
		{&call{k: scatter, root: 1, opds: []operand{{n: 1}}}, []string{"abc", "def", "ghi"}, []string{"d", "e", "f"}},
		{&call{k: gatherV, root: 0, opds: []operand{{row: 1, counts: []int{2, 0, 1}}}}, []string{"ab", "", "c"},
			[]string{"abc", "-", "-"}},
		{&call{k: scatterV, root: 0, opds: []operand{{row: 2, counts: []int{1, 0, 1}}}}, []string{"abcd", "abcd", "abcd"},
			[]string{"ab", "", "cd"}},
		{&call{k: reduceScatterV, op: gcl.Add, opds: []operand{{row: 1, counts: []int{0, 2, 1}}}},
			[]string{"\x01\x02\x03", "\x01\x01\x01", "\x00\x01\x02"}, []string{"", "\x02\x04", "\x06"}},
		{&call{k: allToAllV, opds: []operand{{row: 1, sent: [][]int{{1, 0, 2}, {0, 0, 0}, {1, 1, 0}}}}},
			[]string{"abc", "", "de"}, []string{"ad", "e", "bc"}},
		{&call{k: mappedScatter, op: gcl.Local, mapping: chunks.Mapping{4, 1}, opds: []operand{{n: 5}}},
			[]string{"abcde", "abcde", "abcde"}, []string{"abe", "cd\x00", "\x00\x00\x00"}},
	} {
		c := test.c
		c.g = 3
		c.opds[0].dt = tensor.U8
		c.once.Do(func() {}) // the inputs are there
		var in [][]byte
		for _, text := range test.in {
			in = append(in, []byte(text))
		}
		c.in = [][][]byte{in}
		if c.k.combines() && c.op != gcl.Local {
			c.red = [][]byte{c.reduce(0)}
		}
		for rank, want := range test.want {
			got := c.want(0, rank)
			if want == "-" && got != nil || want != "-" && string(got) != want {
				t.Errorf("%v rank %d: %q, want %q", c, rank, got, want)
			}
		}
	}
}

// TestVerdict: which errors a member of a group that disagrees may have.
func TestVerdict(t *testing.T) {
	bits, mismatch := error(&wrong{"bits"}), fmt.Errorf("call: %w", gcl.ErrMismatch)
	for _, test := range []struct {
		err   error
		want  string
		named string
	}{
		{nil, "a member has no error", "error"},
		{mismatch, "", "mismatch"},
		{bits, "a wrong result without an error", "wrong"},
		{errors.Join(bits, mismatch), "", "wrong"}, // known afterwards
		{gcl.ErrAborted, "a member's error is not ErrMismatch", "error"},
		{errors.Join(mismatch, &gcl.PanicError{}), "panic", "panic"},
	} {
		if got := verdict(test.err); got != test.want {
			t.Errorf("%v: %q, want %q", test.err, got, test.want)
		}
		if test.err != nil && nameOf(test.err, false) != test.named {
			t.Errorf("%v is named %q, want %q", test.err, nameOf(test.err, false), test.named)
		}
	}
	if got := nameOf(gcl.ErrAborted, true); got != "hang" {
		t.Errorf("an error that comes late is named %q", got)
	}
}

// TestPartitions: groups of a division have every replica once, and its groups are those of the library.
func TestPartitions(t *testing.T) {
	for seed := range uint64(200) {
		n := 1 + int(seed%9)
		_, groups := randomGroup(source(seed), n)
		all := slices.Sorted(slices.Values(slices.Concat(groups...)))
		for x := range n {
			if len(all) != n || all[x] != x {
				t.Fatalf("seed %d: %v is no division of %d replicas", seed, groups, n)
			}
		}
	}
}
