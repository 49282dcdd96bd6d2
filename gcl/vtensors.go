package gcl

import (
	"errors"
	"fmt"
	"math"

	"gogcl.dev/tensor"
)

// This file holds what Comm.Do and Batch.AppendTensorV check where there are counts. Counts are of rows, that is of a
// tensor's first dimension: a part of 3 of tensors of shape (n, a, b) has the shape (3, a, b). The other dimensions are
// the same in input and destination, and on all ranks. The rest is as with the ...V forms on slices, vforms.go.

// rowOf is the elements of a row of a call's tensors, of which one may be missing.
func rowOf(dst, src *tensor.Tensor) int {
	of := src
	if of == nil {
		of = dst
	}
	row := 1
	for i := 1; i < of.Rank(); i++ {
		d := of.Dim(i)
		if d > 0 && row > math.MaxInt/d {
			return math.MaxInt
		}
		row *= d
	}
	return row
}

// checkRows says what is wrong with a tensor, which may be nil, in a call by counts.
func checkRows(t *tensor.Tensor) error {
	switch {
	case t == nil:
		return nil
	case !t.DType().Valid():
		return errors.New("it is the zero Tensor, which has no dtype")
	case t.Rank() == 0:
		return errors.New("counts are of its first dimension, and it has none")
	}
	return nil
}

// checkInputV is checkInput of a call by counts.
func (c *Comm) checkInputV(a *ask, src *tensor.Tensor) error {
	if src == nil && !(a.Collective.Contract().Deals() && !a.Reads(c.Rank())) {
		return errors.New("it is nil")
	}
	return checkRows(src)
}

// checkShapesV refuses a destination of another dtype, or of other rows, than the input's. How many rows there are, the
// counts tell.
func checkShapesV(dst, src *tensor.Tensor) error {
	if err := checkRows(dst); err != nil {
		return fmt.Errorf("the destination: %w", err)
	}
	if dst == nil || src == nil || dst.DType() == src.DType() && dst.Rank() == src.Rank() && sameRows(dst, src) {
		return nil
	}
	want := src.Shape()
	return fmt.Errorf("the destination is %v of shape %v, want %v and, but for the first dimension, the shape %v", dst.DType(),
		dst.Shape(), src.DType(), want)
}

// sameRows reports whether the rows of two tensors with as many dimensions have one shape.
func sameRows(a, b *tensor.Tensor) bool {
	for i := 1; i < a.Rank(); i++ {
		if a.Dim(i) != b.Dim(i) {
			return false
		}
	}
	return true
}

// checkTensorsV is checkTensors of a call by counts.
func (c *Comm) checkTensorsV(a *ask, dst, src *tensor.Tensor) error {
	if err := c.checkInputV(a, src); err != nil {
		return fmt.Errorf("the input: %w", err)
	}
	if dst == nil && a.Writes(c.Rank()) {
		return errors.New("the destination: it is nil")
	}
	return checkShapesV(dst, src)
}

// tensorsByCounts gives a call its two tensors and its counts, unless they are wrong.
func (c *Comm) tensorsByCounts(k *call, dst, src *tensor.Tensor, lists [][]int) error {
	if err := c.checkAsk(&k.ask); err != nil {
		return err
	}
	n, err := countsOf(k.Collective, lists)
	if err != nil {
		return err
	}
	if err := c.checkTensorsV(&k.ask, dst, src); err != nil {
		return err
	}
	n.unit = rowOf(dst, src)
	k.tensors(dst, src)
	k.counts = n
	return nil
}
