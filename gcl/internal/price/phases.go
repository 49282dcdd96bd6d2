package price

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/internal/cheapest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// pricedPhase is a phase of Hybrid, or several like it.
type pricedPhase struct {
	Pricer
	across bool
	times  int
}

// phases are those of a call by Hybrid, that across first. They are those of rank 0, so that all members have the same
// prices.
func (p Pricer) phases(h *carry.Hybrid, way phases.Way) []pricedPhase {
	var out []pricedPhase
	for _, part := range h.Of(p.Collective, way, p.Elements) {
		phase := p
		if phase.Caller = h.FirstInside; part.Across {
			phase.Caller = h.FirstAcross
			if way == phases.ByAll {
				phase.beside = h.Places
			}
		}
		phase.Elements, phase.Ask = part.Elements, job.Ask{Collective: part.Collective, Reduction: p.Reduction}
		out = append(out, pricedPhase{phase, part.Across, part.Times})
	}
	return out
}

// inPhases is Hybrid with all its phases, one after the other. Its method is that of the phase across.
func (p Pricer) inPhases(h *carry.Hybrid, way phases.Way) (Candidate, error) {
	out := Candidate{Implementation: route.Hybrid}
	sent := make([]int64, h.Each) // by place
	for i, phase := range p.phases(h, way) {
		resolved, r, _, err := phase.resolve()
		if err != nil {
			return Candidate{}, err
		}
		phase.Pricer = resolved
		method := r.Method
		var c Candidate
		switch {
		case phase.across:
			c, err = phase.messages(method)
		case !phase.Setting.Memory:
			c, err = phase.withBarriers(method)
		case method == methods.Direct:
			c = phase.onePass()
		default:
			c, err = phase.stepped(method)
		}
		if err != nil {
			return Candidate{}, err
		}
		if i == 0 {
			out.Method = method
		}
		out.Rounds += c.Rounds * phase.times
		out.Barriers += c.Barriers * phase.times
		for range phase.times {
			out.Estimate = time.Duration(saturatedSum(int64(out.Estimate), int64(c.Estimate)))
		}
		for place := range sent {
			bytes := c.SentBytes
			switch {
			case way == phases.ByAll: // as much at every place, but for the root's, which sends most in all phases
			case phase.across && place > 0:
				bytes = 0
			case !phase.across && !phase.Setting.Memory:
				if bytes, err = phase.sentBy(place, method); err != nil {
					return Candidate{}, err
				}
			}
			for range phase.times {
				sent[place] = saturatedSum(sent[place], bytes)
			}
		}
	}
	out.SentBytes = slices.Max(sent)
	return out, nil
}

// sentBy is what one rank sends by a method.
func (p Pricer) sentBy(rank int, m methods.Method) (int64, error) {
	s, err := p.schedule(p.specOf(m))
	if err != nil {
		return 0, err
	}
	alone := *s
	alone.Programs = make([]schedule.Program, s.Size)
	alone.Programs[rank] = s.Programs[rank]
	e, err := p.Model.Price(&alone, p.Group.Members, p.bytes())
	return e.SentBytes, err
}

// together is a schedule that so many groups carry out at the same time, one group's ranks after the other's.
func together(s *schedule.Schedule, groups int) *schedule.Schedule {
	out := *s
	out.Size, out.Programs = s.Size*groups, nil
	for g := range groups {
		for _, program := range s.Programs {
			var moved schedule.Program
			for _, round := range program {
				round.Moves = slices.Clone(round.Moves)
				for i := range round.Moves {
					round.Moves[i].Peer += g * s.Size
				}
				moved = append(moved, round)
			}
			out.Programs = append(out.Programs, moved)
		}
	}
	return &out
}

// saturatedSum is the sum of two numbers that are not negative, or the greatest there is.
func saturatedSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// crossing is who crosses between link domains in a call by Hybrid, and why.
type crossing struct {
	phases.Way
	another bool             // there is another way
	bytes   int64            // that were priced: the class
	times   [2]time.Duration // by each way; 0: without a price
}

// crossing chooses the way that takes least time, or the usual one where both take as long, or a price is missing, or
// domains differ inside, of which a member knows no more than the class of their links.
func (p Pricer) crossing(h *carry.Hybrid) (c crossing) {
	usual, another := phases.Usual(p.Collective)
	c.Way, c.another = usual, another
	if !another || !h.Alike {
		return c
	}
	c.bytes = 1 << cheapest.ClassOf(int64(p.question().Bytes))
	p.DType, p.Elements = tensor.U8, int(c.bytes)
	var times [2]time.Duration
	for way := range times {
		x, err := p.inPhases(h, phases.Way(way))
		if err != nil {
			return c
		}
		times[way] = x.Estimate
	}
	if c.times = times; times[usual.Other()] < times[usual] {
		c.Way = usual.Other()
	}
	return c
}

// Way is who crosses between link domains in the calls by Hybrid.
func (p Pricer) Way(h *carry.Hybrid) phases.Way { return p.crossing(h).Way }

// String is the reason, as in "by leaders, since ...".
func (c crossing) String() string {
	switch by, other := c.Way, c.Other(); {
	case !c.another:
		return "by all members, which is the only way"
	case c.bytes == 0:
		return fmt.Sprintf("by %v, since link domains differ inside", by)
	case c.times == [2]time.Duration{}:
		return fmt.Sprintf("by %v, since not both ways have a price", by)
	default:
		return fmt.Sprintf("by %v, since at %d bytes, the nearest power of two, that takes %v, and by %v %v", by, c.bytes,
			c.times[by], other, c.times[other])
	}
}

// whyHybrid is the method across link domains of a call in phases, and the reason, as in "direct across 2 link domains,
// since ...; direct inside, ...".
func (p Pricer) whyHybrid() (methods.Method, string, error) {
	crossing := p.crossing(p.Hybrid)
	all := p.phases(p.Hybrid, crossing.Way)
	across, r, skipped, err := all[0].resolve()
	if err != nil {
		return 0, "", err
	}
	_, inside, skippedInside, err := all[1].resolve()
	if err != nil {
		return 0, "", err
	}
	reason := "as the options ask"
	switch r.Because {
	case route.AsTuned:
		reason = "since " + across.whyTuned()
	case route.AsRuled:
		reason = "by " + across.whyRuled()
	}
	why := fmt.Sprintf("%v across %d link domains, %s; %v inside, among %s; Hybrid, as the options ask; %v",
		r.Method, p.Hybrid.Domains, reason, inside.Method, Ranks(p.Hybrid.Each), crossing)
	return r.Method, why + because(p.Setting.Method, cmp.Or(skipped, skippedInside)), nil
}
