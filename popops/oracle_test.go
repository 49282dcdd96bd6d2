package popops_test

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/tensor"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError checks that err has a text.
func wantError(t *testing.T, name string, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%s: error %v, want one with %q", name, err, want)
	}
}

// offsetsTensor is offsets as a tensor of int32 or uint32.
func offsetsTensor[I int32 | uint32](t testing.TB, offsets []I, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(offsets[:len(offsets):len(offsets)], shape...)
	must(t, err)
	return x
}

// of is data as a tensor.
func of[T tensor.Element](t testing.TB, data []T, shape ...int) *tensor.Tensor {
	t.Helper()
	x, err := tensor.FromSlice(data, shape...)
	must(t, err)
	return x
}

// naive is a table that is sliced and updated by the definition: element by element, by coordinates. Elements are bits.
type naive struct {
	dtype tensor.DType
	shape []int // of one group
	dims  []int
	sizes []int
}

// load and store are element i of a tensor's bytes.
func load(t *tensor.Tensor, i int) uint64 {
	b := t.Bytes()
	switch t.DType().Size() {
	case 1:
		return uint64(b[i])
	case 2:
		return uint64(binary.NativeEndian.Uint16(b[2*i:]))
	case 4:
		return uint64(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return binary.NativeEndian.Uint64(b[8*i:])
}

func store(t *tensor.Tensor, i int, v uint64) {
	b := t.Bytes()
	switch t.DType().Size() {
	case 1:
		b[i] = byte(v)
	case 2:
		binary.NativeEndian.PutUint16(b[2*i:], uint16(v))
	case 4:
		binary.NativeEndian.PutUint32(b[4*i:], uint32(v))
	default:
		binary.NativeEndian.PutUint64(b[8*i:], v)
	}
}

// sliceShape is the shape of a slice.
func (o *naive) sliceShape() []int {
	s := append([]int(nil), o.shape...)
	for k, d := range o.dims {
		s[d] = o.sizes[k]
	}
	return s
}

func product(s []int) int {
	n := 1
	for _, x := range s {
		n *= x
	}
	return n
}

// elements is, for each element of a slice in its order, its number in the table; nil if an offset is out of range.
func (o *naive) elements(offsets []int64) []int {
	for k, d := range o.dims {
		if offsets[k] < 0 || offsets[k] >= int64(o.shape[d]) {
			return nil
		}
	}
	shape := o.sliceShape()
	all := make([]int, product(shape))
	for e := range all {
		at, rest, step := 0, e, 1
		for d, s := range slices.Backward(shape) {
			x := rest % s
			rest /= s
			for k := range o.dims {
				if o.dims[k] == d {
					x = (x + int(offsets[k])) % o.shape[d]
				}
			}
			at += x * step
			step *= o.shape[d]
		}
		all[e] = at
	}
	return all
}

// widened is a float of 16 bits.
func widened(dtype tensor.DType, v uint64) float32 {
	if dtype == tensor.F16 {
		return tensor.Float16(v).Float32()
	}
	return tensor.BFloat16(v).Float32()
}

func narrowed(dtype tensor.DType, f float32) uint64 {
	if f != f {
		f = math.Float32frombits(0x7fc00000)
	}
	if dtype == tensor.F16 {
		return uint64(tensor.Float16FromFloat32(f))
	}
	return uint64(tensor.BFloat16FromFloat32(f))
}

func is16(d tensor.DType) bool { return d == tensor.F16 || d == tensor.BF16 }

// nan32 and nan64 make a NaN canonical.
func nan32(f float32) uint64 {
	if f != f {
		return 0x7fc00000
	}
	return uint64(math.Float32bits(f))
}

func nan64(f float64) uint64 {
	if f != f {
		return 0x7ff8000000000000
	}
	return math.Float64bits(f)
}

// addScaled is a + scale * b, for other types than floats of 16 bits.
func addScaled(dtype tensor.DType, a, b, scale uint64) uint64 {
	switch dtype {
	case tensor.F32:
		p := math.Float32frombits(uint32(scale)) * math.Float32frombits(uint32(b))
		return nan32(math.Float32frombits(uint32(a)) + float32(p))
	case tensor.F64:
		p := math.Float64frombits(scale) * math.Float64frombits(b)
		return nan64(math.Float64frombits(a) + float64(p))
	}
	return (a + scale*b) & (math.MaxUint64 >> (64 - 8*dtype.Size()))
}

// greater is max(a, b).
func greater(dtype tensor.DType, a, b uint64) uint64 {
	shift := 64 - 8*dtype.Size()
	switch {
	case is16(dtype):
		return narrowed(dtype, max(widened(dtype, a), widened(dtype, b)))
	case dtype == tensor.F32:
		return nan32(max(math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))))
	case dtype == tensor.F64:
		return nan64(max(math.Float64frombits(a), math.Float64frombits(b)))
	case dtype.IsSigned():
		return uint64(max(int64(a<<shift), int64(b<<shift))) >> shift
	}
	return max(a, b)
}

// slices takes n slices of the table, the elements of which begin at table.
func (o *naive) slice(dst *tensor.Tensor, to int, t *tensor.Tensor, table int, offsets []int64) {
	for e, at := range o.elements(offsets) {
		store(dst, to+e, load(t, table+at))
	}
}

// add adds n slices. partial is the type of sums.
func (o *naive) add(t *tensor.Tensor, table int, s *tensor.Tensor, from int, offsets [][]int64, scale uint64, scaleType,
	partial tensor.DType) {
	each := product(o.sliceShape())
	wide := map[int]float32{}
	by := math.Float32frombits(uint32(scale))
	if is16(scaleType) {
		by = widened(scaleType, scale)
	}
	for i, offsets := range offsets {
		for e, at := range o.elements(offsets) {
			at += table
			b := load(s, from+i*each+e)
			switch {
			case !is16(o.dtype):
				store(t, at, addScaled(o.dtype, load(t, at), b, scale))
			case is16(partial):
				store(t, at, narrowed(o.dtype, widened(o.dtype, load(t, at))+float32(by*widened(o.dtype, b))))
			default:
				sum, ok := wide[at]
				if !ok {
					sum = widened(o.dtype, load(t, at))
				}
				wide[at] = sum + float32(by*widened(o.dtype, b))
			}
		}
	}
	for at, sum := range wide {
		store(t, at, narrowed(o.dtype, sum))
	}
}

// update writes n slices, or with maximum the greater elements.
func (o *naive) update(t *tensor.Tensor, table int, s *tensor.Tensor, from int, offsets [][]int64, maximum bool) {
	each := product(o.sliceShape())
	for i, offsets := range offsets {
		for e, at := range o.elements(offsets) {
			v := load(s, from+i*each+e)
			if maximum {
				v = greater(o.dtype, load(t, table+at), v)
			}
			store(t, table+at, v)
		}
	}
}
