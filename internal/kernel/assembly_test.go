//go:build (amd64 || arm64) && !noasm

package kernel

import (
	"fmt"
	"testing"
	"unsafe"
)

// TestPieces counts the calls of assembly: none touches more than pieceTouched bytes, all together take everything
// once, and there are no more of them than need be.
func TestPieces(t *testing.T) {
	const size = 3<<20 + 4
	room := aligned(size)
	start := uintptr(unsafe.Pointer(unsafe.SliceData(room)))
	var calls, done int
	counted := func(t *testing.T, at *byte, n, operands int) {
		t.Helper()
		if got := int(uintptr(unsafe.Pointer(at)) - start); got != done {
			t.Fatalf("call %d begins at %d, want %d", calls, got, done)
		}
		if n*operands > pieceTouched {
			t.Fatalf("call %d touches %d bytes", calls, n*operands)
		}
		calls++
		done += n
	}
	finished := func(t *testing.T, want, operands int) {
		t.Helper()
		if most := size*operands/pieceTouched*3/2 + 2; done != want || calls > most {
			t.Fatalf("%d calls took %d bytes, want at most %d for %d", calls, done, most, want)
		}
		calls, done = 0, 0
	}
	for _, width := range []int{16, 32, 64} {
		a := &assembly{width: width}
		fill := a.fill(Float32)
		want := size &^ (fill - 1)
		nothing := func(dst, src []byte) {}

		binaryPieces(func(dst, _, _ *byte, n int) { counted(t, dst, n, 3) },
			func(dst, a, b []byte) {}, fill)(room, room, room)
		finished(t, want, 3)
		squarePieces(func(dst, _, _ *byte, n int) { counted(t, dst, n, 2) }, nothing, fill)(room, room)
		finished(t, want, 2)

		a.divide[Float32] = func(dst, _ *byte, n int, _ uint64) { counted(t, dst, n, 2) }
		a.dividePieces(Float32, func(dst, src []byte, by int) {})(room, room, 3)
		finished(t, want, 2)
		conversionPieces(func(dst, _ *byte, n int) { counted(t, dst, 4*n, 1) }, nothing, 4, 2, a.lanes())(room, room)
		finished(t, size&^(4*a.lanes()-1), 2)
		conversionPieces(func(dst, _ *byte, n int) { counted(t, dst, 2*n, 3) }, nothing, 2, 4, a.lanes())(
			room[:size/2], room)
		finished(t, size/2&^(2*a.lanes()-1), 2)
		streamPieces(func(dst, _ *byte, n int) { counted(t, dst, n, 2) })(room, room)
		finished(t, size&^255, 2)

		for _, operands := range []struct{ dsts, srcs int }{{1, 1}, {2, 2}, {8, 8}, {9, 17}, {1, 200}} {
			f := &foldAssembly{Fold: Fold{Op: Add, Type: Float32, Square: true}, streams: true, fill: fill,
				rest: func(_, _ [][]byte, _, _, _ int) {}}
			stream := false
			f.asm = func(dsts, srcs [][]byte, off, end int, _ uint64, flags int) {
				counted(t, &dsts[0][off], end-off, len(dsts)+len(srcs))
				if want := stream && toLine(dsts[0][off:]) == 0; flags&flagStream != 0 != want {
					t.Fatalf("from %d on: streams is %v, want %v", off, !want, want)
				}
			}
			dsts, srcs := make([][]byte, operands.dsts), make([][]byte, operands.srcs)
			for i := range dsts {
				dsts[i] = room
			}
			for i := range srcs {
				srcs[i] = room
			}
			f.loop(dsts, srcs, 1, false)
			finished(t, want, len(dsts)+len(srcs))
			stream = true
			f.loop(dsts, srcs, 1, true)
			finished(t, want, len(dsts)+len(srcs))
			stream, f.streams = false, false
			f.loop(dsts, srcs, 1, true)
			finished(t, want, len(dsts)+len(srcs))
		}
	}
}

// TestAssemblyComplete: every loop of the Go version has one in assembly, but for those that are left to Go on purpose.
func TestAssemblyComplete(t *testing.T) {
	for _, v := range versions[1:] {
		// There is no instruction for it, and to build it of others is no faster than Go's loop.
		quads := func(typ Type) bool { return v.name == "neon" && (typ == Int64 || typ == Uint64) }
		there := func(what string, got, inGo, left bool) {
			if want := inGo && !left; got != want {
				t.Errorf("version %s has %s: %v, want %v", v.name, what, got, want)
			}
		}
		plain := versions[0]
		for typ := range typeEnd {
			for op := range opEnd {
				there(fmt.Sprintf("%v of %v", op, typ), v.binary[op][typ] != nil, plain.binary[op][typ] != nil,
					op == Mul && quads(typ))
			}
			there(fmt.Sprintf("square of %v", typ), v.square[typ] != nil, plain.square[typ] != nil, quads(typ))
			there(fmt.Sprintf("divide of %v", typ), v.divide[typ] != nil, plain.divide[typ] != nil, false)
			there(fmt.Sprintf("widen of %v", typ), v.widen[typ] != nil, plain.widen[typ] != nil, false)
			there(fmt.Sprintf("narrow to %v", typ), v.narrow[typ] != nil, plain.narrow[typ] != nil, false)
			neon := v.name == "neon"
			for f := range functionEnd {
				there(fmt.Sprintf("function %d of %v", f, typ), v.function[f][typ] != nil,
					plain.function[f][typ] != nil, neon || f == Softplus)
			}
			there(fmt.Sprintf("gelu's slope of %v", typ), v.geluSlope[typ] != nil, plain.geluSlope[typ] != nil, neon)
			there(fmt.Sprintf("greatest of %v", typ), v.greatest[typ] != nil, plain.greatest[typ] != nil, neon)
			there(fmt.Sprintf("exponentials of %v", typ), v.shiftedExp[typ] != nil, plain.shiftedExp[typ] != nil,
				neon)
			there(fmt.Sprintf("scale of %v", typ), v.scale[typ] != nil, plain.scale[typ] != nil, neon)
			for u := range updateEnd {
				there(fmt.Sprintf("update %d of %v", u, typ), v.update[u][typ] != nil, plain.update[u][typ] != nil,
					neon)
			}
		}
		for _, f := range everyFold() {
			there(fmt.Sprintf("fold %v", f), v.fold[f.index()] != nil, plain.fold[f.index()] != nil,
				(f.Op == Mul || f.Square) && quads(f.Type))
		}
	}
}
