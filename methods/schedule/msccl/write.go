package msccl

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Write writes a file. A gpu has a thread block for each peer that it sends to, one for each that it receives from, and
// one for local steps, all on channel 0. So no step waits for another than the data demands, and a runtime needs no
// buffer to get through. A schedule that is Apart becomes outofplace="1", any other inplace="1" and outofplace="1".
//
// It is an error, before anything is written, if f, its schedule or w is nil; if the collective is none of the table in
// the package comment (errors.ErrUnsupported); if the protocol or the bytes are out of their range; if there are more
// than 32,768 chunks or chunks of scratch at a rank, which the format has no numbers for; and if [schedule.Check]
// refuses the schedule. The format has no strides: a message of a strided span becomes one for each of its runs, or in
// an all-to-all one for each chunk. The runtimes have bounds of their own, which Write does not know: 64 to 512 steps a
// thread block, and some hundred thread blocks.
func Write(w io.Writer, f *File) error {
	switch {
	case w == nil:
		return errors.New("msccl: nothing to write to")
	case f == nil || f.Schedule == nil:
		return errors.New("msccl: no schedule to write")
	}
	maxBytes, protocol := cmp.Or(f.MaxBytes, defaultMaxBytes), cmp.Or(f.Protocol, protocols[0])
	s := f.Schedule
	i := slices.IndexFunc(names, func(n struct {
		collective schedule.Collective
		name       string
	}) bool {
		return n.collective == s.Collective
	})
	switch {
	case i < 0:
		return fmt.Errorf("msccl: the format has no %v: %w", s.Collective, errors.ErrUnsupported)
	case !slices.Contains(protocols, protocol):
		return fmt.Errorf("msccl: protocol %q, want one of %v", protocol, protocols)
	case f.MinBytes < 0 || f.MinBytes > maxBytes:
		return fmt.Errorf("msccl: %d to %d bytes, want a range", f.MinBytes, maxBytes)
	case s.Chunks > maxChunks:
		return fmt.Errorf("msccl: %d chunks, want at most %d", s.Chunks, maxChunks)
	case s.Again:
		return fmt.Errorf("msccl: the format has no contributions that count again: %w", errors.ErrUnsupported)
	}
	if err := schedule.Check(s); err != nil {
		return fmt.Errorf("msccl: only what is proved is written: %w", err)
	}
	out := newWriter(withoutStrides(s))
	for rank := range s.Programs {
		if n := out.ranks[rank].scratch; n > maxChunks {
			return fmt.Errorf("msccl: rank %d has %d chunks of scratch, want at most %d", rank, n, maxChunks)
		}
	}
	var b bytes.Buffer
	inPlace := 1
	if s.Apart {
		inPlace = 0
	}
	b.WriteString(`<algo name="`)
	_ = xml.EscapeText(&b, []byte(f.Name))
	fmt.Fprintf(&b, `" proto="%s" nchannels="1" nchunksperloop="%d" ngpus="%d" coll="%s" inplace="%d" outofplace="1" `+
		`minBytes="%d" maxBytes="%d">`+"\n", protocol, s.Chunks, s.Size, names[i].name, inPlace, f.MinBytes, maxBytes)
	for rank := range s.Programs {
		out.gpu(&b, rank)
	}
	b.WriteString("</algo>\n")
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("msccl: %w", err)
	}
	return nil
}

// written is a step as it is written.
type written struct {
	kind     string
	src, dst area
	waits    []stepOf // for others of its gpu
	needed   bool     // another waits for it
}

// stepOf is a step of a gpu's thread block.
type stepOf struct{ block, step int }

// peerOf is whom a thread block talks with.
type peerOf struct{ send, recv int }

// rankWriter makes the thread blocks of a gpu.
type rankWriter struct {
	scratch int         // chunks
	slots   map[int]int // by slot: where it begins in the scratch
	blocks  []peerOf
	index   map[peerOf]int
	steps   [][]written // by thread block

	writer  map[location]stepOf
	readers map[location][]stepOf
	met     []map[int]int // by thread block: up to which step of which other it has waited
}

// writer makes a file of a schedule that is proved.
type writer struct {
	*schedule.Schedule
	ranks []rankWriter
}

func newWriter(s *schedule.Schedule) *writer {
	w := &writer{Schedule: s}
	for _, p := range s.Programs {
		w.ranks = append(w.ranks, newRankWriter(p))
	}
	type pair struct{ from, to int }
	for t := range rounds(s) {
		// The i-th send to a peer meets the peer's i-th receive.
		receives, sends := map[pair][]area{}, map[pair][]area{}
		for rank, p := range s.Programs {
			if t >= len(p) {
				continue
			}
			for _, st := range p[t].Moves {
				switch st.Verb {
				case schedule.Send:
					k := pair{rank, int(st.Peer)}
					sends[k] = append(sends[k], w.area(rank, st.Src))
				case schedule.Recv, schedule.RecvReduce:
					k := pair{int(st.Peer), rank}
					receives[k] = append(receives[k], w.area(rank, st.Dst))
				}
			}
		}
		take := func(of map[pair][]area, k pair) area {
			a := of[k][0]
			of[k] = of[k][1:]
			return a
		}
		for rank, p := range s.Programs {
			if t >= len(p) {
				continue
			}
			for _, st := range p[t].Moves {
				peer := int(st.Peer)
				src, dst := w.area(rank, st.Src), w.area(rank, st.Dst)
				switch st.Verb {
				case schedule.Send:
					w.add(rank, peerOf{peer, -1}, written{kind: "s", src: src, dst: take(receives, pair{rank, peer})})
				case schedule.Recv:
					w.add(rank, peerOf{-1, peer}, written{kind: "r", src: take(sends, pair{peer, rank}), dst: dst})
				case schedule.RecvReduce:
					take(sends, pair{peer, rank})
					w.add(rank, peerOf{-1, peer}, written{kind: "rrc", src: src, dst: dst})
				default:
					w.add(rank, peerOf{-1, -1}, written{kind: "re", src: src, dst: dst})
				}
			}
			for _, st := range p[t].Then {
				kind := "cpy"
				if st.Verb == schedule.Fold {
					kind = "re"
				}
				w.add(rank, peerOf{-1, -1}, written{kind: kind, src: w.area(rank, st.Src), dst: w.area(rank, st.Dst)})
			}
		}
	}
	return w
}

// rounds is the number of rounds of the longest program.
func rounds(s *schedule.Schedule) int {
	n := 0
	for _, p := range s.Programs {
		n = max(n, len(p))
	}
	return n
}

// newRankWriter lays the slots of a program side by side in the scratch.
func newRankWriter(p schedule.Program) rankWriter {
	length := map[int]int{} // by slot
	var slots []int
	see := func(sp schedule.Span) {
		if sp.Buf != schedule.Scratch {
			return
		}
		slot := int(sp.Slot)
		if length[slot] == 0 {
			slots = append(slots, slot)
		}
		length[slot] = max(length[slot], int(sp.First+sp.Count-sp.Base))
	}
	for _, r := range p {
		for _, steps := range [][]schedule.Step{r.Moves, r.Then} {
			for _, st := range steps {
				if st.Verb != schedule.Recv {
					see(st.Src)
				}
				if st.Verb != schedule.Send {
					see(st.Dst)
				}
			}
		}
	}
	out := rankWriter{slots: map[int]int{}, index: map[peerOf]int{}, writer: map[location]stepOf{},
		readers: map[location][]stepOf{}}
	slices.Sort(slots)
	for _, slot := range slots {
		out.slots[slot] = out.scratch
		out.scratch += length[slot]
	}
	return out
}

// area is where a span lies in the format.
func (w *writer) area(rank int, sp schedule.Span) area {
	contract, first := w.Collective.Contract(), int(sp.First)
	own := rank * w.Chunks / w.Size
	switch {
	case sp.Buf == schedule.Scratch:
		return area{scratch, w.ranks[rank].slots[int(sp.Slot)] + first - int(sp.Base), int(sp.Count)}
	case sp.Buf == schedule.Input && contract.Input == schedule.Own:
		return area{input, first - own, int(sp.Count)}
	case sp.Buf == schedule.Input:
		return area{input, first, int(sp.Count)}
	case contract.Output == schedule.Own:
		return area{output, first - own, int(sp.Count)}
	}
	return area{output, first, int(sp.Count)}
}

// add adds a step to a thread block, with the steps that it waits for.
func (w *writer) add(rank int, peer peerOf, st written) {
	r := &w.ranks[rank]
	b, ok := r.index[peer]
	if !ok {
		b = len(r.blocks)
		r.index[peer] = b
		r.blocks, r.steps, r.met = append(r.blocks, peer), append(r.steps, nil), append(r.met, map[int]int{})
	}
	var waits []stepOf
	wait := func(on stepOf) {
		if on.block != b {
			waits = append(waits, on)
		}
	}
	k := kinds[slices.IndexFunc(kinds, func(k kind) bool { return k.name == st.kind })]
	if k.src {
		for _, l := range w.memory(rank, st.src) {
			if on, ok := r.writer[l]; ok {
				wait(on)
			}
		}
	}
	if k.dst {
		for _, l := range w.memory(rank, st.dst) {
			if on, ok := r.writer[l]; ok {
				wait(on)
			}
			for _, on := range r.readers[l] {
				wait(on)
			}
		}
	}
	last := map[int]int{} // of each other block
	for _, on := range waits {
		if step, ok := last[on.block]; !ok || on.step > step {
			last[on.block] = on.step
		}
	}
	for _, on := range waits {
		if met, ok := r.met[b][on.block]; last[on.block] == on.step && (!ok || met < on.step) {
			r.met[b][on.block] = on.step
			st.waits = append(st.waits, on)
			r.steps[on.block][on.step].needed = true
		}
	}
	for len(st.waits) > 1 { // a step waits for one other, so the rest are before it
		r.steps[b] = append(r.steps[b], written{kind: "nop", waits: st.waits[:1]})
		st.waits = st.waits[1:]
	}
	here := stepOf{b, len(r.steps[b])}
	if k.src {
		for _, l := range w.memory(rank, st.src) {
			r.readers[l] = append(r.readers[l], here)
		}
	}
	if k.dst {
		for _, l := range w.memory(rank, st.dst) {
			r.writer[l] = here
			delete(r.readers, l)
		}
	}
	r.steps[b] = append(r.steps[b], st)
}

// memory lists the chunks of an area. Those of input and output are one memory, unless they are apart.
func (w *writer) memory(rank int, a area) []location {
	contract := w.Collective.Contract()
	if a.buf == input && contract.Input == schedule.Own || a.buf == output && contract.Output == schedule.Own {
		a.first += rank * w.Chunks / w.Size
	}
	if a.buf == output && !w.Apart {
		a.buf = input
	}
	return a.locations()
}

// gpu writes the element of a rank.
func (w *writer) gpu(b *bytes.Buffer, rank int) {
	r, contract := &w.ranks[rank], w.Collective.Contract()
	chunks := func(h schedule.Holding) int {
		if h == schedule.Own {
			return w.Chunks / w.Size
		}
		return w.Chunks
	}
	fmt.Fprintf(b, `  <gpu id="%d" i_chunks="%d" o_chunks="%d" s_chunks="%d">`+"\n", rank, chunks(contract.Input),
		chunks(contract.Output), r.scratch)
	for i, peer := range r.blocks {
		fmt.Fprintf(b, `    <tb id="%d" send="%d" recv="%d" chan="0">`+"\n", i, peer.send, peer.recv)
		for s, st := range r.steps[i] {
			on, needed := stepOf{-1, -1}, 0
			if len(st.waits) > 0 {
				on = st.waits[0]
			}
			if st.needed {
				needed = 1
			}
			if st.kind == "nop" {
				st.src, st.dst = area{input, -1, 0}, area{output, -1, 0}
			}
			fmt.Fprintf(b, `      <step s="%d" type="%s" srcbuf="%c" srcoff="%d" dstbuf="%c" dstoff="%d" cnt="%d" depid="%d" `+
				`deps="%d" hasdep="%d"/>`+"\n", s, st.kind, st.src.buf, st.src.first, st.dst.buf, st.dst.first,
				max(st.src.count, st.dst.count), on.block, on.step, needed)
		}
		b.WriteString("    </tb>\n")
	}
	b.WriteString("  </gpu>\n")
}
