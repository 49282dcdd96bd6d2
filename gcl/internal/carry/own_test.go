package carry

import (
	"testing"

	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// TestProgramsOfALaterMethod: a rule may name a method for which a generator is registered only after a call. What had
// none then is not skipped for ever.
func TestProgramsOfALaterMethod(t *testing.T) {
	m, err := methods.Named("registered_later")
	if err != nil {
		t.Fatal(err)
	}
	var prover *methods.Prover
	w := Caller{Carrier: &Carrier{ProverOf: func(methods.Method) *methods.Prover { return prover }},
		Group: NewGroup([]int{0, 1}, 0, topology.Rings{}, 0)}
	spec := methods.Spec{Method: m, Collective: schedule.AllGather, Size: 2}
	if _, err := w.programs(rounds.Key{Method: m}, spec, route.AsRuled); err != errSkipped {
		t.Errorf("without a generator: %v", err)
	}
	if prover, err = methods.NewProver("registered_later", methods.Bruck()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.programs(rounds.Key{Method: m}, spec, route.AsRuled); err != nil || got.Proved == nil {
		t.Errorf("with one: %v, %v", got, err)
	}
}
