package price

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"gogcl.dev/gcl/internal/carry"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
)

// pricedPhase is a phase of Hybrid, or several like it.
type pricedPhase struct {
	Pricer
	across bool
	times  int
}

// phases are those of a call by Hybrid, that across first.
func (p Pricer) phases(h *carry.Hybrid) []pricedPhase {
	var out []pricedPhase
	for _, part := range h.Of(p.Collective, p.Elements) {
		w := h.Inside
		if part.Across {
			w = h.Across
		}
		phase := p
		phase.Caller, phase.Elements = w, part.Elements
		phase.Ask = job.Ask{Collective: part.Collective, Reduction: p.Reduction}
		out = append(out, pricedPhase{phase, part.Across, part.Times})
	}
	return out
}

// inPhases is Hybrid with all its phases, one after the other. Its method is that of the phase across.
func (p Pricer) inPhases(h *carry.Hybrid) (Candidate, error) {
	out := Candidate{Implementation: route.Hybrid}
	for i, phase := range p.phases(h) {
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

// whyHybrid is the method across link domains of a call in phases, and the reason, as in "direct across 2 link domains,
// since ...; direct inside, ...".
func (p Pricer) whyHybrid() (methods.Method, string, error) {
	all := p.phases(p.Hybrid)
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
	why := fmt.Sprintf("%v across %d link domains, %s; %v inside, among %s; Hybrid, as the options ask",
		r.Method, p.Hybrid.Domains, reason, inside.Method, Ranks(p.Hybrid.Each))
	return r.Method, why + because(p.Setting.Method, cmp.Or(skipped, skippedInside)), nil
}
