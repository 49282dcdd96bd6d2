package ops

import (
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// bindWide binds an operation that is written for float32 and float64. It gets the memory with every tensor of 16-bit
// floats widened: inputs are converted before it runs, outputs after. Its scratch is what is left of that of wideBytes.
func bindWide(m *ir.Memory, f32, f64 func(m *ir.Memory) (func() error, error)) (func() error, error) {
	w, rest := *m, m.Scratch
	w.In, w.Out = slices.Clone(m.In), slices.Clone(m.Out)
	var before, after []conversion
	for k, list := range [][]*tensor.Tensor{w.In, w.Out} {
		for i, narrow := range list {
			switch t := narrow.DType(); {
			case t == tensor.F64:
				f32 = f64
			case t.Size() != 2 || !t.IsFloat():
			default:
				var wide *tensor.Tensor
				var err error
				if wide, rest, err = widened(narrow, rest); err != nil {
					return nil, err
				}
				list[i] = wide
				if k == 0 {
					before = append(before, conversion{kernel.Widen(kernel.Type(t)), wide.Bytes(), narrow.Bytes()})
				} else {
					after = append(after, conversion{kernel.Narrow(kernel.Type(t)), narrow.Bytes(), wide.Bytes()})
				}
			}
		}
	}
	w.Scratch = rest
	run, err := f32(&w)
	if err != nil || len(before)+len(after) == 0 {
		return run, err
	}
	return func() error {
		for i := range before {
			before[i].run()
		}
		if err := run(); err != nil {
			return err
		}
		for i := range after {
			after[i].run()
		}
		return nil
	}, nil
}

// conversion is between 16-bit floats and float32.
type conversion struct {
	convert  func(dst, src []byte)
	dst, src []byte
}

func (c *conversion) run() { c.convert(c.dst, c.src) }

// widened is memory for a tensor of 16-bit floats as float32, taken from scratch, of which it returns the rest.
func widened(t *tensor.Tensor, scratch []byte) (wide *tensor.Tensor, rest []byte, err error) {
	n := 4 * t.Len()
	wide, err = tensor.View(tensor.F32, t.Shape(), scratch[:n])
	return wide, scratch[kernel.Lines(n):], err
}

// wideBytes is how much scratch bindWide needs, of an operation with that rule of shapes.
func wideBytes(infer func(in []ir.Spec) ([]ir.Spec, error), in []ir.Spec) int {
	out, err := infer(in)
	if err != nil {
		return 0
	}
	bytes := 0
	for _, s := range slices.Concat(in, out) {
		if s.DType.IsFloat() && s.DType.Size() == 2 {
			bytes += kernel.Lines(4 * s.Elements())
		}
	}
	return bytes
}

// elementsOf is the memory of a tensor that is known to be of that type.
func elementsOf[T tensor.Element](t *tensor.Tensor) []T {
	s, err := tensor.Of[T](t)
	if err != nil {
		panic(err)
	}
	return s
}

// numberIn reads a scalar.
func numberIn[T number](t *tensor.Tensor) func() float64 {
	v := elementsOf[T](t)
	return func() float64 { return float64(v[0]) }
}

// checkIndices returns an error unless a spec is of a type that counts rows.
func checkIndices(what string, s ir.Spec) error {
	if s.DType != tensor.I32 && s.DType != tensor.U32 {
		return fmt.Errorf("%s of %v, want int32 or uint32", what, s.DType)
	}
	return nil
}

// indices are integers of either type that checkIndices allows.
type indices struct {
	signed   []int32
	unsigned []uint32
}

func indicesOf(t *tensor.Tensor) indices {
	if t.DType() == tensor.I32 {
		return indices{signed: elementsOf[int32](t)}
	}
	return indices{unsigned: elementsOf[uint32](t)}
}

func (x *indices) len() int { return len(x.signed) + len(x.unsigned) }

func (x *indices) at(i int) int64 {
	if x.signed != nil {
		return int64(x.signed[i])
	}
	return int64(x.unsigned[i])
}
