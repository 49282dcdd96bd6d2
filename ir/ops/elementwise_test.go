package ops_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

var (
	floats  = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}
	numbers = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64, tensor.I32, tensor.I64, tensor.U32}
)

// compute builds a program of one replica that loads the inputs and stores what build returns, runs it twice, and
// returns what the second run has stored.
func compute(build func(in []*ir.Tensor) []*ir.Tensor, inputs ...*tensor.Tensor) ([]*tensor.Tensor, error) {
	p := ir.New(1)
	feed := map[*ir.Stream]*tensor.Tensor{}
	var in []*ir.Tensor
	for i, x := range inputs {
		s := p.HostToDevice(fmt.Sprint("input ", i), ir.SpecOf(x))
		feed[s] = x
		in = append(in, p.Main().HostLoad(s))
	}
	var streams []*ir.Stream
	for i, x := range build(in) {
		s := p.DeviceToHost(fmt.Sprint("output ", i), x.Spec())
		p.Main().HostStore(s, x)
		streams = append(streams, s)
	}
	s, err := ir.NewSession(p)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var got map[*ir.Stream]*tensor.Tensor
	for range 2 {
		if got, err = s.Run(context.Background(), feed); err != nil {
			return nil, err
		}
	}
	var out []*tensor.Tensor
	for _, stream := range streams {
		out = append(out, got[stream])
	}
	return out, nil
}

// value is an element as numbers that can hold it: all but large int64 as a float64.
type value struct {
	f float64
	i int64 // of int64
}

// at is element i of a tensor.
func at(x *tensor.Tensor, i int) value {
	switch x.DType() {
	case tensor.Bool:
		return value{i: int64(x.Bytes()[i]), f: float64(x.Bytes()[i])}
	case tensor.F16:
		return value{f: float64(of[tensor.Float16](x)[i].Float32())}
	case tensor.BF16:
		return value{f: float64(of[tensor.BFloat16](x)[i].Float32())}
	case tensor.F32:
		return value{f: float64(of[float32](x)[i])}
	case tensor.F64:
		return value{f: of[float64](x)[i]}
	case tensor.I32:
		return value{f: float64(of[int32](x)[i]), i: int64(of[int32](x)[i])}
	case tensor.U32:
		return value{f: float64(of[uint32](x)[i]), i: int64(of[uint32](x)[i])}
	}
	return value{f: float64(of[int64](x)[i]), i: of[int64](x)[i]}
}

// set stores a value as element i. Floats are rounded: to float32 first, which is what is computed in.
func set(x *tensor.Tensor, i int, v value) {
	switch x.DType() {
	case tensor.Bool:
		x.Bytes()[i] = byte(v.i)
	case tensor.F16:
		of[tensor.Float16](x)[i] = tensor.Float16FromFloat32(float32(v.f))
		if v.f != v.f {
			of[tensor.Float16](x)[i] = 0x7e00
		}
	case tensor.BF16:
		of[tensor.BFloat16](x)[i] = tensor.BFloat16FromFloat32(float32(v.f))
		if v.f != v.f {
			of[tensor.BFloat16](x)[i] = 0x7fc0
		}
	case tensor.F32:
		of[float32](x)[i] = float32(v.f)
		if v.f != v.f {
			of[float32](x)[i] = math.Float32frombits(0x7fc00000)
		}
	case tensor.F64:
		of[float64](x)[i] = v.f
		if v.f != v.f {
			of[float64](x)[i] = math.Float64frombits(0x7ff8000000000000)
		}
	case tensor.I32:
		of[int32](x)[i] = int32(v.i)
	case tensor.U32:
		of[uint32](x)[i] = uint32(v.i)
	default:
		of[int64](x)[i] = v.i
	}
}

func of[T tensor.Element](x *tensor.Tensor) []T {
	out, err := tensor.Of[T](x)
	if err != nil {
		panic(err)
	}
	return out
}

// random is a tensor of all kinds of values.
func random(r *rand.Rand, d tensor.DType, shape ...int) *tensor.Tensor {
	x, err := tensor.New(d, shape...)
	if err != nil {
		panic(err)
	}
	special := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), math.NaN(), 65504, 1e-7}
	for i := range x.Len() {
		v := value{f: r.NormFloat64() * 10, i: int64(r.IntN(20)) - 10}
		if r.IntN(8) == 0 {
			v = value{f: special[r.IntN(len(special))], i: int64(r.Uint64())}
		}
		if d == tensor.Bool {
			v.i &= 1
		}
		set(x, i, v)
	}
	return x
}

// change is a tensor with its elements changed.
func change(x *tensor.Tensor, f func(v value) value) *tensor.Tensor {
	for i := range x.Len() {
		set(x, i, f(at(x, i)))
	}
	return x
}

// randomShapes is n shapes that can be broadcast together.
func randomShapes(r *rand.Rand, n int) (shapes []tensor.Shape) {
	extents := []int{1, 2, 3, 5, 17}
	full := make(tensor.Shape, r.IntN(5))
	for i := range full {
		full[i] = extents[r.IntN(len(extents))]
	}
	if len(full) > 0 {
		switch r.IntN(6) {
		case 0:
			full[r.IntN(len(full))] = 0
		case 1:
			full = tensor.Shape{r.IntN(3) + 1, 1030}
		case 2:
			full = tensor.Shape{1030, r.IntN(3) + 1}
		}
	}
	for range n {
		s := full.Clone()
		for i := range s {
			if r.IntN(3) == 0 {
				s[i] = 1
			}
		}
		if r.IntN(3) == 0 {
			s = s[r.IntN(len(s)+1):]
		}
		shapes = append(shapes, s)
	}
	return shapes
}

// broadcastShape is the shape of tensors that go together.
func broadcastShape(shapes ...tensor.Shape) tensor.Shape {
	var out tensor.Shape
	for _, s := range shapes {
		for len(out) < len(s) {
			out = append(tensor.Shape{1}, out...)
		}
		for i, n := range s {
			if k := len(out) - len(s) + i; out[k] == 1 {
				out[k] = n
			}
		}
	}
	return out
}

// indexIn is which element of a tensor of one shape stands for element i of the shape that it is broadcast to.
func indexIn(from, to tensor.Shape, i int) int {
	at, stride := 0, 1
	for d, t := range slices.Backward(to) {
		k := i % t
		i /= t
		if e := d - (len(to) - len(from)); e >= 0 {
			if from[e] != 1 {
				at += k * stride
			}
			stride *= from[e]
		}
	}
	return at
}

// naive is what f makes of each element of tensors that are broadcast.
func naive(d tensor.DType, shape tensor.Shape, f func(v []value) value, in ...*tensor.Tensor) *tensor.Tensor {
	out, err := tensor.New(d, shape...)
	if err != nil {
		panic(err)
	}
	for i := range out.Len() {
		var v []value
		for _, x := range in {
			v = append(v, at(x, indexIn(x.Shape(), shape, i)))
		}
		set(out, i, f(v))
	}
	return out
}

// same reports the first element in which two tensors differ by a bit.
func same(t *testing.T, what string, got, want *tensor.Tensor) {
	t.Helper()
	if got.DType() != want.DType() || !got.Shape().Equal(want.Shape()) {
		t.Fatalf("%s: %v, want %v", what, ir.SpecOf(got), ir.SpecOf(want))
	}
	size := got.DType().Size()
	for i := range got.Len() {
		if a, b := got.Bytes()[i*size:(i+1)*size], want.Bytes()[i*size:(i+1)*size]; string(a) != string(b) {
			t.Fatalf("%s: element %d of %v is %x (%v), want %x (%v)",
				what, i, got.Shape(), a, at(got, i), b, at(want, i))
		}
	}
}

// line is where an operation is built that is to fail.
var line int

// here notes the caller's line and returns its argument.
func here(x []*ir.Tensor) []*ir.Tensor {
	_, _, line, _ = runtime.Caller(1)
	return x
}

// failure is an error of building: of what, and how it reads. build calls here on the line of the operation.
type failure struct {
	op     string
	inputs []ir.Spec
	build  func(in []*ir.Tensor) *ir.Tensor
	want   string // what the error ends in
}

// checkFailures holds the errors of building against what they are to be.
func checkFailures(t *testing.T, failures []failure) {
	t.Helper()
	_, file, _, _ := runtime.Caller(1)
	for _, f := range failures {
		var in []*tensor.Tensor
		for _, s := range f.inputs {
			x, err := tensor.New(s.DType, s.Shape...)
			if err != nil {
				t.Fatal(err)
			}
			in = append(in, x)
		}
		_, err := compute(func(in []*ir.Tensor) []*ir.Tensor {
			out := f.build(in)
			if out == nil {
				t.Fatalf("%s: a nil tensor", f.op)
			}
			return nil
		}, in...)
		var e *ir.BuildError
		if !errors.As(err, &e) {
			t.Errorf("%s of %v: error %v, want one that ends in %q", f.op, f.inputs, err, f.want)
			continue
		}
		text, _, _ := strings.Cut(err.Error(), "; called at ")
		if e.Op != f.op || e.Position.File != file || e.Position.Line != line ||
			!strings.HasSuffix(text, ": "+f.want) {
			t.Errorf("%s of %v: error %q, want one of %s at %s:%d that ends in %q",
				f.op, f.inputs, err, f.op, path.Base(file), line, f.want)
		}
		for _, s := range f.inputs {
			if !strings.Contains(err.Error(), s.String()) {
				t.Errorf("%s: error %q does not say %v", f.op, err, s)
			}
		}
	}
}

func spec(d tensor.DType, shape ...int) ir.Spec { return ir.Spec{DType: d, Shape: shape} }
