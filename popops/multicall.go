package popops

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// multi is a call for several slices of tensors. What must be on the heap is no part of it, lest dims and sizes have
// to be: offsets and plan.
type multi struct {
	what    string // the function's name, for errors
	verb    verb   // take, put, addTo or maxTo
	grouped bool
	window  // of t
	options Options
	scale   *tensor.Tensor // of addTo

	groups, n int
	partial   bool // sums are kept in float32
}

// fail is an error of the call. (It clones what, or all that m refers to, such as dims, would have to be on the heap.)
func (m *multi) fail(err error) error { return failed(strings.Clone(m.what), err) }

// leads are the leading dimensions of slices.
func (m *multi) leads() ([2]int, int) {
	if m.grouped {
		return [2]int{m.groups, m.n}, 2
	}
	return [2]int{m.n}, 1
}

// withTensor checks the table and a tensor of offsets.
func (m *multi) withTensor(o *tensor.Tensor, plan *Plan) (offsets, error) {
	fail := func(err error) (offsets, error) { return offsets{}, m.fail(err) }
	if err := m.checkTable(); err != nil {
		return offsets{}, err
	}
	if err := checkThere("offsets", o); err != nil {
		return fail(err)
	}
	want := 2 + m.skip
	if o.Rank() != want || o.Dim(want-1) != len(m.dims) || m.grouped && o.Dim(0) != m.groups {
		if m.grouped {
			return fail(fmt.Errorf("offsets have shape %v, want (%d, n, %d): groups, look-ups, dimensions",
				o.Shape(), m.groups, len(m.dims)))
		}
		return fail(fmt.Errorf("offsets have shape %v, want (n, %d): look-ups, dimensions", o.Shape(), len(m.dims)))
	}
	off, err := offsetsOf(o)
	if err != nil {
		return fail(err)
	}
	m.n = o.Dim(want - 2)
	return off, m.checkOffsets(&off, plan)
}

// withHost checks the table and offsets given by the host.
func (m *multi) withHost(host []int) (offsets, error) {
	if err := m.checkTable(); err != nil {
		return offsets{}, err
	}
	if err := checkHost(host, m.t.Dim(m.dims[0])); err != nil {
		return offsets{}, m.fail(err)
	}
	off := offsets{host: host}
	m.n = len(host)
	return off, m.checkOffsets(&off, nil)
}

// checkTable checks the table and what is sliced of it.
func (m *multi) checkTable() error {
	if err := checkThere("t", m.t); err != nil {
		return m.fail(err)
	}
	m.groups = 1
	if m.grouped {
		if m.t.Rank() == 0 {
			return m.fail(fmt.Errorf("t is a scalar, want a group dimension"))
		}
		m.groups, m.skip = m.t.Dim(0), 1
	}
	if err := m.check(); err != nil {
		return m.fail(err)
	}
	if dtype := m.t.DType(); m.verb >= addTo && !dtype.IsNumber() {
		return m.fail(fmt.Errorf("t is %v, want a number", dtype))
	}
	return nil
}

// checkOffsets checks what is said about offsets.
func (m *multi) checkOffsets(o *offsets, plan *Plan) error {
	var partial tensor.DType
	var err error
	if m.isRows() {
		outer, inner := m.around(m.dims[0])
		r := rowTable{m.t.DType(), m.groups, m.dim(m.dims[0]), outer * inner, m.n}
		if m.grouped && plan == nil {
			return m.fail(fmt.Errorf("no plan, want one for %d groups", m.groups))
		}
		partial, err = r.check(o, m.verb, plan, m.options)
	} else {
		partial, err = m.checkBlocks(o, plan)
	}
	if err != nil {
		return m.fail(err)
	}
	m.partial = m.verb == addTo && sumsWide(partial, m.t.DType())
	return nil
}

// checkBlocks is rowTable.check for slices that are no rows.
func (m *multi) checkBlocks(o *offsets, plan *Plan) (partial tensor.DType, err error) {
	if plan == nil && m.grouped {
		return 0, fmt.Errorf("dims %v and sizes %v of groups, want one dimension and the size 1, and a plan",
			slices.Clone(m.dims), slices.Clone(m.sizes))
	}
	if plan != nil {
		return 0, fmt.Errorf("dims %v and sizes %v with a plan, want one dimension and the size 1",
			slices.Clone(m.dims), slices.Clone(m.sizes))
	}
	if m.verb == addTo {
		if err := checkPartial(m.options.PartialType, m.t.DType()); err != nil {
			return 0, err
		}
	}
	if m.options.ValidateIndices {
		if err := m.checkRange(o); err != nil {
			return 0, err
		}
	}
	if m.options.IndicesAreSorted && m.verb != take {
		if len(m.dims) != 1 {
			return 0, fmt.Errorf("option IndicesAreSorted with %d dims, want 1", len(m.dims))
		}
		if err := checkSorted(o, m.n); err != nil {
			return 0, err
		}
	}
	return m.options.PartialType, nil
}

// result is a tensor for the slices.
func (m *multi) result() (*tensor.Tensor, error) {
	lead, leads := m.leads()
	s, err := tensor.New(m.t.DType(), m.shapeOf(append([]int(nil), lead[:leads]...)...)...)
	if err != nil {
		return nil, m.fail(err)
	}
	return s, nil
}

// run checks the slices and carries the call out.
func (m *multi) run(name string, s *tensor.Tensor, off offsets, plan *Plan) error {
	if err := checkThere(name, s); err != nil {
		return m.fail(err)
	}
	dtype := m.t.DType()
	if s.DType() != dtype {
		return m.fail(fmt.Errorf("%s is %v and t is %v, want one type", name, s.DType(), dtype))
	}
	lead, leads := m.leads()
	if err := m.checkSlices(name, s, lead, leads); err != nil {
		return m.fail(err)
	}
	written, read := m.t, s
	if m.verb == take {
		written, read = s, m.t
	}
	if err := checkApart(written, read, tensor.Bytes(off.words)); err != nil {
		return m.fail(err)
	}
	bits, err := m.scaleBits(written)
	if err != nil {
		return m.fail(err)
	}
	if s.Len() == 0 || m.t.Len() == 0 && m.verb != take {
		return nil
	}
	if m.isRows() {
		outer, inner := m.around(m.dims[0])
		size := dtype.Size()
		call := rowCall{
			verb: m.verb, groups: m.groups, n: m.n, entries: m.dim(m.dims[0]), outer: outer, inner: inner * size,
			table: m.t.Bytes(), slices: s.Bytes(), off: off, scale: bits, given: m.options.IndicesAreSorted,
		}
		call.run(dtype, m.partial, plan)
		return nil
	}
	b := blocks{window: m.window, offsets: off, step: 1}
	b.do = &runner{size: dtype.Size(), table: m.t.Bytes(), slice: s.Bytes(), scale: bits}
	b.prepare()
	if m.partial {
		b.addWide(m.n, dtype)
		return nil
	}
	b.do.use(m.verb, dtype)
	b.eachLookUp(m.n)
	return nil
}

// scaleBits is the scale as the kernel wants it: the bits of an element, of floats of 16 bits those of a float32. The
// scale must lie apart from what is written.
func (m *multi) scaleBits(written *tensor.Tensor) (uint64, error) {
	if m.verb != addTo {
		return 0, nil
	}
	if err := checkThere("scale", m.scale); err != nil {
		return 0, err
	}
	dtype := m.t.DType()
	of := m.scale.DType()
	if of != dtype && !(is16(dtype) && of == tensor.F32) {
		if is16(dtype) {
			return 0, fmt.Errorf("scale is %v, want %v or float32", of, dtype)
		}
		return 0, fmt.Errorf("scale is %v, want %v", of, dtype)
	}
	if m.scale.Len() != 1 {
		return 0, fmt.Errorf("scale has shape %v, want one element", m.scale.Shape())
	}
	if overlap(written.Bytes(), m.scale.Bytes()) {
		return 0, fmt.Errorf("t and scale share memory, want them apart")
	}
	return elementBits(m.scale.Bytes(), of), nil
}

// elementBits is the bits of one element, a float of 16 bits made a float32.
func elementBits(b []byte, of tensor.DType) uint64 {
	var bits uint64
	switch len(b) {
	case 1:
		bits = uint64(b[0])
	case 2:
		bits = uint64(binary.NativeEndian.Uint16(b))
	case 4:
		bits = uint64(binary.NativeEndian.Uint32(b))
	case 8:
		bits = binary.NativeEndian.Uint64(b)
	}
	switch of {
	case tensor.F16:
		return uint64(math.Float32bits(kernel.F16ToF32(uint16(bits))))
	case tensor.BF16:
		return uint64(math.Float32bits(kernel.BF16ToF32(uint16(bits))))
	}
	return bits
}
