package gcl

import (
	"bytes"
	"testing"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// TestOperatorRows checks each row of the table against the loops.
func TestOperatorRows(t *testing.T) {
	for op := range numOperators {
		row := &operators[op]
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
	if numOperators.Combines() || numOperators.Squares() || numOperators.Divides() {
		t.Error("what is no operator does something")
	}
}

// TestAgain combines an input a second time: the result stays as it is where the row says so, and only there.
func TestAgain(t *testing.T) {
	for op := range numOperators {
		row := &operators[op]
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
