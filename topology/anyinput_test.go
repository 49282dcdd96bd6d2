package topology_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/topology"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	whole, err := topology.New(topology.Config{Replicas: []int{4, 4}, IPUsPerReplica: 2})
	if err != nil {
		t.Fatal(err)
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"ParseRing": topology.ParseRing, "DefaultSpeeds": topology.DefaultSpeeds, "New": topology.New,
		},
		Types: []any{topology.Config{}, topology.Kind(0), topology.Link{}, topology.RingName(0), topology.Rings{},
			topology.Shape(0), topology.Speed{},
			topology.Speeds{}, topology.Topology{}},
		Values: []any{whole, topology.Config{Replicas: []int{4, 4}, IPUsPerReplica: 2}},
	})
}
