package msccl

import (
	"fmt"

	"gogcl.dev/methods/schedule"
)

// maxRounds bounds the rounds of all ranks together.
const maxRounds = 1 << 22

// schedule collects what has been placed. All ranks have as many rounds.
func (p *placer) schedule() (*schedule.Schedule, error) {
	count := 1 // up to the last one with messages
	for _, r := range p.ranks {
		for t, round := range r.rounds {
			if len(round.folds) > 0 {
				count = max(count, t+1)
			}
		}
	}
	for gpu := range p.ranks {
		p.end(gpu, count)
	}
	if count > maxRounds/len(p.ranks) {
		return nil, fmt.Errorf("msccl: %d rounds of %d gpus, want a product of at most %d", count, len(p.ranks),
			maxRounds)
	}
	for gpu := range p.ranks {
		p.finish(gpu, count)
	}
	out := &schedule.Schedule{Collective: p.collective, Size: len(p.gpus), Chunks: p.chunks, Apart: p.apart,
		Programs: make([]schedule.Program, len(p.gpus))}
	for gpu := range p.ranks {
		out.Programs[gpu] = make(schedule.Program, count)
	}
	// A rank's sends to a peer stand in the order of the peer's receives, before its own receives.
	for _, r := range p.ranks {
		for t, round := range r.rounds {
			for _, f := range round.folds {
				for _, l := range f.links {
					if l.from >= 0 {
						to := &out.Programs[l.from][t]
						to.Moves = append(to.Moves, l.send)
					}
				}
			}
		}
	}
	for gpu, r := range p.ranks {
		for t, round := range r.rounds {
			to := &out.Programs[gpu][t]
			for _, f := range round.folds {
				for _, l := range f.links {
					to.Moves = append(to.Moves, l.step)
				}
			}
			to.Then = round.then
		}
		for _, round := range out.Programs[gpu] {
			for _, steps := range [][]schedule.Step{round.Moves, round.Then} {
				for i := range steps {
					r.rebase(&steps[i].Src)
					r.rebase(&steps[i].Dst)
				}
			}
		}
	}
	return out, nil
}

// rebase writes into a span with which chunk its slot begins, where that was not settled before.
func (r *rank) rebase(sp *schedule.Span) {
	low, ok := r.lowest[int(sp.Slot)]
	if sp.Buf == schedule.Scratch && ok {
		*sp = schedule.Part(int(sp.Slot), low, int(sp.First), int(sp.Count))
	}
}

// end moves the local steps of rounds after the last of count into that. It may overwrite what it sends.
func (p *placer) end(gpu, count int) {
	rounds := p.ranks[gpu].rounds
	if len(rounds) <= count {
		return
	}
	last := &rounds[count-1]
	for _, r := range rounds[count:] {
		last.then = append(last.then, r.then...)
	}
	p.ranks[gpu].rounds = rounds[:count]
}

// finish copies results that lie elsewhere into the Output, in the first round that allows it. The last of count does.
func (p *placer) finish(gpu, count int) {
	buf := byte(output)
	if p.inPlace {
		buf = input
	}
	lo, hi := p.own(gpu, p.contract.Output)
	begin, end, round := home{}, home{}, -1 // of a run of results that go to the Output together
	first := 0
	flush := func() {
		if round >= 0 {
			to := home{buf: schedule.Output, number: first}
			p.local(gpu, round, schedule.Copy, to, begin, end.number-begin.number+1)
		}
		round = -1
	}
	for f := lo; f < hi; f++ {
		l := location{buf, f}
		c, place := p.initial(gpu, l), memory{-1, -1, -1, -1, -1}
		if known := p.ranks[gpu].cells[l]; known != nil {
			c = *known
		}
		if !c.holds || c.home.buf == schedule.Output {
			flush()
			continue
		}
		if used := p.ranks[gpu].memory[p.address(home{buf: schedule.Output, number: f})]; used != nil {
			place = *used
		}
		t := max(c.readThen, place.thenMayWrite())
		t = min(t, count-1)
		if round != t || !end.goesOn(c.home) {
			flush()
			begin, first, round = c.home, f, t
		}
		end = c.home
	}
	flush()
}
