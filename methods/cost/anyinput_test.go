package cost_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	whole, err := topology.New(topology.Config{Replicas: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	graph, err := cost.ParseGraph([]byte("replicas 3\nlink 0 1 1e9 1us\nlink 1 2 1e9 1us"))
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{"FatTree": cost.FatTree, "LengthsOf": cost.LengthsOf, "Machine": cost.Machine,
			"ParseGraph": cost.ParseGraph, "ParseNetwork": cost.ParseNetwork, "Price": cost.Price,
			"TopologyOf": cost.TopologyOf, "Torus": cost.Torus},
		Types: []any{cost.Bound{}, cost.Estimate{}, cost.Graph{}, cost.Lengths{}, cost.Level{}, cost.Link{},
			cost.Model{}},
		Values: []any{whole, s, []int{0, 1, 2}, []int{3, 2, 1}, int64(1000), graph, cost.Model{Network: graph}, fast,
			"torus:3x2", "fattree:3x2:1e9,1us", "clique:2+1",
			cost.Level{Children: 2, Link: fast}, &schedule.Traffic{Size: 3, Chunks: 3,
				Rounds: []schedule.Alike{{Times: 2, Flows: []schedule.Flow{{Move: 1, Chunks: 1}}},
					{Times: 1, Flows: []schedule.Flow{{All: true, Without: 2, Chunks: 1}}}}}},
	})
}
