// Package ops has the operations that programs of package ir are built of: each is a function on tensors, which adds an
// operation to the graph of its inputs.
//
//	y := ops.Add(ops.MatMul(x, w), b)
//
// An operation has the same bits on every machine but where it is said of [MatMul]. Every NaN that is computed is the
// canonical one.
//
// A function is one place in this package: a row, with the rule of its shapes, its memory, its computation and its
// gradient. Operations of other packages implement [gogcl.dev/ir.Op].
package ops
