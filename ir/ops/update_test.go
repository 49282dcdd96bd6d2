package ops_test

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/tensor"
)

// TestUpdates holds the changes in place against one element after the other.
func TestUpdates(t *testing.T) {
	r := rand.New(rand.NewPCG(21, 22))
	const factor = 3
	for _, d := range append([]tensor.DType{tensor.Bool, tensor.I8}, numbers...) {
		for _, shape := range []tensor.Shape{{}, {0}, {7}, {3, 5}, {2500}} {
			x, _ := tensor.New(d, shape...)
			y, _ := tensor.New(d, shape...)
			if d != tensor.I8 {
				x, y = random(r, d, shape...), random(r, d, shape...)
			}
			got, err := compute(func(in []*ir.Tensor) (out []*ir.Tensor) {
				out = append(out, ops.CopyInto(in[0], in[1]))
				if d.IsNumber() && d != tensor.I8 {
					out = append(out, ops.Accumulate(in[2], in[1]), ops.ScaledAdd(in[3], in[1], factor))
				}
				return out
			}, x, y, x, x)
			if err != nil {
				t.Fatal(err)
			}
			same(t, "copy into", got[0], y)
			if len(got) == 1 {
				continue
			}
			same(t, "accumulate", got[1], naive(d, shape, binaryOps[0].of(d), x, y))
			same(t, "scaled add", got[2], naive(d, shape, func(v []value) value {
				switch {
				case d == tensor.F64:
					return value{f: v[0].f + float64(factor*v[1].f)}
				case d.IsFloat():
					return value{f: float64(float32(v[0].f) + float32(factor*float32(v[1].f)))}
				}
				return value{i: v[0].i + factor*v[1].i}
			}, x, y))
		}
	}
}

// TestUpdateInPlace has a variable changed, by itself too, and what was built to read it before and after.
func TestUpdateInPlace(t *testing.T) {
	data, _ := tensor.FromSlice([]float32{1, 2})
	p := ir.New(1)
	v := p.Variable(data, ir.VariableName("v"))
	var streams []*ir.Stream
	store := func(x *ir.Tensor) {
		s := p.DeviceToHost("out", x.Spec())
		p.Main().HostStore(s, x)
		streams = append(streams, s)
	}
	before := ops.AddScalar(v.Tensor, 0)
	twice := ops.Accumulate(v.Tensor, v.Tensor)
	after := ops.AddScalar(twice, 0)
	five := ops.ScaledAdd(twice, twice, 1.5)
	store(before)
	store(after)
	store(five)
	s, err := ir.NewSession(p)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got, err := s.Run(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float32{{1, 2}, {2, 4}, {5, 10}} {
		w, _ := tensor.FromSlice(want)
		same(t, "store", got[streams[i]], w)
	}
	value, err := s.Read(v)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "variable", value, got[streams[2]])
}

// TestScaledAddRoundsOnce has a factor and a product that float16 cannot hold, and a sum that tells: 1 + 2048.5 lies
// nearer to 2050 than to 2048. Were factor or product rounded to float16, it would be 2049, a tie, and 2048 even.
func TestScaledAddRoundsOnce(t *testing.T) {
	x, _ := tensor.FromSlice([]tensor.Float16{tensor.Float16FromFloat32(1)})
	y, _ := tensor.FromSlice([]tensor.Float16{tensor.Float16FromFloat32(1024)})
	const factor = 2 + 0x1p-11
	got, err := compute(func(in []*ir.Tensor) []*ir.Tensor {
		return []*ir.Tensor{ops.ScaledAdd(in[0], in[1], factor)}
	}, x, y)
	if err != nil {
		t.Fatal(err)
	}
	if v := at(got[0], 0).f; v != 2050 {
		t.Errorf("%v, want 2050", v)
	}
}

func TestUpdateFailures(t *testing.T) {
	type build = func(in []*ir.Tensor) *ir.Tensor
	var all []failure
	for name, b := range map[string]build{
		"copy into":  func(in []*ir.Tensor) *ir.Tensor { return ops.CopyInto(here(in)[0], in[1]) },
		"accumulate": func(in []*ir.Tensor) *ir.Tensor { return ops.Accumulate(here(in)[0], in[1]) },
		"scaled add": func(in []*ir.Tensor) *ir.Tensor { return ops.ScaledAdd(here(in)[0], in[1], 0.5) },
	} {
		all = append(all,
			failure{name, []ir.Spec{spec(tensor.F32, 2, 3), spec(tensor.F32, 3)}, b, "float32 (3,) into float32 (2, " +
				"3), want the same shape and element type"},
			failure{name, []ir.Spec{spec(tensor.F32, 3), spec(tensor.F64, 3)}, b, "float64 (3,) into float32 (3,), " +
				"want the same shape and element type"})
		if name != "copy into" {
			all = append(all, failure{name, []ir.Spec{spec(tensor.Bool), spec(tensor.Bool)}, b,
				"element type bool, want float16, bfloat16, float32, float64, int32, int64 or uint32"})
		}
	}
	scaled := func(factor float64) build {
		return func(in []*ir.Tensor) *ir.Tensor { return ops.ScaledAdd(here(in)[0], in[1], factor) }
	}
	all = append(all,
		failure{"scaled add", []ir.Spec{spec(tensor.I32), spec(tensor.I32)}, scaled(0.5),
			"the number 0.5, want one that int32 can hold"},
		failure{"scaled add", []ir.Spec{spec(tensor.F16), spec(tensor.F16)}, scaled(1e39),
			"the number 1e+39, want one that float32 can hold: it would become infinite"})
	checkFailures(t, all)
}

// TestUpdateOfConstant has a constant changed in place, which cannot be.
func TestUpdateOfConstant(t *testing.T) {
	for _, update := range []func(dst, x *ir.Tensor) *ir.Tensor{
		ops.CopyInto, ops.Accumulate, func(dst, x *ir.Tensor) *ir.Tensor { return ops.ScaledAdd(dst, x, 2) },
	} {
		p := ir.New(1)
		c := p.Main().Constant(tensor.Scalar(float32(1)))
		update(c, c)
		if err := p.Err(); err == nil || !strings.Contains(err.Error(), "is a constant") {
			t.Errorf("error %v, want one that there is a constant", err)
		}
	}
}
