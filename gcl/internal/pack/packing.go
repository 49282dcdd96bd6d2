package pack

import (
	"unsafe"

	"gogcl.dev/gcl/internal/memory"
	"gogcl.dev/internal/kernel"
)

// numTypes is one more than the last element type.
const numTypes = int(kernel.Float64) + 1

// Packing is how several tensors are folded where they lie packed.
type Packing struct {
	*Layout
	how    kernel.Fold // but for the type
	by     int         // what FoldMany divides by, if it is more than 1
	ready  bool        // the loops are those of how
	Binary [numTypes]func(dst, a, b []byte)
	Second [numTypes]func(dst, a, b []byte) // Binary with a behind b
	Many   [numTypes]func(dsts, srcs [][]byte, by int, stream bool)

	folders    []*folder
	dsts, srcs [][]byte // of one stretch
	single     [1][]byte
}

// SetUp makes ready for a call.
func (p *Packing) SetUp(l *Layout, how kernel.Fold, by int) {
	p.Layout, p.by = l, by
	p.Loops(how)
}

// Loops finds the loops for all types.
func (p *Packing) Loops(how kernel.Fold) {
	if p.ready && p.how == how {
		return
	}
	for t := range numTypes { // nil where there is no such operator
		of := how
		of.Type = kernel.Type(t)
		p.Binary[t], p.Second[t], p.Many[t] = kernel.Binary(of.Op, of.Type), kernel.Second(of.Op, of.Type), of.Loop()
	}
	p.how, p.ready = how, true
}

// Fold folds two operands into dst, which lies at byte at of the packing. Padding is left out.
func (p *Packing) Fold(at int, dst, a, b []byte) { p.fold(&p.Binary, at, dst, a, b) }

// fold is Fold by these loops.
func (p *Packing) fold(loops *[numTypes]func(dst, a, b []byte), at int, dst, a, b []byte) {
	end := at + len(dst)
	for _, s := range p.stretches[p.stretchAt(at):] {
		lo, hi := max(s.at, at)-at, min(s.end, end)-at
		if lo >= hi {
			return
		}
		loops[s.work](dst[lo:hi], a[lo:hi], b[lo:hi])
	}
}

// FoldMany folds operands into dsts, which lie at byte at of the packing. Padding is left out.
func (p *Packing) FoldMany(at int, dsts, srcs [][]byte) {
	for len(p.dsts) < len(dsts) {
		p.dsts = append(p.dsts, nil)
	}
	for len(p.srcs) < len(srcs) {
		p.srcs = append(p.srcs, nil)
	}
	end := at + len(dsts[0])
	for _, s := range p.stretches[p.stretchAt(at):] {
		lo, hi := max(s.at, at)-at, min(s.end, end)-at
		if lo >= hi {
			break
		}
		for i := range dsts {
			p.dsts[i] = dsts[i][lo:hi]
		}
		for i := range srcs {
			p.srcs[i] = srcs[i][lo:hi]
		}
		p.Many[s.work](p.dsts[:len(dsts)], p.srcs[:len(srcs)], p.by, false)
	}
	clear(p.dsts) // hold on to nobody's buffers
	clear(p.srcs)
}

// Combine implements transport.Combiner for whole packings.
func (p *Packing) Combine(dst []byte, all [][]byte) {
	p.single[0] = dst
	p.FoldMany(0, p.single[:], all)
	p.single[0] = nil
}

// folder is the fold of one receive: it knows where in the packing the receive's buffer lies, and finds a piece of it
// by its address.
type folder struct {
	packing *Packing
	second  bool // the first operand comes behind the other
	buf     *byte
	at      int
	fold    func(dst, a, b []byte) // its own method, which would be an allocation each time
}

// FoldInto is the fold of transfer i of a batch, into buf, which lies at byte at of the packing; with second the
// transfer's own operand comes behind what arrives. It is good until the next batch.
func (p *Packing) FoldInto(i int, buf []byte, at int, second bool) func(dst, a, b []byte) {
	for len(p.folders) <= i {
		f := &folder{packing: p}
		f.fold = f.piece
		p.folders = append(p.folders, f)
	}
	f := p.folders[i]
	f.buf, f.at, f.second = unsafe.SliceData(buf), at, second
	return f.fold
}

// piece is a transport.Transfer's Fold: dst is a piece of buf.
func (f *folder) piece(dst, a, b []byte) {
	loops := &f.packing.Binary
	if f.second {
		loops = &f.packing.Second
	}
	f.packing.fold(loops, f.at+int(memory.Address(dst)-uintptr(unsafe.Pointer(f.buf))), dst, a, b)
}
