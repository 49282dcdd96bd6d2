package gcl

import (
	"errors"
	"fmt"
	"slices"

	"gogcl.dev/gcl/internal/lane"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// ask is what a collective is to do, whatever it works on.
type ask struct {
	collective schedule.Collective
	operator   Operator
	root       int
}

// reads reports whether the input of a rank counts.
func (a *ask) reads(rank int) bool {
	return a.collective.Contract().Input != schedule.AtRoot || rank == a.root
}

// writes reports whether a rank has an output.
func (a *ask) writes(rank int) bool {
	return a.collective.Contract().Output != schedule.AtRoot || rank == a.root
}

// local reports whether a rank keeps its own data. A collective that combines nothing has operator 0, which is Add.
func (a *ask) local() bool { return !a.operator.Combines() }

// job is one call of a collective as it is carried out: on one operand, or on several that go together. An operand is a
// tensor, a slice, or what a mapping has on one IPU: an input and an output of the rank's own. The slices are by
// operand.
type job struct {
	ask
	ins, outs [][]byte
	dtypes    []tensor.DType
	elements  []int // in the larger of the rank's two buffers
	parts     []int // as in a call; nil for several operands
	question  route.Question

	// Of the fingerprint of several operands.
	common tensor.DType // the type of all; 0: they differ
	count  uint64       // elements of all inputs
	digest uint64

	scheduled, published keptLayout // that it was carried out with
}

// keptLayout is a layout found before.
type keptLayout struct {
	layout *pack.Layout
	number uint64
}

// good reports whether the layout, for cut chunks, is still the one that was kept.
func (k *keptLayout) good(cut int) bool {
	return k.layout != nil && k.layout.Number == k.number && k.layout.Chunks == cut
}

// keep remembers a layout.
func (k *keptLayout) keep(l *pack.Layout) { k.layout, k.number = l, l.Number }

// empty takes the operands out. Their memory serves the next ones.
func (j *job) empty() {
	*j = job{ins: j.ins[:0], outs: j.outs[:0], dtypes: j.dtypes[:0], elements: j.elements[:0]}
}

// add adds an operand that has been checked, of n elements in the larger buffer.
func (j *job) add(dst, src []byte, dtype tensor.DType, n int) {
	j.ins, j.outs = append(j.ins, src), append(j.outs, dst)
	j.describe(dtype, n)
}

// describe adds an operand without its buffers.
func (j *job) describe(dtype tensor.DType, n int) {
	j.dtypes, j.elements = append(j.dtypes, dtype), append(j.elements, n)
}

// one makes the job that a call on one operand is, of n elements in the larger buffer. It writes no more than it must:
// for a call of few bytes that shows.
func (j *job) one(k *call, n int) {
	if len(j.ins) == 0 {
		j.ins, j.outs, j.dtypes, j.elements = make([][]byte, 1), make([][]byte, 1), make([]tensor.DType, 1), make([]int, 1)
	}
	// Field by field: the bytes have just been written one by one, and to read them as a word stalls.
	j.collective, j.operator, j.root, j.parts = k.collective, k.operator, k.root, k.parts
	j.ins[0], j.outs[0], j.dtypes[0], j.elements[0] = k.src, k.dst, k.dtype, n
	j.scheduled.layout = nil
	j.askOne(k.parts != nil)
}

// forget has a job that one has made hold on to nobody's buffers.
func (j *job) forget() {
	if len(j.ins) > 0 {
		j.ins[0], j.outs[0], j.parts = nil, nil, nil
	}
}

// toPublish is how many elements of an operand a rank publishes, or the root: those of an input, which is empty
// elsewhere where the root deals parts out.
func (j *job) toPublish(t int) int {
	if j.collective.Contract().Deals() {
		return j.elements[t]
	}
	return len(j.ins[t]) / j.dtypes[t].Size()
}

// hashed is the bytes of the part of operand t that all ranks have: an input, or where the root deals parts out an
// output.
func (j *job) hashed(t int) int {
	if j.collective.Contract().Deals() {
		return len(j.outs[t])
	}
	return len(j.ins[t])
}

// askOne is the question of a job of one operand.
func (j *job) askOne(parts bool) {
	q := &j.question
	q.Collective, q.Local, q.Several, q.Parts = j.collective, j.local(), false, parts
	q.Bytes, q.Published = j.elements[0]*j.dtypes[0].Size(), j.toPublish(0)*j.dtypes[0].Size()
}

// sumUp completes a job of several operands: what chooses its route, and what must be equal on all ranks, which are the
// number, the order, the dtypes and shapes of the operands, and the mapping. shape adds the shape of an operand to a
// hash; nil: it has none.
func (j *job) sumUp(c *Comm, form form, shape func(hash uint64, t int) uint64) {
	j.digest, j.count = c.digest, 0
	if form == ofMapping {
		j.digest = wire.Mix(j.digest, 1<<63) // as no word that follows is
	}
	q := route.Question{Collective: j.collective, Local: j.local(), Several: true}
	for t, dtype := range j.dtypes {
		if t == 0 {
			j.common = dtype
		} else if j.common != dtype {
			j.common = 0
		}
		j.count += uint64(j.toPublish(t))
		q.Bytes += j.elements[t] * dtype.Size()
		q.Published += j.toPublish(t) * dtype.Size()
		switch {
		case shape != nil:
			j.digest = shape(j.digest, t)
		case form == ofMapping:
			j.digest = wire.Mix(wire.Mix(j.digest, uint64(dtype)<<32|1), uint64(j.elements[t]))
		default: // as a tensor of one dimension
			j.digest = wire.Mix(wire.Mix(j.digest, uint64(dtype)<<32|1), uint64(j.hashed(t)/dtype.Size()))
		}
	}
	q.Published = lane.RoundUp(q.Published, pack.Align)
	j.question = q
}

// foldOf is how inputs of a type are folded.
func (c *Comm) foldOf(a *ask, t kernel.Type) kernel.Fold {
	does := &operators[a.operator]
	return kernel.Fold{Op: does.fold, Type: t, Square: does.square, Wide: c.options.Reproducible}
}

// checkCall looks at the arguments of a call on one operand, and returns the elements of the larger buffer. Nothing has
// been sent.
func (c *Comm) checkCall(k *call) (n int, err error) {
	size, contract := c.Size(), k.collective.Contract()
	if contract.PerRank() && contract.Input != schedule.Whole {
		if err := checkRoom(k.part(contract), size, k.dtype); err != nil {
			return 0, err
		}
	}
	if contract.Combines {
		if err := k.operator.Accepts(k.dtype); err != nil {
			return 0, err
		}
	}
	switch {
	case contract.Input == schedule.Blocks && k.srcLen%size != 0:
		return 0, fmt.Errorf("%d elements do not divide into %d equal parts, one for each rank", k.srcLen, size)
	case contract.Rooted() && (k.root < 0 || k.root >= size):
		return 0, fmt.Errorf("root %d is not a rank of the group, 0 to %d", k.root, size-1)
	}
	n = c.larger(k)
	if contract.Rooted() {
		if err := c.checkRooted(k, contract, n); err != nil {
			return 0, err
		}
	} else if want := contract.Output.Elements(n, size); k.dstLen != want {
		return 0, fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks", k.dstLen, want, k.srcLen, size)
	}
	return n, c.checkOverlap(k)
}

// part is what takes room on all ranks, once for each: an input, or where the root deals parts out an output. Blocks
// have room as they are.
func (k *call) part(contract schedule.Contract) int {
	switch {
	case contract.Deals():
		return k.dstLen
	case contract.Input == schedule.Own:
		return k.srcLen
	}
	return 0
}

// checkRooted looks at the lengths of a call with a root, of n elements in the larger buffer. A buffer that does not
// count on this rank may be missing, and is left out of the call.
func (c *Comm) checkRooted(k *call, contract schedule.Contract, n int) error {
	size, atRoot := c.Size(), c.Rank() == k.root
	switch want := contract.Output.Elements(n, size); {
	case contract.Deals() && atRoot && k.srcLen%size != 0:
		return fmt.Errorf("%d elements at the root do not divide into %d equal parts, one for each rank", k.srcLen, size)
	case contract.Deals() && atRoot && k.srcLen != n:
		return fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks", k.dstLen, k.srcLen/size, k.srcLen, size)
	case contract.Deals() && k.srcLen != 0 && k.srcLen != n:
		return fmt.Errorf("the input has %d elements, want none or %d: only the root's is read", k.srcLen, n)
	case contract.Output == schedule.AtRoot && !atRoot && k.dstLen != 0 && k.dstLen != want:
		return fmt.Errorf("the destination has %d elements, want none or %d: only the root's is written", k.dstLen, want)
	case (contract.Output != schedule.AtRoot || atRoot) && k.dstLen != want:
		return fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks", k.dstLen, want, k.srcLen, size)
	}
	if !k.writes(c.Rank()) {
		k.dst = nil
	}
	if contract.Deals() && !atRoot {
		k.src = nil
	}
	return nil
}

// checkAsk looks at the part of a call that is the same for all operands.
func (c *Comm) checkAsk(a *ask) error {
	switch contract := a.collective.Contract(); {
	case a.collective == schedule.Barrier:
		return errors.New("a barrier has no operands: want Comm.Barrier")
	case !a.collective.Valid():
		return fmt.Errorf("unknown collective %d", a.collective)
	case contract.Combines && !operatorNames.Valid(a.operator):
		return operatorNames.Check(a.operator)
	case !contract.Combines && a.operator != 0:
		return fmt.Errorf("%s combines nothing: its operator is %v, want 0", wire.WithArticle(a.collective), a.operator)
	case contract.Rooted() && (a.root < 0 || a.root >= c.Size()):
		return fmt.Errorf("root %d is not a rank of the group, 0 to %d", a.root, c.Size()-1)
	case !contract.Rooted() && a.root != 0:
		return fmt.Errorf("%s has no root: its root is %d, want 0", wire.WithArticle(a.collective), a.root)
	}
	return nil
}

// errNilContext is what a call without a context gets.
var errNilContext = errors.New("nil context")

// larger is the number of elements in the larger of a rank's two buffers.
func (c *Comm) larger(k *call) int {
	if k.parts != nil {
		return k.parts[c.Size()]
	}
	return k.collective.Contract().Elements(k.count(c.Size()), c.Size())
}

// count is the elements of an input that a call tells of: where the root deals parts out, those of the root's.
func (k *call) count(ranks int) int {
	if k.collective.Contract().Deals() {
		return k.dstLen * ranks
	}
	return k.srcLen
}

// checkOverlap refuses a destination that shares memory with the input, unless it is the input or, where one is
// smaller, its own place in the larger.
func (c *Comm) checkOverlap(k *call) error {
	if !lane.Overlap(k.dst, k.src) {
		return nil
	}
	dst, src := lane.Address(k.dst), lane.Address(k.src)
	apart, side := dst-src, "after"
	if dst < src {
		apart, side = src-dst, "before"
	}
	place, where := uintptr(0), "be the input itself"
	switch contract := k.collective.Contract(); {
	case contract.Output == schedule.Own:
		place, where = uintptr(c.Rank()*len(k.dst)), "be the rank's own shard of the input"
	case contract.Input == schedule.Own:
		place, where = uintptr(c.Rank()*len(k.src)), "hold the input as the rank's own shard"
		dst, src = src, dst
	}
	if dst != src+place {
		return fmt.Errorf("the destination begins %d bytes %s the input and overlaps it; it must lie apart or %s", apart, side, where)
	}
	return nil
}

// preparations are the jobs on several operands that a lane keeps, without their buffers. Programs make the same few
// calls on the same buffers again and again, and looking at hundreds of tensors takes longer than to reduce them when
// they are small. A Batch is kept by its owner.
type preparations struct {
	words  []uint64 // of the call in progress: addresses, lengths, dtypes and shapes, and what is asked for
	all    []*prepared
	last   int // used
	oldest int // the next one to be given up
	passes prepared
}

// prepared is a job, and all the words that it depends on; none if it is good for one call only.
type prepared struct {
	job
	words []uint64
}

// maxPreparations bounds what is kept: of a call on 1,000 slices some 64 KiB.
const maxPreparations = 32

// find returns the job of the call in progress, or nil.
func (ps *preparations) find() *prepared {
	for i := range ps.all {
		at := (ps.last + i) % len(ps.all)
		if p := ps.all[at]; slices.Equal(p.words, ps.words) {
			ps.last = at
			return p
		}
	}
	return nil
}

// place is where to put the job of a call. With passing it is not to be found again.
func (ps *preparations) place(passing bool) *prepared {
	p := &ps.passes
	switch {
	case passing:
	case len(ps.all) < maxPreparations:
		p = &prepared{}
		ps.last = len(ps.all)
		ps.all = append(ps.all, p)
	default:
		p, ps.last = ps.all[ps.oldest], ps.oldest
		ps.oldest = (ps.oldest + 1) % maxPreparations
	}
	p.empty()
	p.words = p.words[:0]
	return p
}
