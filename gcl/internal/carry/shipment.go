package carry

import (
	"cmp"
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// packedUnit divides every place at which packed tensors may be cut: it is the size of the widest elements.
var packedUnit = kernel.Float64.Size()

// packer is what a carrier keeps for calls on several tensors.
type packer struct {
	extents  []pack.Extent
	layouts  pack.Layouts
	packing  pack.Packing
	separate []int // tensors with messages of their own
}

// scheduled carries out a job by a schedule. Operands with small messages are packed in memory of the carrier, in which
// input and output of the schedule are the same unless it needs them apart.
func (w *Caller) scheduled(ctx context.Context, j *job.Job, e rounds.Executor, fingerprint transport.Call) error {
	m, contract, does := &w.packer, j.Collective.Contract(), &j.Reduction
	s := shipment{
		packer: m, Job: j, ranks: w.Size(), rank: w.Group.Rank, together: w.Stages,
		scatters: contract.Output == schedule.Own, gathers: contract.Input == schedule.Own,
	}
	ranks, works := 0, func(dtype tensor.DType) kernel.Type { return kernel.Type(dtype) }
	if s.scatters || s.gathers {
		ranks = w.Size()
	}
	ins := j.Ins
	if contract.Combines {
		works = func(dtype tensor.DType) kernel.Type { return w.worksIn(does, dtype) }
		s.square = does.Square
		if does.Divide {
			s.by = w.Size()
		}
	} else if s.together && j.Blocks() { // which no packing holds
		ins = w.staging.Inputs(ins)
	}
	s.sort(e.Cut(), ranks, int(cmp.Or(w.Setting.Tuning.SeparateBytes, methods.DefaultSeparateBytes)), works)
	m.packing.SetUp(s.layout, kernel.Fold{Op: does.Fold}, 0) // squared before, divided after

	apart := contract.Output == schedule.Blocks && e.Apart()
	size := s.layout.Bytes()
	in, out, kept := w.staging.Packed(size, apart, s.inPlaceBytes(ins, apart))
	runs := w.Runs()
	from, to := s.layout.ChunkRange(0, s.layout.Chunks), s.layout.ChunkRange(0, s.layout.Chunks)
	if size > 0 || len(m.separate) == 0 {
		r := rounds.Run{Elements: size, ElemSize: 1, Input: in, Output: out, Packed: &m.packing, Call: fingerprint,
			Segment: w.segment(packedUnit)}
		per := s.layout.Chunks / w.Size()
		if s.scatters {
			to = s.layout.ChunkRange(s.rank*per, (s.rank+1)*per)
			r.Output = out[to.At:to.End]
		}
		if s.gathers {
			from = s.layout.ChunkRange(s.rank*per, (s.rank+1)*per)
			r.Input = in[from.At:from.End]
		}
		if j.Reads(s.rank) {
			s.pack(in, from)
		}
		runs = append(runs, r)
	}
	for _, t := range m.separate {
		r := rounds.Run{Elements: s.Elements[t], ElemSize: s.DTypes[t].Size(), Input: ins[t], Output: s.Outs[t],
			Call: fingerprint, Parts: j.PartsOf(t), Segment: w.segment(s.DTypes[t].Size())}
		if j.Blocks() {
			r.Segment = max(len(r.Input), len(r.Output), 1) // see Job.Blocks
		}
		at := s.DTypes[t]
		r.Fold, r.Second, r.Many = m.packing.Binary[at], m.packing.Second[at], m.packing.Many[at]
		if apart && memory.Address(r.Input) == memory.Address(r.Output) {
			r.Input, kept = kept[:len(r.Input)], kept[memory.RoundUp(len(r.Input), pack.Align):]
			kernel.Copy(r.Input, ins[t], false)
		}
		runs = append(runs, r)
	}
	if err := w.Carry(ctx, e, runs); err != nil {
		return err
	}
	if j.Writes(s.rank) {
		s.unpack(out, to)
		s.finish()
	}
	return nil
}

// shipment moves the operands of a job into a packing and out of it.
type shipment struct {
	*job.Job
	packer   *packer
	layout   *pack.Layout
	ranks    int
	rank     int
	gathers  bool // an input is the rank's shard
	scatters bool // an output is the rank's shard
	square   bool // inputs are squared
	together bool // all operands are packed: none has messages of its own
	by       int  // what outputs are divided by, if it is more than 1
}

// sort decides which operands have messages of their own, straight from their inputs and to their outputs, beside those
// of the packing in the same rounds: those whose messages have separate bytes or more, and all parts of an all-to-all
// of different lengths. It finds the layout of the others. works gives the type in which elements of a dtype are
// packed. All ranks decide alike.
func (s *shipment) sort(cut, ranks, separate int, works func(tensor.DType) kernel.Type) {
	m := s.packer
	m.separate = m.separate[:0]
	for t, dtype := range s.DTypes {
		large := s.Elements[t]*dtype.Size()/cut >= separate &&
			len(m.separate) < min(rounds.MaxRuns, transport.MaxTag/cut)
		large = large || len(s.DTypes) == 1 // nothing to share a message with
		if s.Blocks() || large && !s.together && !s.square && works(dtype) == kernel.Type(dtype) {
			m.separate = append(m.separate, t)
		}
	}
	if s.Job.Scheduled.Good(cut) {
		s.layout = s.Job.Scheduled.Layout()
		return
	}
	m.extents = m.extents[:0]
	for t, dtype := range s.DTypes {
		m.extents = append(m.extents, pack.Extent{Work: works(dtype), Elements: s.Elements[t],
			Parts: s.PartsOf(t).Bounds})
	}
	for _, t := range m.separate {
		m.extents[t].Elements, m.extents[t].Parts = 0, nil
	}
	s.layout = m.layouts.Of(m.extents, cut, ranks)
	s.Job.Scheduled.Keep(s.layout)
}

// inPlaceBytes is how much room is needed to keep inputs that a schedule with buffers apart would overwrite.
func (s *shipment) inPlaceBytes(ins [][]byte, apart bool) int {
	sum := 0
	for _, t := range s.packer.separate {
		if apart && memory.Address(ins[t]) == memory.Address(s.Outs[t]) {
			sum += memory.RoundUp(len(ins[t]), pack.Align)
		}
	}
	return sum
}

// pack fills some chunks from the inputs. 16-bit floats become float32 where the layout says so.
func (s *shipment) pack(dst []byte, r pack.ChunkRange) {
	for i := range r.Fragments {
		f := &r.Fragments[i]
		dtype, work := kernel.Type(s.DTypes[f.Tensor]), s.layout.Extents[f.Tensor].Work
		load(dst[f.At:f.At+(f.Hi-f.Lo)*work.Size()], s.elementsOf(s.Ins, f, s.gathers), dtype, work, s.square)
	}
}

// load copies elements into memory in which they are combined in another type, or are squared first.
func load(dst, src []byte, dtype, work kernel.Type, square bool) {
	switch {
	case work != dtype:
		kernel.Widen(dtype)(dst, src)
		if square {
			kernel.Square(work)(dst, dst)
		}
	case square:
		kernel.Square(work)(dst, src)
	default:
		kernel.Copy(dst, src, false)
	}
}

// unpack fills the outputs from some chunks.
func (s *shipment) unpack(src []byte, r pack.ChunkRange) {
	for i := range r.Fragments {
		f := &r.Fragments[i]
		dtype, work := kernel.Type(s.DTypes[f.Tensor]), s.layout.Extents[f.Tensor].Work
		dst := s.elementsOf(s.Outs, f, s.scatters)
		from := src[f.At : f.At+(f.Hi-f.Lo)*work.Size()]
		switch {
		case work != dtype:
			if s.by > 1 {
				kernel.Divide(work)(from, from, s.by)
			}
			kernel.Narrow(dtype)(dst, from)
		case s.by > 1:
			kernel.Divide(work)(dst, from, s.by)
		default:
			kernel.Copy(dst, from, false)
		}
	}
}

// elementsOf is where the elements of a fragment lie in an operand's own buffer, which has the rank's own part alone or
// all.
func (s *shipment) elementsOf(buffers [][]byte, f *pack.Fragment, own bool) []byte {
	size, first := s.DTypes[f.Tensor].Size(), 0
	if own {
		first = s.first(f.Tensor)
	}
	return buffers[f.Tensor][(f.Lo-first)*size : (f.Hi-first)*size]
}

// finish divides what was not unpacked, and puts zeros where a shard is past the end of its tensor.
func (s *shipment) finish() {
	if s.by > 1 {
		for _, t := range s.packer.separate {
			out := s.Outs[t][:s.have(t)]
			kernel.Divide(kernel.Type(s.DTypes[t]))(out, out, s.by)
		}
	}
	if s.scatters {
		for t, out := range s.Outs {
			clear(out[s.have(t):])
		}
	}
}

// have is the bytes of an output before its padding.
func (s *shipment) have(t int) int {
	if !s.scatters || len(s.Parts) > 0 {
		return len(s.Outs[t])
	}
	shard := chunks.PerRank(s.Elements[t], s.ranks)
	return min(max(s.Elements[t]-s.rank*shard, 0), shard) * s.DTypes[t].Size()
}

// first is the element of the larger buffer at which the rank's own part of an operand begins.
func (s *shipment) first(t int) int {
	if len(s.Parts) > 0 {
		return s.Parts[t].Bounds[s.rank]
	}
	return s.rank * chunks.PerRank(s.Elements[t], s.ranks)
}
