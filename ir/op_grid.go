package ir

import "gogcl.dev/tensor"

// grid goes through the places of a grid in row-major order and knows the offset of each. After the last comes the
// first again. It allocates nothing.
type grid struct {
	extents, strides []int
	at               []int
	offset           int
}

func newGrid(extents, strides []int) *grid {
	return &grid{extents: extents, strides: strides, at: make([]int, len(extents))}
}

// places is how many there are.
func (g *grid) places() int {
	n := 1
	for _, extent := range g.extents {
		n *= extent
	}
	return n
}

func (g *grid) next() {
	for d := len(g.extents) - 1; d >= 0; d-- {
		g.at[d]++
		g.offset += g.strides[d]
		if g.at[d] < g.extents[d] {
			return
		}
		g.offset -= g.at[d] * g.strides[d]
		g.at[d] = 0
	}
}

// stridesOf is, for each dimension, how far apart neighbours are, in elements.
func stridesOf(s tensor.Shape) []int {
	strides, step := make([]int, len(s)), 1
	for d := len(s) - 1; d >= 0; d-- {
		strides[d] = step
		step *= s[d]
	}
	return strides
}

// broadcastStrides are those of a tensor of shape s as if it were of shape to: 0 where it is repeated. Dimensions are
// matched from the last on.
func broadcastStrides(s, to tensor.Shape) []int {
	own, strides := stridesOf(s), make([]int, len(to))
	for d := range s {
		if s[d] != 1 {
			strides[len(to)-len(s)+d] = own[d]
		}
	}
	return strides
}

// broadcastsTo reports whether a tensor of shape s can be repeated to be of shape to.
func broadcastsTo(s, to tensor.Shape) bool {
	if len(s) > len(to) {
		return false
	}
	for d, extent := range s {
		if extent != 1 && extent != to[len(to)-len(s)+d] {
			return false
		}
	}
	return true
}

// box is a part of a tensor: from a start in each dimension, so many. It copies it from and to dense memory of its own.
type box struct {
	first int // byte
	run   int // bytes that adjoin
	runs  int
	grid  *grid
}

// newBox is a part of a tensor of that shape whose elements have so many bytes.
func newBox(shape tensor.Shape, starts, sizes []int, bytes int) *box {
	strides := stridesOf(shape)
	b := &box{run: bytes}
	for d := range strides {
		strides[d] *= bytes
		b.first += starts[d] * strides[d]
	}
	last := len(shape)
	for last > 0 {
		last--
		b.run *= sizes[last]
		if sizes[last] != shape[last] {
			break
		}
	}
	b.grid = newGrid(sizes[:last], strides[:last])
	b.runs = b.grid.places()
	return b
}

// take copies the part of src to dst.
func (b *box) take(dst, src []byte) {
	if b.run == 0 {
		return
	}
	for k := range b.runs {
		at := b.first + b.grid.offset
		copy(dst[k*b.run:][:b.run], src[at:][:b.run])
		b.grid.next()
	}
}

// put copies src to the part of dst.
func (b *box) put(dst, src []byte) {
	if b.run == 0 {
		return
	}
	for k := range b.runs {
		at := b.first + b.grid.offset
		copy(dst[at:][:b.run], src[k*b.run:][:b.run])
		b.grid.next()
	}
}
