package methods_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	methods.KeepTable(t) // so it does not run in parallel
	star, err := methods.NewProver("star", methods.StarForTests)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := methods.ParseRules([]byte("all-reduce 2- 0 direct"))
	if err != nil {
		t.Fatal(err)
	}
	built, err := methods.StarForTests(methods.Request{Spec: methods.Spec{Size: 3}})
	if err != nil {
		t.Fatal(err)
	}
	spec := methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 3}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Build": methods.Build, "All": methods.All, "Values": methods.Values, "Parse": methods.Parse,
			"Examine":     methods.Examine,
			"IPULinks":    methods.IPULinks,
			"MemoryLinks": methods.MemoryLinks, "EngineLinks": methods.EngineLinks,
			"SocketLinks": methods.SocketLinks, "NetworkLinks": methods.NetworkLinks,
			"HalvingDoubling": methods.HalvingDoubling, "Circulant": methods.Circulant,
			"Bruck": methods.Bruck, "PAT": methods.PAT,
			"KNomialTree": methods.KNomialTree, "DoubleBinaryTree": methods.DoubleBinaryTree,
			"Gallery": methods.Gallery, "TorusRings": methods.TorusRings, "Hierarchical": methods.Hierarchical,
			"SwingTorus": methods.SwingTorus,
			"Swing":      methods.Swing, "SwingTraffic": methods.SwingTraffic,
			"ParseRules": methods.ParseRules, "DefaultRules": methods.DefaultRules, "RulesOn": methods.RulesOn,
			"Register": methods.Register, "Named": methods.Named, "NewProver": methods.NewProver, "Fixed": methods.Fixed,
			"ProveSchedule": methods.ProveSchedule,
		},
		Types: []any{methods.Method(0), methods.Spec{}, methods.Tuning{}, methods.Request{}, methods.Prover{},
			methods.Proved{}, methods.GeneratorFunc(nil), methods.Listed{}, methods.Rules{}, methods.Rule{},
			methods.Case{}, methods.RulesError{}, methods.AnyImplementation},
		Values: []any{methods.Direct, methods.ClockwiseRing, spec, methods.IPULinks(), methods.SocketLinks(),
			schedule.AllReduce, []int{0, 1, 2}, []int{1, 0, 2}, "star", star, built, methods.StarForTests,
			methods.Request{Spec: spec}, methods.HalvingDoubling(), methods.Circulant(), methods.KNomialTree(2),
			methods.DoubleBinaryTree(2), methods.Bruck(), methods.PAT(2), methods.TorusRings(), methods.Hierarchical(2),
			methods.SwingTorus(true), rules, methods.Tuning{Rules: rules}, methods.Case{Ranks: 4}},
	})
}
