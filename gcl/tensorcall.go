package gcl

import (
	"context"
	"errors"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Do carries out any collective on one tensor, whose dtype need be known only when the program runs: AllReduceTo and
// its like without a type parameter. op is that of a collective that combines, else 0, and root that of one that has a
// root, else 0. The shapes are as in the collective on several tensors: see AllReduceTensorsTo and its like. dst is src
// itself or apart from it, or one is the rank's own place in the other, as on slices; what it holds after an error is
// unspecified. To members that call on slices it is the same call. It allocates nothing once a call like it has been
// made.
func (c *Comm) Do(ctx context.Context, collective schedule.Collective, dst, src *tensor.Tensor, op Operator,
	root int) error {
	if err := c.check(); err != nil {
		return err
	}
	k := call{ask: newAsk(collective, op, root)}
	if k.invalid = c.checkAsk(&k.ask); k.invalid == nil {
		k.invalid = c.checkTensors(&k.ask, dst, src)
	}
	if k.invalid == nil {
		k.tensors(dst, src)
	}
	return c.do(ctx, &k)
}

// tensors gives a call its two tensors, which have been checked.
func (k *call) tensors(dst, src *tensor.Tensor) {
	k.dtype, k.dst, k.src, k.dstLen, k.srcLen = src.DType(), dst.Bytes(), src.Bytes(), dst.Len(), src.Len()
	if src == nil {
		k.dtype = dst.DType()
	}
}

// checkTensors checks the two tensors of an operand. A tensor that does not count on this rank may be nil.
func (c *Comm) checkTensors(a *ask, dst, src *tensor.Tensor) error {
	if err := c.checkInput(a, src); err != nil {
		return errors.New("the input: " + err.Error())
	}
	switch {
	case dst == nil && a.Writes(c.Rank()):
		return errors.New("the destination: it is nil")
	case dst != nil && !dst.DType().Valid():
		return errors.New("the destination: it is the zero Tensor, which has no dtype")
	}
	return checkShapes(a.Collective, dst, src, c.Size())
}
