package kernel

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// String names a fold as a test's name does.
func (f Fold) String() string {
	return fmt.Sprintf("op=%v/type=%v/square=%v/wide=%v", f.Op, f.Type, f.Square, f.Wide)
}

// eachFold runs a test on every fold of every version that keep wants.
func eachFold(t *testing.T, keep func(Fold) bool,
	test func(*testing.T, Fold, func(dsts, srcs [][]byte, by int, stream bool))) {
	for _, v := range versions {
		for _, f := range everyFold() {
			if loop := v.fold[f.index()]; loop != nil && (!f.Wide || f.half()) && keep(f) {
				t.Run(fmt.Sprintf("version=%s/%v", v.name, f), func(t *testing.T) { test(t, f, loop) })
			}
		}
	}
}

func anyFold(Fold) bool { return true }

func (f Fold) half() bool  { return f.Type == Float16 || f.Type == BFloat16 }
func (f Fold) float() bool { return f.half() || f.Type == Float32 || f.Type == Float64 }

// oracle is the fold of packed elements by one loop of the Go version after the other.
func (f Fold) oracle(srcs [][]byte, by int) []byte {
	plain, typ := versions[0], f.Type
	if !f.float() {
		by = 1
	}
	if f.plainCopy(srcs, by) {
		return bytes.Clone(srcs[0])
	}
	load := func(src []byte) []byte {
		x := aligned(len(src))
		copy(x, src)
		if f.Wide && f.half() {
			x = aligned(len(src) * 2)
			plain.widen[f.Type](x, src)
		}
		if f.Square {
			plain.square[typ](x, x)
		}
		return x
	}
	if f.Wide && f.half() {
		typ = Float32
	}
	acc := load(srcs[0])
	for _, s := range srcs[1:] {
		plain.binary[f.Op][typ](acc, acc, load(s))
	}
	if by > 1 {
		plain.divide[typ](acc, acc, by)
	}
	if typ == f.Type {
		return acc
	}
	narrowed := aligned(len(srcs[0]))
	plain.narrow[f.Type](narrowed, acc)
	return narrowed
}

// foldTrial is one call of a fold.
type foldTrial struct {
	srcs, dsts int
	inPlace    int // the source that the last destination is, none if negative
	elements   int
	by         int
	stream     bool
	sameLine   bool // all destinations start at the same place of a cache line
}

// foldRooms is memory for trials: every operand has a room of its own, with guard bytes around it.
type foldRooms struct {
	Fold
	loop  func(dsts, srcs [][]byte, by int, stream bool)
	rng   *rand.Rand
	most  int // elements
	data  [][]byte
	rooms [][]byte
	clean []byte // guard bytes, as many as a room has
}

const foldOperands, foldGuard = 17, 128

func newFoldRooms(f Fold, loop func(dsts, srcs [][]byte, by int, stream bool), most int) *foldRooms {
	r := &foldRooms{Fold: f, loop: loop, rng: rand.New(rand.NewPCG(3, uint64(f.index()))), most: most}
	for i := range foldOperands {
		r.data = append(r.data, pack(f.Type, mixed(f.Type, most, uint64(i))))
	}
	if f.float() {
		// Where all are of one size, sums of many stay numbers.
		for i, d := range r.data {
			copy(d[len(d)/2:], ones(f.Type, len(d)/2/f.Type.Size()*f.Type.Size()))
			store(f.Type, d, most/2+i, mixed(f.Type, 1, uint64(i))[0])
		}
	}
	if f.Type == Bool {
		for _, d := range r.data {
			for i := range d {
				d[i] = byte(r.rng.Uint32()>>8) * byte(r.rng.IntN(2)) // any but 0 is true
			}
		}
	}
	for range 2 * foldOperands {
		r.rooms = append(r.rooms, aligned(foldGuard+(32+most)*f.Type.Size()+foldGuard+64))
	}
	r.clean = bytes.Repeat([]byte{0xa5}, len(r.rooms[0]))
	return r
}

// place is n bytes in a room, at a place chosen at random, filled with guard bytes all around.
func (r *foldRooms) place(room []byte, n int, offset int) []byte {
	copy(room, r.clean)
	start := foldGuard + offset*r.Type.Size()
	return room[start : start+n : start+n]
}

func (r *foldRooms) try(t *testing.T, c foldTrial) {
	t.Helper()
	n := c.elements * r.Type.Size()
	first := r.rng.IntN(r.most - c.elements + 1)
	var srcs, dsts, packed [][]byte
	for i := range c.srcs {
		from := r.data[i][first*r.Type.Size():][:n]
		s := r.place(r.rooms[i], n, r.rng.IntN(32))
		copy(s, from)
		srcs, packed = append(srcs, s), append(packed, from)
	}
	rooms := r.rooms[foldOperands:]
	offset := r.rng.IntN(32)
	for i := range c.dsts {
		if !c.sameLine {
			offset = r.rng.IntN(32)
		}
		d := r.place(rooms[i], n, offset)
		if i == c.dsts-1 && c.inPlace >= 0 {
			d = srcs[c.inPlace]
		}
		dsts = append(dsts, d)
	}
	want := r.oracle(packed, c.by)
	r.loop(dsts, srcs, c.by, c.stream)
	for i, d := range dsts {
		if !bytes.Equal(d, want) {
			for e := range c.elements {
				if got, want := load(r.Type, d, e), load(r.Type, want, e); got != want {
					t.Fatalf("%+v: destination %d element %d is %s, want %s",
						c, i, e, hex(r.Type, got), hex(r.Type, want))
				}
			}
		}
	}
	for i, s := range srcs {
		if i != c.inPlace && !bytes.Equal(s, packed[i]) {
			t.Fatalf("%+v: source %d changed", c, i)
		}
	}
	for i, s := range srcs {
		if !guarded(r.rooms[i], s) {
			t.Fatalf("%+v: wrote outside source %d", c, i)
		}
	}
	for i, d := range dsts {
		if (i < c.dsts-1 || c.inPlace < 0) && !guarded(rooms[i], d) {
			t.Fatalf("%+v: wrote outside destination %d", c, i)
		}
	}
}

// guarded reports whether all of a room is guard bytes but operand, which lies in it.
func guarded(room, operand []byte) bool {
	n := len(operand)
	start := int(uintptr(unsafe.Pointer(unsafe.SliceData(operand))) - uintptr(unsafe.Pointer(unsafe.SliceData(room))))
	return bytes.Count(room[:start], []byte{0xa5}) == start &&
		bytes.Count(room[start+n:], []byte{0xa5}) == len(room)-start-n
}

// TestFoldOperands: 1 to 9 and 17 sources, 1 to 9 destinations, in place with each, streaming and not.
func TestFoldOperands(t *testing.T) {
	eachFold(t, anyFold, func(t *testing.T, f Fold, loop func(dsts, srcs [][]byte, by int, stream bool)) {
		t.Parallel()
		r := newFoldRooms(f, loop, 1200/f.Type.Size())
		for _, srcs := range []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 17} {
			for dsts := 1; dsts <= 9; dsts++ {
				if (testing.Short() || raceEnabled) && (srcs+2*dsts)%7 != 0 {
					continue
				}
				c := foldTrial{srcs: srcs, dsts: dsts, inPlace: -1, elements: 1 + r.rng.IntN(r.most), by: 1}
				r.try(t, c)
				c.stream = true
				r.try(t, c)
				c.sameLine, c.by = true, []int{2, 3, 8, 17}[dsts%4]
				r.try(t, c)
				c.stream = false
				r.try(t, c)
				c.by = 1
				for c.inPlace = range srcs {
					if dsts > 2 && c.inPlace%3 != dsts%3 {
						continue // 1 and 2 destinations: all; more: some of them each
					}
					c.stream = r.rng.IntN(2) == 0
					r.try(t, c)
				}
			}
		}
	})
}

// TestFoldLengths runs every length from 0 to 257 elements, and lengths around the columns that the loops work in.
func TestFoldLengths(t *testing.T) {
	eachFold(t, anyFold, func(t *testing.T, f Fold, loop func(dsts, srcs [][]byte, by int, stream bool)) {
		t.Parallel()
		r := newFoldRooms(f, loop, max(258, 1100/f.Type.Size()))
		step := 1
		if testing.Short() || raceEnabled {
			step = 7
		}
		for n := 0; n <= r.most; n += step {
			if n > 257 {
				n += 28
			}
			if n > r.most {
				break
			}
			for _, stream := range []bool{false, true} {
				r.try(t, foldTrial{srcs: 3, dsts: 2, inPlace: -1, elements: n, by: 1 + n%4, stream: stream,
					sameLine: n%2 == 0})
				r.try(t, foldTrial{srcs: 2, dsts: 2, inPlace: n % 2, elements: n, by: 1, stream: stream,
					sameLine: n%2 == 0})
			}
		}
	})
}

// TestFoldAll16 folds all 65,536 bit patterns of the 16-bit floats with partners, two and three at a time.
func TestFoldAll16(t *testing.T) {
	all := make([]uint64, 1<<16)
	for i := range all {
		all[i] = uint64(i)
	}
	eachFold(t, Fold.half, func(t *testing.T, f Fold, loop func(dsts, srcs [][]byte, by int, stream bool)) {
		t.Parallel()
		x, dst := pack(f.Type, all), aligned(2<<16)
		rng := rand.New(rand.NewPCG(5, 5))
		for by := 1; by <= 3; by++ {
			if (testing.Short() || raceEnabled) && by != 3 {
				continue
			}
			y, z := make([]uint64, len(all)), make([]uint64, len(all))
			for i := range y {
				y[i], z[i] = rng.Uint64()&0xffff, rng.Uint64()&0xffff
			}
			for _, srcs := range [][][]byte{{x}, {x, pack(f.Type, y)}, {x, pack(f.Type, y), pack(f.Type, z)}} {
				want := f.oracle(srcs, by)
				loop([][]byte{dst}, srcs, by, false)
				for i := range all {
					if got, want := load(f.Type, dst, i), load(f.Type, want, i); got != want {
						t.Fatalf("%d sources, by %d: %04x with %04x, %04x is %04x, want %04x",
							len(srcs), by, i, y[i], z[i], got, want)
					}
				}
			}
		}
	})
}

// TestFoldThere: which folds there are.
func TestFoldThere(t *testing.T) {
	for op := range Op(255) {
		for typ := range Type(255) {
			want := Binary(op, typ) != nil
			for _, wide := range []bool{false, true} {
				if got := (Fold{Op: op, Type: typ, Wide: wide}).Loop() != nil; got != want {
					t.Errorf("fold of %v %v, wide %v, is there: %v, want %v", op, typ, wide, got, want)
				}
				if got := (Fold{Op: op, Type: typ, Square: true, Wide: wide}).Loop() != nil; got != (want &&
					op == Add) {
					t.Errorf("fold of squares, %v %v, wide %v, is there: %v", op, typ, wide, got)
				}
			}
			if got := Many(op, typ) != nil; got != want {
				t.Errorf("Many(%v, %v) is there: %v, want %v", op, typ, got, want)
			}
		}
	}
}

// TestFoldShort: a shorter operand panics rather than being read or written past its end.
func TestFoldShort(t *testing.T) {
	for _, v := range versions {
		loop := v.fold[Fold{Op: Add, Type: Float32}.index()]
		for _, short := range []int{1, 2, 3} {
			b := [][]byte{aligned(64), aligned(64), aligned(64), aligned(64)}
			b[short] = aligned(128)[:60:128][:60:60]
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("version %s: operand %d is short and nothing happened", v.name, short)
					}
				}()
				loop(b[:2], b[2:], 1, false)
			}()
		}
	}
}

// TestFoldNoAllocation: a fold allocates nothing.
func TestFoldNoAllocation(t *testing.T) {
	eachFold(t, anyFold, func(t *testing.T, f Fold, loop func(dsts, srcs [][]byte, by int, stream bool)) {
		srcs, dsts := [][]byte{aligned(1000), aligned(1000), aligned(1000)}, [][]byte{aligned(1000), aligned(1000)}
		if n := testing.AllocsPerRun(5, func() { loop(dsts, srcs, 3, true) }); n != 0 {
			t.Errorf("%v allocations", n)
		}
	})
}

// TestCopy copies every length up to some lines' worth, from and to different offsets, both ways.
func TestCopy(t *testing.T) {
	const longest, guard = 700, 64
	src, room := aligned(longest+64), aligned(guard+longest+64+guard)
	for i := range src {
		src[i] = byte(i*7 + i>>8)
	}
	clean := bytes.Repeat([]byte{0xa5}, len(room))
	run := func(n, offset int, copyBytes func(dst, src []byte)) {
		start := guard + offset
		s, want := src[(offset*5+3)%32:][:n], bytes.Clone(clean)
		copy(want[start:], s)
		copy(room, clean)
		if copyBytes(room[start:start+n], s); !bytes.Equal(room, want) {
			t.Fatalf("%d bytes at offset %d are not right", n, offset)
		}
	}
	for n := range longest {
		for offset := n % 3; offset < 64; offset += 3 {
			for _, stream := range []bool{false, true} {
				run(n, offset, func(dst, src []byte) { Copy(dst, src, stream) })
			}
			for _, v := range versions {
				if v.stream != nil {
					run(n, offset, v.stream)
				}
			}
		}
	}
	big, back := mixed(Uint64, 1<<17, 1), aligned(8<<17)
	for _, stream := range []bool{false, true} {
		clear(back)
		if Copy(back, pack(Uint64, big), stream); !bytes.Equal(back, pack(Uint64, big)) {
			t.Errorf("1 MiB, stream %v: not right", stream)
		}
	}
}
