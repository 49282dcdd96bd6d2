package gcl

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// NotFiniteError is what Options.CheckFinite has found on one replica: the first element, in order, that is NaN or
// infinite. Another replica of the same process has it in the chain of its error too; one of another process has its
// text.
type NotFiniteError struct {
	Replica int
	Result  bool // it is in the result; else in what the replica gave
	Tensor  int  // which of several tensors, operands, or IPUs of a mapping, from 0 on; of one tensor 0
	Element int  // in that tensor, from 0 on
	DType   tensor.DType
	Value   float64

	what string // the name of one of several, or ""
}

func (e *NotFiniteError) words() string {
	of, where := "the input", ""
	if e.Result {
		of = "the result"
	}
	if e.what != "" {
		where = fmt.Sprintf("%s %d: ", e.what, e.Tensor)
	}
	return fmt.Sprintf("%selement %d of %s, %v, is %v, not a finite number", where, e.Element, of, e.DType, e.Value)
}
func (e *NotFiniteError) Error() string { return "gcl: " + e.words() }

// performFinite carries out a job that has been checked, with Options.CheckFinite if that is set. What is not finite is
// a *NotFiniteError, of which no other replica knows.
func (c *Comm) performFinite(ctx context.Context, j *job.Job, f *transport.Call) error {
	look := c.options.CheckFinite && j.Combines()
	if look {
		if err := findNotFinite(j, j.Ins, false); err != nil {
			return err
		}
	}
	if err := c.caller.Perform(ctx, j, f); err != nil || !look {
		return err
	}
	return findNotFinite(j, j.Outs, true)
}

// findNotFinite looks at one side of all operands of a job.
func findNotFinite(j *job.Job, all [][]byte, result bool) error {
	for t, data := range all {
		dtype := j.DTypes[t]
		if i := kernel.NotFinite(kernel.Type(dtype), data); i >= 0 {
			return &NotFiniteError{Result: result, Tensor: t, Element: i, DType: dtype,
				Value: floatOf(dtype, data[i*dtype.Size():])}
		}
	}
	return nil
}

// floatOf is the first float in data.
func floatOf(dtype tensor.DType, data []byte) float64 {
	e := binary.NativeEndian
	switch dtype {
	case tensor.F16:
		return float64(tensor.Float16(e.Uint16(data)).Float32())
	case tensor.BF16:
		return float64(tensor.BFloat16(e.Uint16(data)).Float32())
	case tensor.F32:
		return float64(math.Float32frombits(e.Uint32(data)))
	}
	return math.Float64frombits(e.Uint64(data))
}
