// Package job has what a call of a collective comes to once it has been checked: what is asked, and its operands.
//
// It knows no group, no route's outcome and no transport.
package job

import (
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// Ask is what a collective is to do, whatever it works on.
type Ask struct {
	Collective schedule.Collective
	Reduction  Reduction // of one that combines
	Root       int       // of one that has a root
}

// Reduction is what an operator does with inputs of a type that it takes.
type Reduction struct {
	Fold   kernel.Op // the loop that combines two elements; none: a rank keeps its own data
	Square bool      // each input is squared once, before it is combined
	Divide bool      // the result is divided once, by the number of inputs

	// InOrder says that operands do not commute: they are folded in rank order, each behind those of lower ranks.
	InOrder bool
}

// Undivided is r without its division. The phase of Hybrid that sees the inputs has it.
func (r Reduction) Undivided() Reduction {
	return Reduction{Fold: r.Fold, Square: r.Square, InOrder: r.InOrder}
}

// Partials combines results of several inputs each, as a later phase of Hybrid does.
func (r Reduction) Partials() Reduction { return Reduction{Fold: r.Fold} }

// On is how inputs of a type are folded. wide: 16-bit floats are added in float32.
func (r *Reduction) On(t kernel.Type, wide bool) kernel.Fold {
	return kernel.Fold{Op: r.Fold, Type: t, Square: r.Square, Wide: wide}
}

// Reads reports whether the input of a rank counts.
func (a *Ask) Reads(rank int) bool {
	return a.Collective.Contract().Input != schedule.AtRoot || rank == a.Root
}

// Writes reports whether a rank has an output.
func (a *Ask) Writes(rank int) bool {
	return a.Collective.Contract().Output != schedule.AtRoot || rank == a.Root
}

// Local reports whether a rank keeps its own data.
func (a *Ask) Local() bool {
	return a.Reduction.Fold == 0 && a.Collective.Contract().Combines
}

// Combines reports whether the results are made of the inputs of all ranks, by an operator.
func (j *Job) Combines() bool {
	if j.Given != nil && j.Given.Custom != nil {
		return j.Given.Custom.Combines
	}
	return j.Collective.Contract().Combines && !j.Local()
}

// Alike reports whether all ranks have the same result: all of the data, as after an all-reduce, all-gather or
// broadcast. Of a contract of a program's own nobody knows.
func (j *Job) Alike() bool {
	return j.Collective.Contract().Output == schedule.Whole && !j.Local() && j.Collective != schedule.Barrier
}

// Job is one call of a collective as it is carried out: on one operand, or on several that go together. An operand is a
// tensor, a slice, or what a mapping has on one IPU: an input and an output of the rank's own. The slices are by
// operand.
type Job struct {
	Ask
	Ins, Outs [][]byte
	DTypes    []tensor.DType
	Elements  []int         // in the larger of the rank's two buffers
	Parts     []pack.Parts  // none: all ranks have equal parts
	Given     *rounds.Given // the schedule that a call on one operand comes with, or nil
	Question  route.Question

	Digest uint64 // of the fingerprint of several operands

	Scheduled, Published KeptLayout // that it was carried out with
}

// KeptLayout is a layout found before.
type KeptLayout struct {
	layout *pack.Layout
	number uint64
}

// Good reports whether the layout, for cut chunks, is still the one that was kept.
func (k *KeptLayout) Good(cut int) bool {
	return k.layout != nil && k.layout.Number == k.number && k.layout.Chunks == cut
}

// Layout is the one that was kept.
func (k *KeptLayout) Layout() *pack.Layout { return k.layout }

// Keep remembers a layout.
func (k *KeptLayout) Keep(l *pack.Layout) { k.layout, k.number = l, l.Number }

// Empty takes the operands out. Their memory serves the next ones.
func (j *Job) Empty() {
	*j = Job{Ins: j.Ins[:0], Outs: j.Outs[:0], DTypes: j.DTypes[:0], Elements: j.Elements[:0],
		Parts: j.Parts[:0]}
}

// Add adds an operand that has been checked, of n elements in the larger buffer.
func (j *Job) Add(dst, src []byte, dtype tensor.DType, n int) {
	j.Ins, j.Outs = append(j.Ins, src), append(j.Outs, dst)
	j.DTypes, j.Elements = append(j.DTypes, dtype), append(j.Elements, n)
}

// AddParts says where the parts of the operand lie that was added last, and copies that. A job has such parts for all
// operands or for none.
func (j *Job) AddParts(p *pack.Parts) {
	n := len(j.Parts)
	if n == cap(j.Parts) {
		j.Parts = append(j.Parts, pack.Parts{})
	}
	j.Parts = j.Parts[:n+1]
	j.Parts[n].Keep(p)
}

// ByCounts reports whether a job has operands, with parts by counts.
func (j *Job) ByCounts() bool { return len(j.Parts) > 0 }

// HashParts adds the parts of a job's only operand to a hash.
func (j *Job) HashParts(hash uint64) uint64 {
	if len(j.Parts) == 0 {
		return hash
	}
	return j.Parts[0].Hash(hash)
}

// One makes the job that a call on one operand is, of n elements in the larger buffer, with its schedule if it is given
// one. It writes no more than it must: for a call of few bytes that shows.
func (j *Job) One(a *Ask, dtype tensor.DType, dst, src []byte, parts *pack.Parts, given *rounds.Given, n int) {
	if len(j.Ins) == 0 {
		j.Ins, j.Outs, j.DTypes, j.Elements = make([][]byte, 1), make([][]byte, 1), make([]tensor.DType, 1),
			make([]int, 1)
	}
	// Field by field: the bytes have just been written one by one, and to read them as a word stalls.
	j.Collective, j.Reduction, j.Root, j.Parts = a.Collective, a.Reduction, a.Root, j.Parts[:0]
	j.Ins[0], j.Outs[0], j.DTypes[0], j.Elements[0] = src, dst, dtype, n
	j.Scheduled.layout, j.Given = nil, given
	if parts.Bounds != nil {
		j.Parts = append(j.Parts, *parts)
	}
	j.AskOne()
}

// Forget has a job that One has made hold on to nobody's buffers.
func (j *Job) Forget() {
	if len(j.Ins) > 0 {
		j.Ins[0], j.Outs[0] = nil, nil
	}
}

// ToPublish is how many elements of operand t a rank with an input publishes. Where the root deals parts out, the
// inputs of the others are empty; the number is the root's on all ranks.
func (j *Job) ToPublish(t int) int {
	if j.Collective.Contract().Deals() {
		return j.Elements[t]
	}
	return len(j.Ins[t]) / j.DTypes[t].Size()
}

// hashed is the length of the buffer of operand t that all ranks have: the input, or where the root deals parts out the
// output.
func (j *Job) hashed(t int) int {
	if j.Collective.Contract().Deals() {
		return len(j.Outs[t])
	}
	return len(j.Ins[t])
}

// AskOne sets the question of a job of one operand.
func (j *Job) AskOne() {
	q := &j.Question
	q.Collective, q.Local, q.Several = j.Collective, j.Local(), false
	q.Parts, q.Given = len(j.Parts) > 0, j.Given != nil
	q.Bytes, q.Published = j.Elements[0]*j.DTypes[0].Size(), j.ToPublish(0)*j.DTypes[0].Size()
}

// SumUp completes a job of several operands: what chooses its route, and what must be equal on all ranks, which are the
// number, the order, the dtypes and shapes of the operands, and whether a mapping cuts them. digest is that of the
// options. shape adds the shape of an operand to a hash; nil: it has none.
func (j *Job) SumUp(digest uint64, mapped bool, shape func(hash uint64, t int) uint64) {
	j.Digest = digest
	if mapped {
		j.Digest = wire.Mix(j.Digest, 1<<63) // as no word that follows is
	}
	q := route.Question{Collective: j.Collective, Local: j.Local(), Several: true, Parts: len(j.Parts) > 0}
	for t, dtype := range j.DTypes {
		q.Bytes += j.Elements[t] * dtype.Size()
		q.Published += j.ToPublish(t) * dtype.Size()
		switch {
		case shape != nil:
			j.Digest = shape(j.Digest, t)
		case q.Parts: // as a tensor of one dimension, whose counts follow
			j.Digest = wire.Mix(j.Digest, uint64(dtype)<<32|1)
		case mapped:
			j.Digest = wire.Mix(wire.Mix(j.Digest, uint64(dtype)<<32|1), uint64(j.Elements[t]))
		default: // as a tensor of one dimension
			j.Digest = wire.Mix(wire.Mix(j.Digest, uint64(dtype)<<32|1), uint64(j.hashed(t)/dtype.Size()))
		}
		if q.Parts {
			j.Digest = j.Parts[t].Hash(j.Digest)
		}
	}
	q.Published = memory.RoundUp(q.Published, pack.Align)
	j.Question = q
}
