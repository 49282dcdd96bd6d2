package gcl

import (
	"fmt"
	"math"
	"time"

	"gogcl.dev/chunks"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// pricedPhase is a phase of Hybrid, or several like it.
type pricedPhase struct {
	pricer
	times int
}

// phases are those of a call by Hybrid, that across first: see the functions of the type phases.
func (p pricer) phases(h *hybrid) []pricedPhase {
	n, size := p.elements, p.Size()
	phase := func(c *Comm, collective schedule.Collective, elements, times int) pricedPhase {
		return pricedPhase{pricer{c, &call{collective: collective, dtype: p.call.dtype}, elements}, times}
	}
	switch collective := p.call.collective; collective {
	case schedule.AllReduce:
		shard := chunks.PerRank(n, h.each)
		return []pricedPhase{
			phase(h.across, collective, shard, 1),
			phase(h.inside, schedule.ReduceScatter, n, 1),
			phase(h.inside, schedule.AllGather, shard*h.each, 1),
		}
	case schedule.ReduceScatter:
		shard, times := chunks.PerRank(n, size), 1
		if n > 0 {
			times = (n + shard*h.each - 1) / (shard * h.each)
		}
		return []pricedPhase{phase(h.across, collective, shard*h.domains, 1), phase(h.inside, collective, shard*h.each, times)}
	case schedule.AllGather:
		return []pricedPhase{phase(h.across, collective, n/h.each, 1), phase(h.inside, collective, n/h.domains, h.domains)}
	case schedule.AllToAll:
		return []pricedPhase{phase(h.across, collective, n, 1), phase(h.inside, collective, n/h.domains, h.domains)}
	}
	return []pricedPhase{phase(h.across, schedule.Broadcast, n, 1), phase(h.inside, schedule.Broadcast, n, 1)}
}

// inPhases is Hybrid with all its phases, one after the other. Its method is that of the phase across.
func (p pricer) inPhases(h *hybrid) (Candidate, error) {
	out := Candidate{Implementation: Hybrid}
	for i, phase := range p.phases(h) {
		method := phase.method(phase.call, phase.elements)
		var c Candidate
		var err error
		switch {
		case phase.Comm == h.across:
			c, err = phase.messages(method)
		case p.lane.memory == nil:
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
			out.SentBytes = saturatedSum(out.SentBytes, c.SentBytes)
			out.Estimate = time.Duration(saturatedSum(int64(out.Estimate), int64(c.Estimate)))
		}
	}
	return out, nil
}

// saturatedSum is the sum of two numbers that are not negative, or the greatest there is.
func saturatedSum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// whyHybrid is the reason for a call in phases, as in "direct across 2 link domains, since ...; direct inside, ...".
func (p pricer) whyHybrid(h *hybrid) string {
	all := p.phases(h)
	across, inside := all[0], all[1]
	method := across.method(across.call, across.elements)
	reason := "as the options ask"
	if p.options.Method == methods.Auto {
		reason = "since " + across.tuning().Why(across.call.collective, across.Size(), int64(across.elements)*int64(p.call.dtype.Size()), p.strided)
	}
	return fmt.Sprintf("%v across %d link domains, %s; %v inside, among %s; Hybrid, as the options ask",
		method, h.domains, reason, inside.method(inside.call, inside.elements), ranks(h.each))
}
