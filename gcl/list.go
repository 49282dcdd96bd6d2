package gcl

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// The forms of a collective whose operands come in lists, ...Many, ...Tensors and ...Mapped, are a Batch that a
// connection keeps for calls like it. Programs make the same few calls on the same buffers again and again, and to look
// at hundreds of small tensors takes longer than to reduce them: so a spare Batch knows by the addresses, lengths,
// dtypes and shapes of its operands whether it has been put together of them.

// list is what operands come in: slices of one type, tensors, or an array that a mapping cuts.
type list struct {
	ask
	form  form
	fresh bool // the destinations were made for this call

	dtype      tensor.DType // but of tensors, which have their own
	dsts, srcs [][]byte     // slices by their headers: a length is in elements

	dstTensors, srcTensors []*tensor.Tensor

	dst, src []byte // the array and its other side, which mapping cuts
	mapping  chunks.Mapping
}

// form is what the operands of a list are.
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

// len is how many destinations and inputs there are.
func (l *list) len() (dsts, srcs int) {
	switch l.form {
	case ofTensors:
		return len(l.dstTensors), len(l.srcTensors)
	case ofMapping:
		return len(l.mapping), len(l.mapping)
	}
	return len(l.dsts), len(l.srcs)
}

// first is where the first input that is not empty lies, and its destination.
func (l *list) first() (dst, src uintptr) {
	for t := range min(len(l.dsts), len(l.srcs)) {
		if len(l.srcs[t]) > 0 {
			return memory.Address(l.dsts[t]), memory.Address(l.srcs[t])
		}
	}
	for t := range min(len(l.dstTensors), len(l.srcTensors)) {
		if src := l.srcTensors[t]; src.Len() > 0 {
			return memory.Address(l.dstTensors[t].Bytes()), memory.Address(src.Bytes())
		}
	}
	return memory.Address(l.dst), memory.Address(l.src)
}

// headers keeps slice headers whose lengths count elements, not bytes.
func headers[T tensor.Element](s [][]T) [][]byte {
	return unsafe.Slice((*[]byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}

// memoryOf is the memory of a slice, given its header and the bytes of an element.
func memoryOf(header []byte, size int) []byte {
	return unsafe.Slice(unsafe.SliceData(header), len(header)*size)
}

// doList carries out a collective on the operands of a list.
func (c *Comm) doList(ctx context.Context, l *list) error {
	if err := c.check(); err != nil {
		return err
	}
	s := c.conn.spares.take(c, l)
	defer s.give()
	s.fill(l)
	return c.do(ctx, &s.run)
}

// spares are the Batches that a connection keeps for calls on lists.
type spares struct {
	mu  sync.Mutex // guards what follows
	all recent.Map[spareKey, *spare]
}

// maxSpares bounds what is kept: of a call on 1,000 slices some 200 KiB. It saves the look at each operand.
const maxSpares = 32

// spareKey tells apart the calls that need a spare of their own. The operands of one that is found are compared.
type spareKey struct {
	group    *membership
	digest   uint64
	kind     uint64  // collective, operator, form, dtype; the method native, which refuses calls that others take
	operands int     // or segments
	dst, src uintptr // see list.first; 0: all calls whose destinations are made for them share a spare
}

// spare is a Batch for the calls of one key, one at a time.
type spare struct {
	Batch
	busy  atomic.Bool // with a call
	known bool        // the Batch is that of the words
	words []uint64

	// Of the call that is being looked at.
	ins, outs [][]byte
	now       []uint64 // its words: all that the Batch depends on beside the key
	crossing  crossing
}

// take finds the spare for a call, or makes it. It is the caller's until give.
func (ss *spares) take(c *Comm, l *list) *spare {
	key := spareKey{group: c.group, digest: c.digest,
		kind: uint64(l.Collective) | uint64(l.operator)<<8 | uint64(l.form)<<16 | uint64(l.dtype)<<24}
	if c.options.Method == methods.Native {
		key.kind |= 1 << 32
	}
	key.operands, _ = l.len()
	if !l.fresh {
		key.dst, key.src = l.first()
	}
	ss.mu.Lock()
	defer ss.mu.Unlock()
	s, found := ss.all.Get(key)
	switch {
	case found && s.busy.CompareAndSwap(false, true):
		s.comm = c
		return s
	case found: // another goroutine has it
		s = newSpare()
	default:
		ss.all.Most = maxSpares
		place := ss.all.Place(key)
		if s = *place; s == nil || !s.busy.CompareAndSwap(false, true) {
			s = newSpare()
			*place = s
		}
	}
	s.comm, s.ask, s.what, s.known = c, l.ask, l.form.what(), false
	return s
}

func newSpare() *spare {
	s := &spare{}
	s.run.batch = &s.Batch
	s.busy.Store(true)
	return s
}

// give ends the use of a spare, which holds on to nobody's buffers.
func (s *spare) give() {
	clear(s.job.Ins)
	clear(s.job.Outs)
	s.busy.Store(false)
}

// fill has a spare be the Batch of a list's operands, or of those before the first that is wrong.
func (s *spare) fill(l *list) {
	s.now, s.ins, s.outs = s.now[:0], s.ins[:0], s.outs[:0]
	err := s.load(l)
	if err == nil && s.known && slices.Equal(s.now, s.words) {
		s.job.Ins, s.ins = s.ins, s.job.Ins
		s.job.Outs, s.outs = s.outs, s.job.Outs
		return
	}
	s.known = false // until it is good again
	s.empty()
	for t := range s.ins {
		switch l.form {
		case ofSlices:
			s.append(s.operand(l, t), nil)
		case ofTensors:
			s.AppendTensor(l.dstTensors[t], l.srcTensors[t])
		case ofMapping:
			s.appendMapped(s.operand(l, t), l.mapping[t])
		}
	}
	clear(s.ins)
	clear(s.outs)
	if err != nil {
		s.operandErr = err
		s.describeRefused(l)
	}
	s.known = s.operandErr == nil
	s.words, s.now = s.now, s.words
	s.seal(&s.crossing, l)
}

// describeRefused has the fingerprint and the Trace tell of a list that has not become operands, since it is wrong as a
// whole.
func (s *spare) describeRefused(l *list) {
	size, ins, outs := l.dtype.Size(), 0, 0
	for _, src := range l.srcs {
		s.note(uint64(len(src)), uint8(l.dtype))
		ins += len(src) * size
	}
	for _, dst := range l.dsts {
		outs += len(dst) * size
	}
	for _, src := range l.srcTensors {
		s.note(uint64(src.Len()), uint8(src.DType()))
		ins += len(src.Bytes())
	}
	for _, dst := range l.dstTensors {
		outs += len(dst.Bytes())
	}
	if l.form == ofMapping { // of which nobody knows the segments
		s.note(uint64(len(l.src)/size), uint8(l.dtype))
		ins, outs, s.given = len(l.src), len(l.dst), len(l.mapping)
	}
	s.bytes = max(ins, outs)
}

// operand is one of the operands of one type, as a call of its own.
func (s *spare) operand(l *list, t int) call {
	dst, src, size := s.outs[t], s.ins[t], l.dtype.Size()
	return call{ask: s.ask, dtype: l.dtype, dst: dst, src: src, dstLen: len(dst) / size, srcLen: len(src) / size}
}

// load puts the operands into the tables, and all that the Batch depends on into the words.
func (s *spare) load(l *list) error {
	switch dsts, srcs := l.len(); {
	case dsts != srcs:
		return fmt.Errorf("%d destinations for %d inputs", dsts, srcs)
	case l.form == ofMapping:
		return s.loadMapped(l)
	case l.form == ofTensors:
		for t, src := range l.srcTensors {
			dst := l.dstTensors[t]
			s.put(dst.Bytes(), src.Bytes())
			s.putShape(dst)
			s.putShape(src)
		}
	default:
		size := l.dtype.Size()
		for t, src := range l.srcs {
			s.put(memoryOf(l.dsts[t], size), memoryOf(src, size))
		}
	}
	return nil
}

// put puts an operand into the tables.
func (s *spare) put(dst, src []byte) {
	s.outs, s.ins = append(s.outs, dst), append(s.ins, src)
	s.now = append(s.now, uint64(memory.Address(dst)), uint64(len(dst)), uint64(memory.Address(src)), uint64(len(src)))
}

// putShape adds a tensor's dtype and shape to the words. A nil one has no dtype.
func (s *spare) putShape(t *tensor.Tensor) {
	s.now = append(s.now, uint64(t.DType())<<32|uint64(t.Rank()))
	for i := range t.Rank() {
		s.now = append(s.now, uint64(t.Dim(i)))
	}
}

// loadMapped puts the segments of a mapping into the tables, each as an operand.
func (s *spare) loadMapped(l *list) error {
	ranks := s.comm.Size()
	mapping, dtype, size := l.mapping, l.dtype, l.dtype.Size()
	dst, src := len(l.dst)/size, len(l.src)/size
	shard, err := mapping.PerRank(ranks)
	if err != nil {
		return err
	}
	scatters := l.Collective.Contract().Output == schedule.Own
	if scatters {
		if err := l.operator.Accepts(dtype); err != nil {
			return err
		}
		if err := mapping.Check(src); err != nil {
			return err
		}
		if dst != shard {
			return fmt.Errorf("the destination has %d elements, want %d by the mapping over %d ranks",
				dst, shard, ranks)
		}
	} else {
		if err := checkSize(shard, ranks, dtype); err != nil {
			return err
		}
		if src != shard {
			return fmt.Errorf("the data has %d elements, want %d by the mapping over %d ranks", src, shard, ranks)
		}
		if err := mapping.Check(dst); err != nil {
			return fmt.Errorf("the destination: %w", err)
		}
	}
	in, out := l.src, l.dst
	for _, n := range mapping {
		i, o := n*size, chunks.PerRank(n, ranks)*size
		if !scatters {
			i, o = o, i
		}
		s.put(out[:o:o], in[:i:i])
		in, out = in[i:], out[o:]
	}
	return nil
}

// appendMapped is append of a segment, whose elements the mapping says.
func (s *spare) appendMapped(k call, elements int) {
	err := s.comm.checkEngine(&s.ask, k.dtype, elements, &k.parts)
	if err == nil {
		err = s.comm.checkOverlap(&k)
	}
	s.add(&k, elements, err)
}

// sumUp has a job say what all operands are together. Shapes of tensors are compared between members where they come in
// a list, and a mapping is told from slices of the lengths that it says. A Batch of the program's own has no list.
func (l *list) sumUp(j *job.Job, digest uint64) {
	switch {
	case l != nil && l.form == ofTensors:
		j.SumUp(digest, false, l.shapeHash)
	default:
		j.SumUp(digest, l != nil && l.form == ofMapping, nil)
	}
}

// shapeHash adds the dtype and shape of operand t to a hash: those of its input.
func (l *list) shapeHash(hash uint64, t int) uint64 {
	of := l.srcTensors[t]
	hash = wire.Mix(hash, uint64(of.DType())<<32|uint64(of.Rank()))
	for i := range of.Rank() {
		hash = wire.Mix(hash, uint64(of.Dim(i)))
	}
	return hash
}
