package gcl

import (
	"fmt"
	"math"
	"time"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// pricedPhase is a phase of Hybrid, or several like it.
type pricedPhase struct {
	pricer
	times int
}

// phases are those of a call by Hybrid, that across first: see the functions of the type phases.
func (p pricer) phases(h *hybrid) []pricedPhase { return phasingOf(p.collective).priced(p, h) }

// phase is a phase of p's call, of so many elements in the larger buffer, or several of them.
func (p pricer) phase(c *Comm, collective schedule.Collective, elements, times int) pricedPhase {
	return pricedPhase{pricer{c, ask{collective: collective}, p.dtype, elements}, times}
}

func (p pricer) allReducePhases(h *hybrid) []pricedPhase {
	shard := chunks.PerRank(p.elements, h.each)
	return []pricedPhase{
		p.phase(h.across, schedule.AllReduce, shard, 1),
		p.phase(h.inside, schedule.ReduceScatter, p.elements, 1),
		p.phase(h.inside, schedule.AllGather, shard*h.each, 1),
	}
}

func (p pricer) reduceScatterPhases(h *hybrid) []pricedPhase {
	shard, times := chunks.PerRank(p.elements, p.Size()), 1
	if p.elements > 0 {
		times = (p.elements + shard*h.each - 1) / (shard * h.each)
	}
	return []pricedPhase{
		p.phase(h.across, schedule.ReduceScatter, shard*h.domains, 1),
		p.phase(h.inside, schedule.ReduceScatter, shard*h.each, times),
	}
}

func (p pricer) allGatherPhases(h *hybrid) []pricedPhase {
	return []pricedPhase{
		p.phase(h.across, schedule.AllGather, p.elements/h.each, 1),
		p.phase(h.inside, schedule.AllGather, p.elements/h.domains, h.domains),
	}
}

func (p pricer) allToAllPhases(h *hybrid) []pricedPhase {
	return []pricedPhase{
		p.phase(h.across, schedule.AllToAll, p.elements, 1),
		p.phase(h.inside, schedule.AllToAll, p.elements/h.domains, h.domains),
	}
}

func (p pricer) broadcastPhases(h *hybrid) []pricedPhase {
	return []pricedPhase{p.phase(h.across, schedule.Broadcast, p.elements, 1), p.phase(h.inside, schedule.Broadcast, p.elements, 1)}
}

// inPhases is Hybrid with all its phases, one after the other. Its method is that of the phase across.
func (p pricer) inPhases(h *hybrid) (Candidate, error) {
	out := Candidate{Implementation: Hybrid}
	for i, phase := range p.phases(h) {
		method := phase.route().Method
		var c Candidate
		var err error
		switch {
		case phase.Comm == h.across:
			c, err = phase.messages(method)
		case !phase.setting.Memory:
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
	r := across.route()
	reason := "as the options ask"
	if r.Because == route.AsTuned {
		reason = "since " + across.setting.Tuning.Why(across.collective, across.Size(), int64(across.elements)*int64(p.dtype.Size()), p.strided)
	}
	return fmt.Sprintf("%v across %d link domains, %s; %v inside, among %s; Hybrid, as the options ask",
		r.Method, h.domains, reason, inside.route().Method, ranks(h.each))
}
