package schedule

import "sort"

// compact has the programs of a schedule in a third of the memory of its Steps, and nothing for rounds without steps.
// It is a source.
type compact struct {
	programs []compactProgram
	buffer   []Step // of the round that was asked for last
}

// compactProgram is the program of one rank.
type compactProgram struct {
	length int
	rounds []compactRound // those that have steps
	steps  []compactStep  // of all rounds: moves, then those after the moves

	strides []compactStrides // the first has no stride

	// The round that was asked for last, where a search begins. It is here so that asking again touches no more memory.
	at      int
	current compactRound // rounds[at]; behind the last one, number length
	before  int32        // the number of rounds[at-1], or -1
}

type compactRound struct {
	number       int32
	first        int32 // of its steps
	moves, after int32 // how many
}

// compactStep is a Step in 40 bytes rather than 128. Its spans are of one length where there are two.
type compactStep struct {
	peer     int32
	count    int32
	src, dst compactSpan
	strides  int32 // index into compactProgram.strides
	verb     Verb
}

// compactStrides is what makes the spans of a step strided, of none all 0. Steps that follow each other often share it.
type compactStrides struct{ srcStride, srcRun, dstStride, dstRun int32 }

type compactSpan struct {
	slot, base, first int32 // slot -1 is the Input, -2 the Output, -3 no span
}

const (
	compactInput  = -1 - int32(Input)
	compactOutput = -1 - int32(Output)
	compactNone   = -3
)

// pack packs a program. It has been checked: all numbers fit, and two spans of a step are of one length.
func pack(p Program) compactProgram {
	rounds, steps := 0, 0
	for _, r := range p {
		if n := len(r.Moves) + len(r.Then); n > 0 {
			rounds++
			steps += n
		}
	}
	out := compactProgram{length: len(p), rounds: make([]compactRound, 0, rounds), steps: make([]compactStep, 0, steps),
		strides: make([]compactStrides, 1)}
	for t, r := range p {
		if len(r.Moves)+len(r.Then) == 0 {
			continue
		}
		out.rounds = append(out.rounds, compactRound{int32(t), int32(len(out.steps)), int32(len(r.Moves)),
			int32(len(r.Then))})
		for i := range r.Moves {
			out.steps = append(out.steps, out.packStep(&r.Moves[i]))
		}
		for i := range r.Then {
			out.steps = append(out.steps, out.packStep(&r.Then[i]))
		}
	}
	out.set(0)
	return out
}

func (p *compactProgram) packStep(st *Step) compactStep {
	out := compactStep{peer: int32(st.Peer), count: int32(max(st.Src.Count, st.Dst.Count)), src: packSpan(&st.Src),
		dst: packSpan(&st.Dst), verb: st.Verb}
	if st.Src.Stride != 0 || st.Dst.Stride != 0 {
		have := compactStrides{int32(st.Src.Stride), int32(st.Src.Run), int32(st.Dst.Stride), int32(st.Dst.Run)}
		if p.strides[len(p.strides)-1] != have {
			p.strides = append(p.strides, have)
		}
		out.strides = int32(len(p.strides) - 1)
	}
	return out
}

func packSpan(sp *Span) compactSpan {
	out := compactSpan{slot: int32(sp.Slot), base: int32(sp.Base), first: int32(sp.First)}
	switch {
	case sp.Count == 0:
		out.slot = compactNone
	case sp.Buf != Scratch:
		out.slot = -1 - int32(sp.Buf)
	}
	return out
}

func (p *compactProgram) step(at *compactStep) Step {
	st := Step{Verb: at.verb, Peer: int(at.peer), Src: at.src.span(at.count), Dst: at.dst.span(at.count)}
	if at.strides > 0 {
		have := &p.strides[at.strides]
		st.Src.Stride, st.Src.Run = int(have.srcStride), int(have.srcRun)
		st.Dst.Stride, st.Dst.Run = int(have.dstStride), int(have.dstRun)
	}
	return st
}

func (p compactSpan) span(count int32) Span {
	switch p.slot {
	case compactNone:
		return Span{}
	case compactInput, compactOutput:
		return Span{Buf: Buffer(-1 - p.slot), First: int(p.first), Count: int(count)}
	}
	return Span{Buf: Scratch, Slot: int(p.slot), Base: int(p.base), First: int(p.first), Count: int(count)}
}

func (p *compact) length(rank int) int { return p.programs[rank].length }

func (p *compact) steps() int64 {
	n := int64(0)
	for i := range p.programs {
		n += int64(len(p.programs[i].steps))
	}
	return n
}

func (p *compact) next(rank, t int) int {
	of := &p.programs[rank]
	of.find(t)
	return int(of.current.number)
}

func (p *compact) round(rank, t int) Round {
	of := &p.programs[rank]
	of.find(t)
	r := of.current
	p.buffer = p.buffer[:0]
	steps := of.steps[r.first : r.first+r.moves+r.after]
	for i := range steps {
		p.buffer = append(p.buffer, of.step(&steps[i]))
	}
	return Round{Moves: p.buffer[:r.moves:r.moves], Then: p.buffer[r.moves:]}
}

// find makes the first round with steps from round t on the current one.
func (p *compactProgram) find(t int) {
	switch {
	case int(p.before) < t && t <= int(p.current.number):
		return
	case p.at < len(p.rounds) && int(p.current.number) < t:
		p.set(p.at + 1)
	}
	if int(p.before) >= t || int(p.current.number) < t {
		p.set(sort.Search(len(p.rounds), func(i int) bool { return int(p.rounds[i].number) >= t }))
	}
}

// set makes a round the current one.
func (p *compactProgram) set(at int) {
	p.at, p.before, p.current = at, -1, compactRound{number: int32(p.length)}
	if at > 0 {
		p.before = p.rounds[at-1].number
	}
	if at < len(p.rounds) {
		p.current = p.rounds[at]
	}
}
