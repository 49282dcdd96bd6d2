package sim_test

import (
	"context"
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport/sim"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	model := cost.Model{Network: star(t, 3)}
	s := build(t, allReduceOf(methods.Direct, 3))
	newNet := func(c sim.Config) error { // whose endpoints are closed
		c.Wait = nil
		_, eps, err := sim.New(c)
		for _, e := range eps {
			e.Close()
		}
		return err
	}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{"New": newNet, "Replay": sim.Replay, "ReplayTraffic": sim.ReplayTraffic},
		Types:     []any{sim.Net{}, sim.Config{}, sim.Death{}, sim.Faults{}, sim.Partition{}, sim.Slow{}},
		Values: []any{context.Background(), model, s, []int{0, 1, 2}, int64(1000), sim.Config{Model: model},
			&schedule.Traffic{Size: 3, Chunks: 3,
				Rounds: []schedule.Alike{{Times: 2, Flows: []schedule.Flow{{Move: 1, Chunks: 1}}}}}},
	})
}
