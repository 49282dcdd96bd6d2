package gcl

import (
	"context"
	"errors"

	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Do carries out any collective on one tensor, whose dtype need be known only when the program runs: AllReduceTo and
// its like without a type parameter. op is that of a collective that combines, else 0, and root that of one that has a
// root, else 0. dst is src itself or apart from it, or one is the rank's own place in the other, as on slices; what it
// holds after an error is unspecified. To members that call on slices it is the same call. It allocates nothing once a
// call like it has been made. Shapes, in a group of G:
//
//	collective               src        dst
//	AllReduce, Reduce        S          S, at the root
//	Broadcast                S          S
//	ReduceScatter            (n)        (ceil(n/G))
//	AllGather, Gather        S          (G, S...), at the root
//	Scatter                  (G, S...)  S; src at the root
//	AllToAll                 (G, S...)  (G, S...)
//
// A tensor that does not count on this rank may be nil.
//
// With counts it is the ...V form of an all-gather, a reduce-scatter, a gather, a scatter or an all-to-all. There is
// one list of counts, by rank; of an all-to-all there are two: those sent, and those received. Counts are of the first
// dimension of the tensors, which have the others alike. A collective without parts, another number of lists, counts
// that are not those of the shapes (any go with rows of no elements), and tensors without a dimension or of other rows
// or dtypes are errors, and nothing has been sent.
func (c *Comm) Do(ctx context.Context, collective schedule.Collective, dst, src *tensor.Tensor, op Operator, root int,
	counts ...[]int) error {
	if err := c.check(); err != nil {
		return err
	}
	k := call{ask: newAsk(collective, op, root)}
	if len(counts) > 0 {
		k.invalid = c.tensorsByCounts(&k, dst, src, counts)
	} else {
		k.invalid = c.tensorsOf(&k, dst, src)
	}
	return c.do(ctx, &k)
}

// tensorsOf gives a call its two tensors, unless they are wrong.
func (c *Comm) tensorsOf(k *call, dst, src *tensor.Tensor) error {
	k.tensors(dst, src) // which a call that is refused tells of, too
	if err := c.checkAsk(&k.ask); err != nil {
		return err
	}
	return c.checkTensors(&k.ask, dst, src)
}

// tensors gives a call its two tensors.
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
