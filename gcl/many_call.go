package gcl

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"gogcl.dev/chunks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// manyCall is a collective on several tensors as it was asked for, in one of three forms.
type manyCall struct {
	collective schedule.Collective
	operator   Operator
	root       int
	form       manyForm

	// Slices of one type, by their headers: a length is in elements. Mapped, there is one of each, which the mapping cuts.
	dtype      tensor.DType
	dsts, srcs [][]byte
	mapping    chunks.Mapping

	dstTensors, srcTensors []*tensor.Tensor
}

type manyForm uint8

const (
	ofSlices manyForm = iota
	ofTensors
	ofMapping
)

// what is a tensor's name in errors.
func (f manyForm) what() string {
	if f == ofMapping {
		return "IPU"
	}
	return "tensor"
}

// many is what a lane keeps for calls on several tensors: tables of those of the call in progress, and what is worth keeping from one call to the next. Only who has
// the lane's turn uses it.
type many struct {
	dtypes    []tensor.DType
	elements  []int    // in the larger of a rank's two buffers
	shards    []int    // ceil(elements/G): a rank's part in a reduce-scatter or all-gather
	ins, outs [][]byte // inputs and outputs

	intervals []interval
	extents   []extent
	layouts   layouts
	packing   packing // by a schedule
	published packing // in a Gather
	views     []transport.Memory
}

// manyTensors marks, in the DType of a transport.Call, a collective on several tensors: beside it stands their type, or 0 for several types.
const manyTensors = 0x80

// doMany is do for several tensors.
func (c *Comm) doMany(ctx context.Context, k manyCall) error {
	if err := c.check(); err != nil {
		return err
	}
	refused := c.enter(ctx)
	if refused == nil {
		defer c.leave()
	}
	fingerprint := transport.Call{
		Group:      c.group.id,
		Seq:        c.group.seq.Add(1),
		Root:       uint32(k.root),
		Collective: uint8(k.collective),
		Operator:   uint8(k.operator),
		DType:      manyTensors,
	}
	if refused == nil {
		defer c.lane.many.clear()
		refused = c.load(ctx, &k)
	}
	if refused != nil {
		return &callError{what: nameCall(fingerprint), replica: c.Replica(), err: refused}
	}
	c.lane.many.sumUp(c, &k, &fingerprint)
	if err := c.performMany(ctx, &k, fingerprint); err != nil {
		return newCallError(ctx, nameCall(fingerprint), c.Replica(), err)
	}
	return nil
}

// load looks at the arguments and puts the tensors into the tables. Nothing has been sent.
func (c *Comm) load(ctx context.Context, k *manyCall) error {
	m := &c.lane.many
	if err := c.checkMany(ctx, k); err != nil {
		return err
	}
	var err error
	switch k.form {
	case ofTensors:
		err = m.loadTensors(ctx, c, k)
	case ofMapping:
		err = m.loadMapped(c, k)
	default:
		err = m.loadSlices(ctx, c, k)
	}
	if err != nil {
		return err
	}
	return m.checkCrossing(k.form)
}

// checkMany looks at what is no single tensor's.
func (c *Comm) checkMany(ctx context.Context, k *manyCall) error {
	dsts, srcs := len(k.dsts), len(k.srcs)
	if k.form == ofTensors {
		dsts, srcs = len(k.dstTensors), len(k.srcTensors)
	}
	switch {
	case ctx == nil:
		return errors.New("nil context")
	case reduces(k.collective) && k.operator >= numOperators:
		return fmt.Errorf("%v is not an operator", k.operator)
	case k.collective == schedule.Broadcast && (k.root < 0 || k.root >= c.Size()):
		return fmt.Errorf("root %d is not a rank of the group, 0 to %d", k.root, c.Size()-1)
	case dsts != srcs:
		return fmt.Errorf("%d destinations for %d tensors", dsts, srcs)
	}
	return nil
}

func (m *many) loadSlices(ctx context.Context, c *Comm, k *manyCall) error {
	for t, src := range k.srcs {
		dst := k.dsts[t]
		err := m.add(ctx, c, k, call{
			dtype: k.dtype, dst: memoryOf(dst, k.dtype), src: memoryOf(src, k.dtype), dstLen: len(dst), srcLen: len(src),
		})
		if err != nil {
			return fmt.Errorf("tensor %d: %w", t, err)
		}
	}
	return nil
}

// headers are slices as they are, but that their elements are called bytes.
func headers[T tensor.Element](s [][]T) [][]byte {
	return unsafe.Slice((*[]byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// memoryOf is the memory of a slice of which there is the header.
func memoryOf(header []byte, dtype tensor.DType) []byte {
	return unsafe.Slice(unsafe.SliceData(header), len(header)*dtype.Size())
}

// add checks one tensor, as if it were a call of its own, and puts it into the tables.
func (m *many) add(ctx context.Context, c *Comm, k *manyCall, one call) error {
	one.collective, one.operator, one.root = k.collective, k.operator, k.root
	if err := c.checkCall(ctx, &one); err != nil {
		return err
	}
	m.put(c, one.dtype, c.larger(&one), one.dst, one.src)
	return nil
}

// put puts a tensor into the tables.
func (m *many) put(c *Comm, dtype tensor.DType, elements int, dst, src []byte) {
	m.dtypes, m.elements = append(m.dtypes, dtype), append(m.elements, elements)
	m.shards = append(m.shards, chunks.PerRank(elements, c.Size()))
	m.outs, m.ins = append(m.outs, dst), append(m.ins, src)
}

// clear empties the tables, and holds on to nobody's buffers.
func (m *many) clear() {
	clear(m.ins)
	clear(m.outs)
	m.dtypes, m.elements, m.shards = m.dtypes[:0], m.elements[:0], m.shards[:0]
	m.ins, m.outs = m.ins[:0], m.outs[:0]
}

// sumUp puts into the fingerprint what must be equal on all ranks: number, order, dtypes and shapes of the tensors, and the mapping.
func (m *many) sumUp(c *Comm, k *manyCall, fingerprint *transport.Call) {
	digest := mix(c.digest, uint64(len(m.dtypes)))
	if k.form == ofMapping {
		digest = mix(digest, 1<<63) // as the next word never is
	}
	count, common := 0, tensor.DType(0)
	for t, dtype := range m.dtypes {
		if t == 0 {
			common = dtype
		} else if common != dtype {
			common = 0
		}
		count += len(m.ins[t]) / dtype.Size()
		if k.form != ofTensors {
			digest = mix(mix(digest, uint64(dtype)<<32|1), uint64(m.elements[t]))
			continue
		}
		src := k.srcTensors[t]
		digest = mix(digest, uint64(dtype)<<32|uint64(src.Rank()))
		for i := range src.Rank() {
			digest = mix(digest, uint64(src.Dim(i)))
		}
	}
	fingerprint.DType |= uint8(common)
	fingerprint.Count, fingerprint.Digest = uint64(count), digest
}

// performMany carries out a checked call.
func (c *Comm) performMany(ctx context.Context, k *manyCall, fingerprint transport.Call) error {
	m := &c.lane.many
	if c.Size() == 1 || reduces(k.collective) && k.operator == Local {
		// As perform does.
		if err := c.lane.endpoint.Exchange(ctx, fingerprint, nil); err != nil {
			return err
		}
		for t := range m.ins {
			c.keepOwn(&call{collective: k.collective, dst: m.outs[t], src: m.ins[t]})
		}
		return nil
	}
	// To what chooses methods and counts the pieces of pipelines, the tensors are so many bytes.
	whole := call{collective: k.collective, operator: k.operator, root: k.root, dtype: tensor.U8}
	bytes := m.bytes()
	method := c.method(&whole, bytes)
	fingerprint.Method = uint8(method)
	if c.syncful() && c.lane.memory != nil && method == methods.Direct {
		return m.direct(ctx, c, &whole, fingerprint)
	}
	e, err := c.executor(&whole, method, bytes)
	if err != nil {
		return err
	}
	return m.scheduled(ctx, c, &whole, e, fingerprint)
}

// bytes are those of the larger buffers of all tensors.
func (m *many) bytes() int {
	sum := 0
	for t, n := range m.elements {
		sum += n * m.dtypes[t].Size()
	}
	return sum
}
