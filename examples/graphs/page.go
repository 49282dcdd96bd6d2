package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// page is what the examples print on. It counts what is not as it must be.
type page struct {
	w        io.Writer
	compared int
	wrong    int
}

// compare prints a result beside the expected one.
func (p *page) compare(what string, got, want any) {
	p.compared++
	verdict := "ok"
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.wrong++
		verdict = "WRONG"
	}
	fmt.Fprintf(p.w, "  %-24s %-27s expected %v: %s\n", what, fmt.Sprint(got), want, verdict)
}

// show prints a text of several lines.
func (p *page) show(text string) {
	for line := range strings.Lines(text) {
		fmt.Fprint(p.w, "  | ", line)
	}
}

// f32 is the spec of a tensor of float32.
func f32(shape ...int) ir.Spec { return ir.Spec{DType: tensor.F32, Shape: shape} }

// numbers is a tensor of the numbers from 1 on.
func numbers(shape ...int) *tensor.Tensor {
	return filled(func(i int) float32 { return float32(i + 1) }, shape)
}

// ones is a tensor of ones.
func ones(shape ...int) *tensor.Tensor { return filled(func(int) float32 { return 1 }, shape) }

// filled makes a tensor. The shapes of this program are right, so that there is no error to return.
func filled(element func(i int) float32, shape tensor.Shape) *tensor.Tensor {
	t, err := tensor.New(tensor.F32, shape...)
	if err != nil {
		panic(err)
	}
	data, err := tensor.Of[float32](t)
	if err != nil {
		panic(err)
	}
	for i := range data {
		data[i] = element(i)
	}
	return t
}

// runOnce makes a session of a program, runs it once, and closes it. An error in how the program is built comes out
// here.
func runOnce(ctx context.Context, p *ir.Program, in map[*ir.Stream]*tensor.Tensor) (out map[*ir.Stream]*tensor.Tensor,
	err error) {
	s, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	return s.Run(ctx, in)
}
