package ops

import (
	"slices"

	"gogcl.dev/tensor"
)

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

// rewind goes back to the first place.
func (g *grid) rewind() {
	clear(g.at)
	g.offset = 0
}

// walk goes through the elements of one tensor in the order of those of another shape, to which it is broadcast. They
// come in runs: of elements side by side, or of one element again and again.
type walk struct {
	runs   *grid // where they begin
	length int   // of a run
	step   int   // from element to element of a run: 1 or 0
	left   int   // elements that the run in progress still has
}

// newWalk makes a walk, which begins with rewind.
func newWalk(from, to tensor.Shape) walk {
	type dimension struct{ extent, stride int }
	var dims []dimension // innermost first
	strides := broadcastStrides(from, to)
	for i, extent := range slices.Backward(to) {
		if extent == 1 {
			continue
		}
		d := dimension{extent, strides[i]}
		if k := len(dims) - 1; k >= 0 && d.stride == dims[k].stride*dims[k].extent {
			dims[k].extent *= d.extent
			continue
		}
		dims = append(dims, d)
	}
	w := walk{length: 1, step: 1}
	if len(dims) > 0 {
		w.length, w.step = dims[0].extent, dims[0].stride
		dims = dims[1:]
	}
	var extents, outer []int
	for _, d := range slices.Backward(dims) {
		extents, outer = append(extents, d.extent), append(outer, d.stride)
	}
	w.runs = newGrid(extents, outer)
	return w
}

func (w *walk) rewind() {
	w.runs.rewind()
	w.left = w.length
}

// at is where the next element is.
func (w *walk) at() int { return w.runs.offset + w.step*(w.length-w.left) }

// advance goes on by n elements, no more than are left in the run.
func (w *walk) advance(n int) {
	if w.left -= n; w.left == 0 {
		w.left = w.length
		w.runs.next()
	}
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
