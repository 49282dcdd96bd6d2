package ops_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

func f32(shape ...int) ir.Spec { return spec(tensor.F32, shape...) }

func zeros(s ir.Spec) *tensor.Tensor {
	t, err := tensor.New(s.DType, s.Shape...)
	if err != nil {
		panic(err)
	}
	return t
}

// wantBuildError checks that building fails with all of these words, and that a session says so.
func wantBuildError(t *testing.T, in []ir.Spec, build irtest.Build, words ...string) {
	t.Helper()
	p := irtest.NewProgram(1, in, build)
	_, err := ir.NewSession(p.Program)
	wantWords(t, err, append(words, "_test.go:")...)
}

// wantRunError checks that a run fails with all of these words.
func wantRunError(t *testing.T, in []*tensor.Tensor, build irtest.Build, words ...string) {
	t.Helper()
	p := irtest.NewProgram(1, irtest.Specs(in), build)
	s, err := ir.NewSession(p.Program)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	give := map[*ir.Stream]*tensor.Tensor{}
	for i, x := range in {
		give[p.In[i]] = x
	}
	_, err = s.Run(context.Background(), give)
	wantWords(t, err, words...)
}

func wantWords(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error, want %q", words)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) || strings.Contains(err.Error(), "panic") {
			t.Errorf("error %q, want one with %q", err, w)
		}
	}
}

// slowArray is a tensor for second implementations: everything in float64.
type slowArray struct {
	shape []int
	v     []float64
}

func newSlowArray(shape ...int) *slowArray {
	n := 1
	for _, extent := range shape {
		n *= extent
	}
	return &slowArray{append([]int{}, shape...), make([]float64, n)}
}

// at is the element at a place.
func (a *slowArray) at(place ...int) *float64 {
	i := 0
	for d, k := range place {
		i = i*a.shape[d] + k
	}
	return &a.v[i]
}

// allPlaces lists all places of a shape in row-major order.
func allPlaces(shape []int) [][]int {
	out := [][]int{{}}
	for _, extent := range shape {
		var next [][]int
		for _, p := range out {
			for k := range extent {
				next = append(next, append(append([]int{}, p...), k))
			}
		}
		out = next
	}
	return out
}

// asFloats is the elements of a tensor as float64.
func asFloats(t *testing.T, x *tensor.Tensor) []float64 {
	t.Helper()
	out := make([]float64, x.Len())
	for i := range out {
		switch x.DType() {
		case tensor.F64:
			out[i] = viewOf[float64](t, x)[i]
		case tensor.F32:
			out[i] = float64(viewOf[float32](t, x)[i])
		case tensor.F16:
			out[i] = float64(viewOf[tensor.Float16](t, x)[i].Float32())
		case tensor.BF16:
			out[i] = float64(viewOf[tensor.BFloat16](t, x)[i].Float32())
		case tensor.I64:
			out[i] = float64(viewOf[int64](t, x)[i])
		case tensor.I32:
			out[i] = float64(viewOf[int32](t, x)[i])
		case tensor.U32:
			out[i] = float64(viewOf[uint32](t, x)[i])
		case tensor.U8:
			out[i] = float64(viewOf[uint8](t, x)[i])
		case tensor.Bool:
			if viewOf[bool](t, x)[i] {
				out[i] = 1
			}
		default:
			t.Fatalf("no values of %v", x.DType())
		}
	}
	return out
}

func viewOf[T tensor.Element](t *testing.T, x *tensor.Tensor) []T {
	t.Helper()
	s, err := tensor.Of[T](x)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// tensor is an array as a tensor, rounded once if at all.
func (a *slowArray) tensor(t *testing.T, d tensor.DType) *tensor.Tensor {
	t.Helper()
	x, err := tensor.New(d, a.shape...)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range a.v {
		switch d {
		case tensor.F64:
			viewOf[float64](t, x)[i] = v
		case tensor.F32:
			viewOf[float32](t, x)[i] = float32(v)
		case tensor.F16:
			viewOf[tensor.Float16](t, x)[i] = tensor.Float16FromFloat32(float32(v))
		case tensor.BF16:
			viewOf[tensor.BFloat16](t, x)[i] = tensor.BFloat16FromFloat32(float32(v))
		case tensor.I64:
			viewOf[int64](t, x)[i] = int64(v)
		case tensor.I32:
			viewOf[int32](t, x)[i] = int32(v)
		case tensor.U32:
			viewOf[uint32](t, x)[i] = uint32(v)
		case tensor.U8:
			viewOf[uint8](t, x)[i] = uint8(v)
		case tensor.Bool:
			viewOf[bool](t, x)[i] = v != 0
		default:
			t.Fatalf("no values of %v", d)
		}
	}
	return x
}

// dtypeTolerance is how far a result may be from one in float64, of a size of 1 or of its own.
func dtypeTolerance(d tensor.DType) float64 {
	switch d {
	case tensor.F64:
		return 1e-12
	case tensor.F32:
		return 4e-6
	case tensor.F16:
		return 1.01 / (1 << 10)
	case tensor.BF16:
		return 1.01 / (1 << 7)
	}
	return 0
}

// checkArray checks a tensor against a second implementation, within the tolerance of its type times a factor; 0 is
// exact.
func checkArray(t *testing.T, got *tensor.Tensor, want *slowArray, factor float64) {
	t.Helper()
	if !got.Shape().Equal(want.shape) {
		t.Errorf("shape %v, want %v", got.Shape(), want.shape)
		return
	}
	tol := factor * dtypeTolerance(got.DType())
	for i, v := range asFloats(t, got) {
		w := want.v[i]
		if math.IsNaN(v) && math.IsNaN(w) || v == w {
			continue
		}
		if !(math.Abs(v-w) <= tol*max(1, math.Abs(w))) {
			t.Errorf("element %d is %v, want %v (of %v %v)", i, v, w, got.DType(), got.Shape())
			return
		}
	}
}

var (
	floatDTypes  = []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64}
	numberDTypes = append([]tensor.DType{tensor.I32, tensor.I64, tensor.U32}, floatDTypes...)
	anyDTypes    = append([]tensor.DType{tensor.Bool, tensor.U8}, numberDTypes...)
)

// wholeNumbers is an array of small whole numbers that every type of the tests holds exactly, as it does sums of a few.
func wholeNumbers(r *rand.Rand, d tensor.DType, shape ...int) *slowArray {
	a := newSlowArray(shape...)
	for i := range a.v {
		switch {
		case d == tensor.Bool:
			a.v[i] = float64(r.IntN(2))
		case d.IsSigned():
			a.v[i] = float64(r.IntN(7) - 3)
		default:
			a.v[i] = float64(r.IntN(7))
		}
	}
	return a
}

// quarters is an array of quarters, which every float holds exactly.
func quarters(r *rand.Rand, shape ...int) *slowArray {
	a := newSlowArray(shape...)
	for i := range a.v {
		a.v[i] = float64(r.IntN(25)-12) / 4
	}
	return a
}

// someShape makes a random shape of so many dimensions, some of none or one place.
func someShape(r *rand.Rand, rank, most int) []int {
	s := make([]int, rank)
	for d := range s {
		s[d] = 1 + r.IntN(most)
		if r.IntN(12) == 0 {
			s[d] = 0
		}
	}
	return s
}

// forTypes runs a test of an operation for each type, with a source of randomness that depends on nothing else.
func forTypes(t *testing.T, types []tensor.DType, f func(t *testing.T, d tensor.DType, r *rand.Rand)) {
	for _, d := range types {
		t.Run(fmt.Sprintf("dtype=%v", d), func(t *testing.T) { f(t, d, rand.New(rand.NewPCG(1, uint64(d)))) })
	}
}

// benchmarkOps runs operations on ones and reports how many of the given operations on numbers are done in a second.
func benchmarkOps(b *testing.B, flops int, in []ir.Spec, build irtest.Build) {
	p := irtest.NewProgram(1, in, build)
	s, err := ir.NewSession(p.Program)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	give, take := map[*ir.Stream]*tensor.Tensor{}, map[*ir.Stream]*tensor.Tensor{}
	for i, stream := range append(slices.Clone(p.In), p.Out...) {
		h := s.HostSpec(stream)
		x, err := tensor.New(h.DType, h.Shape...)
		if err != nil {
			b.Fatal(err)
		}
		if i >= len(p.In) {
			take[stream] = x
			continue
		}
		if ones, err := tensor.Of[float32](x); err == nil {
			for k := range ones {
				ones[k] = 1
			}
		}
		give[stream] = x
	}
	ctx := context.Background()
	b.ReportAllocs()
	err = s.Within(func() error {
		for b.Loop() {
			if err := s.RunTo(ctx, take, give); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gflop/s")
}
