package gcl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// TestOperatorRows checks each row of the table against the loops.
func TestOperatorRows(t *testing.T) {
	for op := range numOperators {
		row := op.row()
		if row.name == "" || row.accepts.has == nil || row.Square && row.Divide {
			t.Errorf("%d: the row %+v", op, row)
			continue
		}
		for _, d := range append(tensor.DTypes(), 0, 99) {
			accepts, of := op.Accepts(d) == nil, kernel.Type(d)
			if accepts && !d.Valid() {
				t.Errorf("%v accepts %v", op, d)
			}
			if !accepts || !op.Combines() {
				continue
			}
			switch {
			case kernel.Binary(row.Fold, of) == nil,
				kernel.Fold{Op: row.Fold, Type: of, Square: row.Square}.Loop() == nil:
				t.Errorf("%v takes %v, which has no loop", op, d)
			case row.Square && kernel.Square(of) == nil:
				t.Errorf("%v takes %v, which has no square", op, d)
			case row.Divide && kernel.Divide(of) == nil:
				t.Errorf("%v takes %v, which has no division", op, d)
			}
		}
	}
	if none := Operator(255); none.Combines() || none.Squares() || none.Divides() {
		t.Error("what is no operator does something")
	}
}

// TestAgain combines an input a second time: the result stays as it is where the row says so, and only there.
func TestAgain(t *testing.T) {
	for op := range numOperators {
		row := op.row()
		if !op.Combines() {
			continue
		}
		d := tensor.U8
		if op.Accepts(d) != nil {
			d = tensor.Bool
		}
		if op.Accepts(d) != nil {
			d = tensor.F32
		}
		changed := false
		for a := range byte(2) {
			for b := range byte(2) {
				x, y := bytes.Repeat([]byte{a}, d.Size()), bytes.Repeat([]byte{b}, d.Size())
				if d != tensor.Bool {
					x[d.Size()-1], y[d.Size()-1] = 64+2*a, 64+2*b // the high byte of a float of 2 or more
				}
				once, twice := make([]byte, d.Size()), make([]byte, d.Size())
				combine := kernel.Binary(row.Fold, kernel.Type(d))
				combine(once, x, y)
				combine(twice, once, y)
				changed = changed || !bytes.Equal(once, twice)
			}
		}
		if changed == row.again {
			t.Errorf("%v of %v: an input that counts twice changes the result: %v; again is %v",
				op, d, changed, row.again)
		}
	}
}

// TestOperatorHash: name, type and properties tell operators of programs apart, and what number they have does not.
func TestOperatorHash(t *testing.T) {
	seen := map[uint64]string{}
	for _, name := range []string{"a", "b", "ab", "ba", "a_"} {
		for _, d := range tensor.DTypes() {
			for property := range 4 {
				what := fmt.Sprint(name, d, property)
				h := operatorHash(name, d, property&1 == 0, property&2 == 0)
				if h == 0 || seen[h] != "" || h != operatorHash(name, d, property&1 == 0, property&2 == 0) {
					t.Errorf("%s has the hash %#x, as %q", what, h, seen[h])
				}
				seen[h] = what
			}
		}
	}
	row := operatorRow{name: "elsewhere", own: 5 << 57}
	if number, digest := (&row).agreed(Add, 7); number != wire.OwnOperator|5 || digest == 7 {
		t.Errorf("%#x beside %d", number, digest)
	}
	if name := operatorName(wire.OwnOperator | 127); !strings.Contains(name, "of its own") {
		t.Errorf("an operator of another process alone: %s", name)
	}
}

// TestLoopOf: bytes at any address are combined as those at a good one, and any byte of a bool that is not 0 is true.
func TestLoopOf(t *testing.T) {
	sub := loopOf(func(dst, a, b []uint32) {
		for i := range dst {
			dst[i] = a[i] - b[i]
		}
	})
	const n = 3000 // more than a piece
	a, b := make([]uint32, n), make([]uint32, n)
	for i := range a {
		a[i], b[i] = uint32(i*i), uint32(7*i)
	}
	for at := range 4 {
		dst := make([]byte, 4*n+8)
		x, y := append(make([]byte, at), tensor.Bytes(a)...)[at:], append(make([]byte, 3-at), tensor.Bytes(b)...)[3-at:]
		sub(dst[at:4*n+at], x, y)
		for i := range n {
			if got := binary.NativeEndian.Uint32(dst[at+4*i:]); got != a[i]-b[i] {
				t.Fatalf("%d past: element %d is %d, want %d", at, i, got, a[i]-b[i])
			}
		}
	}
	and := loopOf(func(dst, a, b []bool) {
		for i := range dst {
			dst[i] = a[i] && b[i]
		}
	})
	dst := []byte{9, 9, 9}
	and(dst, []byte{2, 1, 0}, []byte{1, 255, 3})
	if !bytes.Equal(dst, []byte{1, 1, 0}) {
		t.Errorf("bools: %v", dst)
	}
}
