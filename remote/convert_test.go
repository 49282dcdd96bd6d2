package remote_test

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
	"gogcl.dev/remote"
	"gogcl.dev/tensor"
)

// tensorOf is a tensor of one dimension.
func tensorOf[T tensor.Element](t *testing.T, v []T) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(v, len(v))
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// converted is what a variable with a DType begins with.
func converted(t *testing.T, data *tensor.Tensor, to tensor.DType) *tensor.Tensor {
	t.Helper()
	p := ir.New(1)
	b := remote.NewBuffer(p, ir.Spec{DType: to, Shape: data.Shape()}, 1)
	v := remote.NewVariable(p, data, b, 0, remote.DType(to))
	got, err := v.Read(session(t, p))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// halfway are numbers halfway between two floats of 16 or 32 bits, and such with a little more or less, which a second
// rounding takes for them.
func halfway(r *rand.Rand) (floats []float64, whole []int64) {
	for _, bits := range []int{8, 11, 24} {
		for range 200 {
			fraction := 1<<bits | r.Int64N(1<<bits) | 1 // of one bit too many
			for _, more := range []float64{0, 0x1p-30, -0x1p-30, 0x1p-40, -0x1p-40} {
				f := (float64(fraction) + math.Ldexp(more, bits)) * 0x1p-10
				if bits < 24 {
					f *= math.Ldexp(1, -r.IntN(12))
				}
				floats = append(floats, f, -f)
			}
			shift := r.IntN(62 - bits)
			for _, more := range []int64{0, 1, -1} {
				n := fraction<<shift + more
				whole = append(whole, n, -n)
			}
		}
	}
	return floats, whole
}

// TestDTypeIsCast: what DType makes of data has the bits that ops.Cast makes of it, where a float16 would round twice
// too.
func TestDTypeIsCast(t *testing.T) {
	floats, whole := halfway(rand.New(rand.NewPCG(4, 4)))
	var singles []float32
	var small []int32
	var counts []uint32
	for _, f := range floats {
		singles = append(singles, float32(f))
	}
	for _, n := range whole {
		small, counts = append(small, int32(n)), append(counts, uint32(n))
	}
	for _, data := range []*tensor.Tensor{tensorOf(t, floats), tensorOf(t, singles), tensorOf(t, small),
		tensorOf(t, counts), tensorOf(t, whole)} {
		for _, to := range []tensor.DType{tensor.F16, tensor.BF16, tensor.F32, tensor.F64} {
			data := data
			if to == tensor.F16 && !data.DType().IsFloat() { // an integer that float16 has not is an error of DType
				data = tensorOf(t, []int32{2049, 2050, 2051, -2051, 4098, 4099, 65519, 0})
			}
			t.Run(fmt.Sprintf("from=%v/to=%v", data.DType(), to), func(t *testing.T) {
				p := ir.New(1)
				out := p.DeviceToHost("out", ir.Spec{DType: to, Shape: data.Shape()})
				p.Main().HostStore(out, ops.Cast(p.Main().Constant(data), to))
				want := run(t, session(t, p), nil)[out]
				got := converted(t, data, to)
				size := to.Size()
				for i := range data.Len() {
					g, w := got.Bytes()[i*size:][:size], want.Bytes()[i*size:][:size]
					if !bytes.Equal(g, w) {
						t.Fatalf("element %d has the bytes %x, and ops.Cast makes %x of it", i, g, w)
					}
				}
			})
		}
	}
}

// TestDTypeRoundsOnce has what is known by hand.
func TestDTypeRoundsOnce(t *testing.T) {
	for i, c := range []struct{ data, want *tensor.Tensor }{
		{tensor.Scalar(1 + 0x1p-11 + 0x1p-40), tensor.Scalar(tensor.Float16(0x3c01))},
		{tensor.Scalar(-1 - 0x1p-11 - 0x1p-40), tensor.Scalar(tensor.Float16(0xbc01))},
		{tensor.Scalar(1 + 0x1p-11), tensor.Scalar(tensor.Float16(0x3c00))},
		{tensor.Scalar(1 + 0x1p-8 + 0x1p-40), tensor.Scalar(tensor.BFloat16(0x3f81))},
		{tensor.Scalar(1 + 0x1p-8), tensor.Scalar(tensor.BFloat16(0x3f80))},
		{tensor.Scalar(int64(1)<<60 + 1<<36 + 1), tensor.Scalar(float32(0x1p60 + 0x1p37))},
		{tensor.Scalar(int64(1)<<60 + 1<<52 + 1), tensor.Scalar(tensor.BFloat16(0x5d81))},
		{tensor.Scalar(uint64(1)<<63 + 1<<39 + 1), tensor.Scalar(float32(0x1p63 + 0x1p40))},
		{tensor.Scalar(uint64(math.MaxInt64)), tensor.Scalar(int64(math.MaxInt64))},
		{tensor.Scalar(int16(-129)), tensor.Scalar(tensor.BFloat16(0xc301))},
		{tensor.Scalar(math.Inf(1)), tensor.Scalar(tensor.Float16(0x7c00))},
	} {
		if got := converted(t, c.data, c.want.DType()); !got.Equal(c.want) {
			t.Errorf("case %d: %v of %v became %v, want %v", i, c.data, c.data.DType(), got, c.want)
		}
	}
}
