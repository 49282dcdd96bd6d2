package kernel

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// loop is any loop of a version, in a form that all tests can run: unary ones leave b aside.
type loop struct {
	name     string
	binary   bool
	ordered  bool // a and b are not alike
	dst, src Type
	run      func(dst, a, b []byte)
	oracle   func(a, b uint64) uint64
	plain    func(dst, a, b []byte) // the Go version's loop, for other versions
}

// loops lists the loops that a version has.
func loops(v *version) []loop {
	var all []loop
	for typ := range typeEnd {
		for op := range opEnd {
			if run := v.binary[op][typ]; run != nil {
				all = append(all, loop{fmt.Sprintf("op=%v/type=%v", op, typ), true, false, typ, typ,
					run,
					func(a, b uint64) uint64 { return oracleBinary(op, typ, a, b) }, nil})
			}
		}
		for f := range functionEnd {
			if run := v.function[f][typ]; run != nil {
				all = append(all, loop{name: fmt.Sprintf("op=function/function=%d/type=%v", f, typ), dst: typ, src: typ,
					run: func(dst, a, _ []byte) { run(dst, a) },
					oracle: func(a, _ uint64) uint64 {
						return wideBits(typ, formulas[f](oracleValue(typ, a)))
					}})
			}
		}
		if run := v.geluSlope[typ]; run != nil {
			all = append(all, loop{name: fmt.Sprintf("op=geluslope/type=%v", typ), binary: true, ordered: true,
				dst: typ, src: typ, run: run,
				oracle: func(a, b uint64) uint64 {
					return wideBits(typ, geluSlope(oracleValue(typ, a))*oracleValue(typ, b))
				}})
		}
		if run := v.square[typ]; run != nil {
			all = append(all, loop{fmt.Sprintf("op=square/type=%v", typ), false, false, typ, typ,
				func(dst, a, _ []byte) { run(dst, a) },
				func(a, _ uint64) uint64 { return oracleBinary(Mul, typ, a, a) }, nil})
		}
		if run := v.divide[typ]; run != nil {
			for _, by := range []int{1, 3, 8, 0, -7, -8, 1<<24 + 1, 1 << 30} {
				all = append(all, loop{fmt.Sprintf("op=divide/by=%d/type=%v", by, typ), false, false, typ, typ,
					func(dst, a, _ []byte) { run(dst, a, by) },
					func(a, _ uint64) uint64 { return oracleDivide(typ, a, by) }, nil})
			}
		}
		if run := v.widen[typ]; run != nil {
			all = append(all, loop{fmt.Sprintf("op=widen/type=%v", typ), false, false, Float32, typ,
				func(dst, a, _ []byte) { run(dst, a) },
				func(a, _ uint64) uint64 { return oracleWiden(typ, a) }, nil})
		}
		if run := v.narrow[typ]; run != nil {
			all = append(all, loop{fmt.Sprintf("op=narrow/type=%v", typ), false, false, typ, Float32,
				func(dst, a, _ []byte) { run(dst, a) },
				func(a, _ uint64) uint64 { return oracleNarrow(typ, float32of(a)) }, nil})
		}
	}
	return all
}

// eachLoop runs a test on every loop of every version that keep wants.
func eachLoop(t *testing.T, keep func(loop) bool, test func(*testing.T, loop)) {
	plain := map[string]func(dst, a, b []byte){}
	for _, l := range loops(versions[0]) {
		plain[l.name] = l.run
	}
	for _, v := range versions {
		for _, l := range loops(v) {
			if v != versions[0] {
				l.plain = plain[l.name]
			}
			if !keep(l) {
				continue
			}
			t.Run(fmt.Sprintf("version=%s/%s", v.name, l.name), func(t *testing.T) { test(t, l) })
		}
	}
}

// TestVersions says which versions ran, and that the Go one has all there is.
func TestVersions(t *testing.T) {
	for _, v := range versions {
		t.Logf("version %s: %d loops", v.name, len(loops(v)))
	}
	if versions[0].name != "go" {
		t.Errorf("the first version is %q, want go", versions[0].name)
	}
	for typ := range Type(255) {
		number := typ.Valid() && typ != Bool
		half := typ == Float16 || typ == BFloat16
		float := half || typ == Float32 || typ == Float64
		for op := range Op(255) {
			want := op >= Add && op <= Max && number || (op == And || op == Or) && typ == Bool
			if got := Binary(op, typ) != nil; got != want {
				t.Errorf("Binary(%v, %v) is there: %v, want %v", op, typ, got, want)
			}
		}
		wide := typ == Float32 || typ == Float64
		for f := range Function(255) {
			if got := f.Loop(typ) != nil; got != (wide && f < functionEnd) {
				t.Errorf("function %d of %v is there: %v, want %v", f, typ, got, !got)
			}
		}
		for name, c := range map[string]struct{ got, want bool }{
			"GeluSlope": {GeluSlope(typ) != nil, wide},
			"Square":    {Square(typ) != nil, number},
			"Divide":    {Divide(typ) != nil, float},
			"Widen":     {Widen(typ) != nil, half},
			"Narrow":    {Narrow(typ) != nil, half},
		} {
			if c.got != c.want {
				t.Errorf("%s(%v) is there: %v, want %v", name, typ, c.got, c.want)
			}
		}
	}
}

// TestRegister: a later version's loops are taken where it has some, an earlier one's elsewhere.
func TestRegister(t *testing.T) {
	oldVersions, oldChosen := slices.Clone(versions), chosen
	defer func() { versions, chosen = oldVersions, oldChosen }()
	ran := false
	v := &version{name: "test"}
	v.binary[Add][Int8] = func(dst, a, b []byte) { ran = true }
	register(v)
	if Version() != "test" || len(versions) != len(oldVersions)+1 {
		t.Errorf("version %q of %d, want test of %d", Version(), len(versions), len(oldVersions)+1)
	}
	Binary(Add, Int8)(nil, nil, nil)
	if !ran {
		t.Error("the registered loop was not taken")
	}
	dst := []byte{0}
	Binary(Mul, Int8)(dst, []byte{3}, []byte{5})
	if dst[0] != 15 {
		t.Errorf("3 * 5 = %d in a version without a loop of its own for it", dst[0])
	}
}

// TestLengthsAndOffsets runs every length from 0 to 257 elements at every offset from 0 to 31, the operands each at
// another one, dst apart and being either operand, and looks at the bytes before and after.
func TestLengthsAndOffsets(t *testing.T) {
	const longest, offsets, guard = 257, 32, 64
	lengthStep, offsetStep := 1, 1
	if raceEnabled || testing.Short() {
		lengthStep, offsetStep = 8, 5 // 257 = 32*8 + 1: small remainders come from the loop below
	}
	eachLoop(t, all, func(t *testing.T, l loop) {
		t.Parallel()
		a, b := mixed(l.src, longest, 1), mixed(l.src, longest, 2)
		results := make([]uint64, longest)
		for i := range results {
			results[i] = l.oracle(a[i], b[i])
		}
		packedA, packedB, want := pack(l.src, a), pack(l.src, b), pack(l.dst, results)
		room := func(typ Type) []byte { return aligned(guard + (offsets+longest)*typ.Size() + guard) }
		dstRoom, aRoom, bRoom := room(l.dst), room(l.src), room(l.src)
		clean := bytes.Repeat([]byte{0xa5}, len(dstRoom))

		try := func(n, offset int, alias string) {
			at := func(room []byte, typ Type, offset int) []byte {
				start := guard + offset*typ.Size()
				return room[start : start+n*typ.Size()]
			}
			x, y := at(aRoom, l.src, (offset*5+3)%offsets), at(bRoom, l.src, (offset*11+7)%offsets)
			copy(x, packedA)
			copy(y, packedB)
			whole, dst := dstRoom, at(dstRoom, l.dst, offset)
			switch alias {
			case "a", "b":
				copy(dst, packedA)
				x = dst
				if alias == "b" {
					copy(dst, packedB)
					x, y = at(aRoom, l.src, (offset*5+3)%offsets), dst
				}
			}
			start := guard + offset*l.dst.Size()
			copy(whole, clean[:start])
			copy(whole[start+len(dst):], clean)
			l.run(dst, x, y)
			if !bytes.Equal(dst, want[:len(dst)]) {
				for i := range n {
					if got, want := load(l.dst, dst, i), results[i]; got != want {
						t.Fatalf("length %d offset %d dst==%s: element %d of %s, %s is %s, want %s", n, offset, alias,
							i, hex(l.src, a[i]), hex(l.src, b[i]), hex(l.dst, got), hex(l.dst, want))
					}
				}
			}
			if !bytes.Equal(whole[:start], clean[:start]) ||
				!bytes.Equal(whole[start+len(dst):], clean[:len(whole)-start-len(dst)]) {
				t.Fatalf("length %d offset %d dst==%s: wrote outside dst", n, offset, alias)
			}
			if alias != "a" && !bytes.Equal(x, packedA[:len(x)]) ||
				l.binary && alias != "b" && !bytes.Equal(y, packedB[:len(y)]) {
				t.Fatalf("length %d offset %d dst==%s: changed an operand", n, offset, alias)
			}
		}
		aliases := []string{"none"}
		if l.dst == l.src {
			aliases = append(aliases, "a")
		}
		if l.binary {
			aliases = append(aliases, "b")
		}
		for _, alias := range aliases {
			for n := 0; n <= longest; n += lengthStep {
				for offset := 0; offset < offsets; offset += offsetStep {
					try(n, offset, alias)
				}
			}
			for n := range min(40, longest) {
				try(n, n%offsets, alias)
			}
			try(longest, 1, alias)
		}
	})
}

// TestSpecials tries all pairs of special values, and that operators are commutative to the bit.
func TestSpecials(t *testing.T) {
	eachLoop(t, all, func(t *testing.T, l loop) {
		var a, b []uint64
		for _, x := range specials(l.src) {
			for _, y := range specials(l.src) {
				a, b = append(a, x), append(b, y)
			}
		}
		check(t, l, a, b)
		if l.binary && !l.ordered {
			forth, back := aligned(len(a)*l.dst.Size()), aligned(len(a)*l.dst.Size())
			l.run(forth, pack(l.src, a), pack(l.src, b))
			l.run(back, pack(l.src, b), pack(l.src, a))
			if !bytes.Equal(forth, back) {
				t.Error("not commutative")
			}
		}
	})
}

// TestAll16 tries all 65,536 bit patterns of the 16-bit floats, on binary loops with each special value as the other
// operand.
func TestAll16(t *testing.T) {
	all := make([]uint64, 1<<16)
	for i := range all {
		all[i] = uint64(i)
	}
	eachLoop(t, func(l loop) bool { return l.src == Float16 || l.src == BFloat16 }, func(t *testing.T, l loop) {
		t.Parallel()
		others := []uint64{0}
		if l.binary {
			others = specials(l.src)
			if raceEnabled || testing.Short() {
				others = others[18:20]
			}
		}
		b := make([]uint64, len(all))
		for _, other := range others {
			for i := range b {
				b[i] = other
			}
			check(t, l, all, b)
		}
	})
}

// TestCanonicalNaN says it without the oracle: whatever NaN goes in, one comes out.
func TestCanonicalNaN(t *testing.T) {
	nans := map[Type][]uint64{
		Float16:  {0x7e00, 0x7c01, 0xfe00, 0xffff, 0xfc01, 0x7d55},
		BFloat16: {0x7fc0, 0x7f81, 0xffc0, 0xffff, 0xff81, 0x7faa},
		Float32:  {0x7fc00000, 0x7f800001, 0xffc00000, 0xffffffff, 0xff800001, 0x7faaaaaa},
		Float64:  {0x7ff8000000000000, 0x7ff8000000000001, 0x7ff0000000000001, 0xfff8000000000000, ^uint64(0)},
	}
	canonical := map[Type]uint64{Float16: nanF16, BFloat16: nanBF16, Float32: nanF32, Float64: nanF64}
	eachLoop(t, func(l loop) bool { return l.dst == l.src && nans[l.src] != nil }, func(t *testing.T, l loop) {
		for _, nan := range nans[l.src] {
			for _, other := range specials(l.src) {
				// Seven elements: one at each place of a group of four, and some past it.
				for at := range 7 {
					a, b := make([]uint64, 7), make([]uint64, 7)
					a[at], b[at] = nan, other
					dst, x, y := aligned(7*l.dst.Size()), pack(l.src, a), pack(l.src, b)
					if l.run(dst, x, y); load(l.dst, dst, at) != canonical[l.dst] {
						t.Fatalf("%s, %s give %s, want %s", hex(l.src, nan), hex(l.src, other),
							hex(l.dst, load(l.dst, dst, at)), hex(l.dst, canonical[l.dst]))
					}
				}
			}
		}
	})
}

// TestBoolBytes: any byte but 0 is true, and results are 0 or 1.
func TestBoolBytes(t *testing.T) {
	a, b := make([]uint64, 1<<16), make([]uint64, 1<<16)
	for i := range a {
		a[i], b[i] = uint64(i)&0xff, uint64(i)>>8
	}
	eachLoop(t, func(l loop) bool { return l.src == Bool }, func(t *testing.T, l loop) {
		check(t, l, a, b)
	})
}

// TestAllInt8 tries all pairs of bytes.
func TestAllInt8(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("the oracle is slow")
	}
	a, b := make([]uint64, 1<<16), make([]uint64, 1<<16)
	for i := range a {
		a[i], b[i] = uint64(i)&0xff, uint64(i)>>8
	}
	eachLoop(t, func(l loop) bool { return l.src == Int8 || l.src == Uint8 }, func(t *testing.T, l loop) {
		check(t, l, a, b)
	})
}

// TestNoAllocation: neither asking for a loop nor running it allocates.
func TestNoAllocation(t *testing.T) {
	for _, v := range versions {
		for _, l := range loops(v) {
			dst, a, b := aligned(100*l.dst.Size()), aligned(100*l.src.Size()), aligned(100*l.src.Size())
			if n := testing.AllocsPerRun(10, func() { l.run(dst, a, b) }); n != 0 {
				t.Errorf("version %s %s: %v allocations", v.name, l.name, n)
			}
		}
	}
	if n := testing.AllocsPerRun(10, func() { Binary(Add, Float16)(nil, nil, nil) }); n != 0 {
		t.Errorf("Binary: %v allocations", n)
	}
}

func all(loop) bool { return true }

// check runs a loop over whole slices and holds each element against the oracle, or against the Go version's, which has
// been held against it.
func check(t *testing.T, l loop, a, b []uint64) {
	t.Helper()
	dst := aligned(len(a) * l.dst.Size())
	x, y := pack(l.src, a), pack(l.src, b)
	l.run(dst, x, y)
	if l.plain != nil {
		want := aligned(len(dst))
		if l.plain(want, x, y); bytes.Equal(dst, want) {
			return
		}
	}
	for i := range a {
		if got, want := load(l.dst, dst, i), l.oracle(a[i], b[i]); got != want {
			t.Fatalf("element %d of %s, %s is %s, want %s",
				i, hex(l.src, a[i]), hex(l.src, b[i]), hex(l.dst, got), hex(l.dst, want))
		}
	}
}
