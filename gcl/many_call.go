package gcl

import (
	"context"
	"fmt"
	"unsafe"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// manyCall is a collective on several tensors as it was asked for, in one of three forms.
type manyCall struct {
	ask
	form  form
	fresh bool // the destinations were made for this call

	// Slices of one type, by their headers: a length is in elements. Mapped, there is one of each, which the mapping
	// cuts.
	dtype      tensor.DType
	dsts, srcs [][]byte
	mapping    chunks.Mapping

	dstTensors, srcTensors []*tensor.Tensor
}

// form is what the operands of a call are.
type form uint8

const (
	ofSlices form = iota
	ofTensors
	ofMapping
)

// what is the name of an operand in errors.
func (f form) what() string {
	if f == ofMapping {
		return "IPU"
	}
	return "tensor"
}

// many is what a connection keeps for calls on several tensors. Only who has the connection's turn uses it.
type many struct {
	ins, outs [][]byte // of the operands of the call in progress
	preparations

	intervals []interval
}

// doMany is do for several tensors.
func (c *Comm) doMany(ctx context.Context, k manyCall) error {
	if err := c.check(); err != nil {
		return err
	}
	fingerprint := c.fingerprintOf(&k.ask)
	fingerprint.DType = wire.ManyTensors
	if err := c.takeNumber(ctx, &fingerprint); err != nil {
		k.count(&fingerprint)
		return c.turnedAway(&fingerprint, &k, err)
	}
	defer c.leave()
	began, m := ticks.Now(), &c.conn.many
	defer m.clear()
	j, refused := m.prepare(ctx, c, &k)
	if refused != nil {
		k.count(&fingerprint)
	} else {
		fingerprint.DType |= uint8(j.Common)
		fingerprint.Count, fingerprint.Digest = j.Count, j.Digest
	}
	c.conn.Flight.Begin(c.label, &fingerprint, began) // only now is it known how much there is
	if c.options.Trace != nil {
		defer c.crashed()
	}
	c.tellStart(&fingerprint, &k)
	if refused != nil {
		return c.refuse(&fingerprint, refused)
	}
	err := c.way.Perform(ctx, j, &fingerprint)
	j.Ins, j.Outs = nil, nil
	if err != nil {
		return c.failed(ctx, &fingerprint, err)
	}
	return c.end(nil)
}

// tensors calls f with type, elements and bytes of each input, or each destination, that can be told.
func (k *manyCall) tensors(destinations bool, f func(dtype tensor.DType, elements, bytes int)) {
	slices, tensors := k.srcs, k.srcTensors
	if destinations {
		slices, tensors = k.dsts, k.dstTensors
	}
	for _, s := range slices {
		f(k.dtype, len(s), len(s)*k.dtype.Size())
	}
	for _, t := range tensors {
		if t != nil && t.DType().Valid() {
			f(t.DType(), t.Len(), len(t.Bytes()))
		}
	}
}

// count completes the description of a call that is not carried out.
func (k *manyCall) count(call *transport.Call) {
	common, first := tensor.DType(0), true
	k.tensors(false, func(dtype tensor.DType, elements, _ int) {
		if first {
			common, first = dtype, false
		} else if common != dtype {
			common = 0
		}
		call.Count += uint64(elements)
	})
	call.DType |= uint8(common)
}

// size is the number of tensors, and of the bytes of all of them in the larger buffers.
func (k *manyCall) size() (tensors, bytes int) {
	ins, outs := 0, 0
	k.tensors(false, func(_ tensor.DType, _, bytes int) { ins += bytes })
	k.tensors(true, func(_ tensor.DType, _, bytes int) { outs += bytes })
	if k.form == ofMapping {
		return len(k.mapping), max(ins, outs)
	}
	return len(k.srcs) + len(k.srcTensors), max(ins, outs)
}

// clear holds on to nobody's buffers.
func (m *many) clear() {
	clear(m.ins)
	clear(m.outs)
	m.ins, m.outs = m.ins[:0], m.outs[:0]
}

// prepare looks at the arguments and makes a job of them, or finds it. Nothing has been sent.
func (m *many) prepare(ctx context.Context, c *Comm, k *manyCall) (*carry.Job, error) {
	if err := checkMany(ctx, c, k); err != nil {
		return nil, err
	}
	if err := m.load(c, k); err != nil {
		return nil, err
	}
	var p *prepared
	if !k.fresh {
		p = m.find()
	}
	if p == nil {
		p = m.place(k.fresh)
		if err := m.check(c, k, &p.Job); err != nil {
			return nil, err
		}
		if !k.fresh {
			p.words = append(p.words, m.words...)
		}
	}
	p.Ask, p.Ins, p.Outs = k.Ask, m.ins, m.outs
	return &p.Job, nil
}

// checkMany looks at the part of a call that is the same for all tensors.
func checkMany(ctx context.Context, c *Comm, k *manyCall) error {
	dsts, srcs := len(k.dsts), len(k.srcs)
	if k.form == ofTensors {
		dsts, srcs = len(k.dstTensors), len(k.srcTensors)
	}
	if ctx == nil {
		return errNilContext
	}
	if err := c.checkAsk(&k.ask); err != nil {
		return err
	}
	if dsts != srcs {
		return fmt.Errorf("%d destinations for %d tensors", dsts, srcs)
	}
	return nil
}

// load puts the tensors into the tables, and all that a preparation depends on into the words.
func (m *many) load(c *Comm, k *manyCall) error {
	kinds := uint64(k.Collective) | uint64(k.operator)<<8 | uint64(k.form)<<16 | uint64(k.dtype)<<24
	if c.options.Method == methods.Native { // which refuses calls that other methods take
		kinds |= 1 << 32
	}
	m.words = append(m.words[:0], uint64(uintptr(unsafe.Pointer(c.group))), c.digest, kinds)
	switch k.form {
	case ofTensors:
		return m.loadTensors(c, k)
	case ofMapping:
		return m.loadMapped(c, k)
	}
	for t := range k.srcs {
		m.put(memoryOf(k.dsts[t], k.dtype), memoryOf(k.srcs[t], k.dtype))
	}
	return nil
}

// put puts a tensor into the tables.
func (m *many) put(dst, src []byte) {
	m.outs, m.ins = append(m.outs, dst), append(m.ins, src)
	m.words = append(m.words,
		uint64(memory.Address(dst)), uint64(len(dst)), uint64(memory.Address(src)), uint64(len(src)))
}

// headers keeps slice headers whose lengths count elements, not bytes.
func headers[T tensor.Element](s [][]T) [][]byte {
	return unsafe.Slice((*[]byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// memoryOf is the memory of a slice, given its header.
func memoryOf(header []byte, dtype tensor.DType) []byte {
	return unsafe.Slice(unsafe.SliceData(header), len(header)*dtype.Size())
}

// check looks at every tensor as if it were a call of its own, and at whether they get in each other's way. It
// describes the job.
func (m *many) check(c *Comm, k *manyCall, j *carry.Job) error {
	for t, src := range m.ins {
		one := call{ask: k.ask, dtype: k.dtype, dst: m.outs[t], src: src}
		var err error
		if k.form == ofTensors {
			one.dtype = k.srcTensors[t].DType()
			err = checkShapes(k.Collective, k.dstTensors[t], k.srcTensors[t], c.Size())
		}
		size := one.dtype.Size()
		one.dstLen, one.srcLen = len(one.dst)/size, len(src)/size
		elements := 0
		switch {
		case err != nil:
		case k.form == ofMapping: // which says what the lengths are
			elements = k.mapping[t]
			if err = c.checkEngine(&k.ask, k.dtype, elements, &one.parts); err == nil {
				err = c.checkOverlap(&one)
			}
		default:
			elements, err = c.checkCall(&one)
		}
		if err != nil {
			return fmt.Errorf("%s %d: %w", k.form.what(), t, err)
		}
		m.outs[t], m.ins[t] = one.dst, one.src
		j.Describe(one.dtype, elements)
	}
	if err := m.checkCrossing(k.form, m.outs, m.ins); err != nil {
		return err
	}
	j.Ask, j.Ins, j.Outs = k.Ask, m.ins, m.outs
	var shape func(hash uint64, t int) uint64
	if k.form == ofTensors {
		shape = func(hash uint64, t int) uint64 { return k.shapeHash(hash, t) }
	}
	j.SumUp(c.digest, k.form == ofMapping, shape)
	return nil
}
