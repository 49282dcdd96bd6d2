package ir

import (
	"errors"
	"slices"

	"gogcl.dev/tensor"
)

// What is built on nothing (a nil or zero Program, Graph or Tensor) is built in a program of its own, whose error says
// so; no other program can use it.

var errNoProgram = errors.New("ir: no program: it was built on a Program, Graph or Tensor that is nil or zero")

func noProgram() *Program {
	p := New(1)
	p.fail(errNoProgram)
	return p
}

// orNone is the program, or one that stands for none.
func (p *Program) orNone() *Program {
	if p == nil || p.main == nil {
		return noProgram()
	}
	return p
}

// orNone is the graph, or one that stands for none.
func (g *Graph) orNone() *Graph {
	if g == nil || g.program == nil {
		return noProgram().main
	}
	return g
}

// orNone is what is known of a call, or of none.
func (c *CallInfo) orNone() *CallInfo {
	if c == nil || c.parent == nil {
		return &CallInfo{what: "call", parent: noProgram().main}
	}
	return c
}

// noTensor is a tensor that stands for an error which no program knows of.
func noTensor() *Tensor { return &Tensor{bad: true} }

// failed reports whether the tensor stands for an error, or is no tensor of a program.
func (t *Tensor) failed() bool { return t.bad || t.graph == nil || t.graph.program == nil }

// standInRank is the number of dimensions that a tensor which stands for an error shows: more than models have.
const standInRank = 8

// standIn is the shape of a tensor that stands for an error. Code that goes on building asks for extents, divides by
// them, counts to them and takes the last; with one element in each of many dimensions it comes to its end, where the
// error is reported. Nothing can be built of the tensor, so that no other shape comes of it.
func standIn() tensor.Shape { return slices.Repeat(tensor.Shape{1}, standInRank) }

// brokenOutputs are tensors that stand for an error in the place of a graph's outputs: as many as there are or, of a
// graph that is none or has failed, more than anyone takes.
func (g *Graph) brokenOutputs(called *Graph) []*Tensor {
	n := standInRank
	if called != nil && called.program != nil && !called.broke {
		n = len(called.outputs)
	}
	var out []*Tensor
	for range n {
		out = append(out, g.broken())
	}
	return out
}

// whole calls a function that builds. One that panics after an error has stuck is taken to have fallen over what the
// error left behind: the error is what there is to report, and whole returns false. Any other panic is the caller's.
func (p *Program) whole(build func()) (whole bool) {
	defer func() {
		if p.err != nil {
			_ = recover() // nothing, if there is no panic
		}
	}()
	build()
	return true
}
