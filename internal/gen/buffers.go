package main

import (
	"errors"
	"fmt"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// buffers is the memory of one operand at one rank.
type buffers struct {
	all      []byte // with a border of garbage all round
	src, dst []byte
	dstAt    int
	isNil    [2]bool // source, destination
	opened   bool    // all is from gcl.Alloc
}

// garbage is byte i of what buffers hold before they are written: a value of the type.
func garbage(d tensor.DType, i int) byte {
	if d == tensor.Bool {
		return byte(i>>1) & 1
	}
	return 0xa5
}

// alloced reports whether a rank has the buffers of operand t from gcl.Alloc: all ranks do, none or some, by the call.
func (c *call) alloced(t, rank int) bool {
	switch mix(c.id, 7) % 3 {
	case 0:
		return true
	case 1:
		return false
	}
	return mix(c.id, 8, uint64(t), uint64(rank))%2 == 0
}

// memory is n bytes, from gcl.Alloc or not.
func memory(cm *gcl.Comm, n int, alloced bool) ([]byte, error) {
	if alloced {
		return gcl.Alloc[byte](cm, n)
	}
	raw, err := tensor.New(tensor.U8, n)
	if err != nil {
		return nil, err
	}
	return raw.Bytes(), nil
}

// free gives back what lay has from gcl.Alloc.
func free(cm *gcl.Comm, bs []*buffers) (err error) {
	for _, b := range bs {
		if b.opened {
			err = errors.Join(err, gcl.Free(cm, b.all))
		}
	}
	return err
}

// lay makes the buffers of operand t. With inPlace the two lie in one place, as far as the collective has that.
func (c *call) lay(cm *gcl.Comm, t, rank int, inPlace bool, h uint64) (*buffers, error) {
	o := &c.opds[t]
	es := size(o.dt)
	src, dst, own := c.lengths(t, rank)
	if own < 0 {
		inPlace = false
	}
	border := es * int(1+h%70)
	b := &buffers{opened: c.alloced(t, rank)}
	rootSrc := c.k == scatter || c.k == scatterV || c.ex != nil && c.ex.base != nil && c.ex.base.k == scatter
	hasSrc := !rootSrc || rank == c.root
	rootDst := c.k == reduce || c.k == gather || c.k == gatherV
	if c.ex != nil && c.ex.base != nil {
		k := c.ex.base.k
		rootDst = k == reduce || k == gather
	}
	hasDst := !rootDst || rank == c.root
	if !hasSrc && h>>8&1 == 0 {
		src, b.isNil[0] = 0, true
	}
	if !hasDst && h>>9&1 == 0 {
		dst, b.isNil[1] = 0, true
	}
	if inPlace && (!hasSrc || !hasDst) {
		inPlace = false
	}
	if inPlace && (c.k == reduceScatter && (rank+1)*dst > src || c.k == allToAllV && !sameCounts(o, rank)) {
		inPlace = false
	}
	var err error
	if b.all, err = memory(cm, 3*border+(src+dst)*es, b.opened); err != nil {
		return nil, err
	}
	for i := range b.all {
		b.all[i] = garbage(o.dt, i)
	}
	cut := func(at, n int) []byte { return b.all[at : at+n*es : at+n*es] }
	switch {
	case inPlace && src >= dst:
		b.src = cut(border, src)
		b.dstAt = border + own*es
	case inPlace:
		b.src = cut(border+own*es, src)
		b.dstAt = border
	default:
		b.src = cut(border, src)
		b.dstAt = 2*border + src*es
	}
	b.dst = cut(b.dstAt, dst)
	if b.isNil[0] {
		b.src = nil
	}
	if b.isNil[1] {
		b.dst = nil
	}
	return b, nil
}

// sameCounts reports whether a rank gets from each rank as much as it sends to it.
func sameCounts(o *operand, rank int) bool {
	for a := range o.sent {
		if o.sent[a][rank] != o.sent[rank][a] {
			return false
		}
	}
	return true
}

// sl is bytes as a slice of elements.
func sl[T tensor.Element](b []byte) []T {
	if b == nil {
		return nil
	}
	s, err := tensor.FromBytes[T](b)
	if err != nil {
		panic(err)
	}
	return s
}

// shapeOf is a shape of n elements. Ranks of a call on several tensors have the same one.
func shapeOf(n, which int) []int {
	switch {
	case n == 0:
		return [][]int{{0}, {0, 3}, {2, 0}, {0, 0, 1}}[which]
	case which == 1:
		return []int{n, 1}
	case which == 2:
		return []int{1, n}
	case which == 3 && n%2 == 0:
		return []int{2, n / 2}
	}
	return []int{n}
}

// view is a tensor over bytes, or nil.
func view(d tensor.DType, b []byte, isNil bool, shape []int) *tensor.Tensor {
	if isNil {
		return nil
	}
	t, err := tensor.View(d, tensor.Shape(shape), b)
	if err != nil {
		panic(fmt.Sprint(err, shape, len(b)))
	}
	return t
}

// tensorsOf are the two tensors of an operand.
func (c *call) tensorsOf(t, rank, which int, b *buffers) (dst, src *tensor.Tensor) {
	o := &c.opds[t]
	es := size(o.dt)
	ns, nd := len(b.src)/es, len(b.dst)/es
	var ss, ds []int
	switch c.k {
	case reduceScatter:
		ss, ds = []int{ns}, []int{nd}
	case allGather, gather:
		ss = shapeOf(o.n, which)
		ds = append([]int{c.g}, ss...)
	case allToAll:
		ss = append([]int{c.g}, shapeOf(o.n, which)...)
		ds = ss
	case scatter:
		ds = shapeOf(o.n, which)
		ss = append([]int{c.g}, ds...)
	case reduceScatterV, allGatherV, allToAllV, gatherV, scatterV:
		row := []int{o.row}
		switch {
		case o.row == 1 && which == 0:
			row = nil
		case which == 1:
			row = []int{1, o.row}
		}
		ss = append([]int{ns / o.row}, row...)
		ds = append([]int{nd / o.row}, row...)
	case execute:
		ss, ds = []int{ns}, []int{nd}
	default:
		ss = shapeOf(o.n, which)
		ds = ss
	}
	return view(o.dt, b.dst, b.isNil[1], ds), view(o.dt, b.src, b.isNil[0], ss)
}

// rowCounts are the counts of an operand in elements (scale = row) or rows (1), as lists for Do and its like.
func (c *call) rowCounts(t, rank, scale int) [][]int {
	o := &c.opds[t]
	mul := func(s []int) []int {
		out := make([]int, len(s))
		for i, x := range s {
			out[i] = x * scale
		}
		return out
	}
	if c.k == allToAllV {
		in := make([]int, c.g)
		for a := range in {
			in[a] = o.sent[a][rank]
		}
		return [][]int{mul(o.sent[rank]), mul(in)}
	}
	return [][]int{mul(o.counts)}
}
