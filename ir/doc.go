// Package ir builds programs of tensors once, and runs them on every replica.
//
// A [Program] has a number of replicas and a main [Graph]. Plain functions on tensors add operations to the graph of
// their inputs: Add(x, MatMul(y, w)). [Program.CreateGraph] makes a graph that others call. A [Session] runs the main
// graph on every replica, each on a goroutine of its own with memory of its own; data goes in and out by streams, and
// stays in variables.
//
//	p := ir.New(1)
//	x := p.Main().HostLoad(p.HostToDevice("x", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{2, 2}}))
//	...
//
// # Errors
//
// Building does not fail at once: the first error sticks to the program, every tensor that depends on it is of no use,
// and NewSession returns it, with the operation, the shapes of its inputs, and the line of the caller's code.
//
// # Order
//
// Operations run in any order that respects the data: a tensor is made before it is read, and what changes one in place
// comes after all that were built before to read it and before all that were built after. Within [Graph.InSequence] they
// run in the order in which they were built.
package ir
