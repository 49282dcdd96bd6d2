package methods_test

import (
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	spec := methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 3}
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Build": methods.Build, "All": methods.All, "Values": methods.Values, "Parse": methods.Parse,
			"Examine":     methods.Examine,
			"IPULinks":    methods.IPULinks,
			"MemoryLinks": methods.MemoryLinks, "EngineLinks": methods.EngineLinks,
			"SocketLinks": methods.SocketLinks, "NetworkLinks": methods.NetworkLinks,
			"Swing": methods.Swing, "SwingTraffic": methods.SwingTraffic,
		},
		Types: []any{methods.Method(0), methods.Spec{}, methods.Tuning{}},
		Values: []any{methods.Direct, methods.ClockwiseRing, spec, methods.IPULinks(), methods.SocketLinks(),
			schedule.AllReduce, []int{0, 1, 2}, []int{1, 0, 2}},
	})
}
