package msccl_test

import (
	"strings"
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{"Read": msccl.Read, "Write": msccl.Write},
		Types:     []any{msccl.File{}},
		Values: []any{&strings.Builder{}, &msccl.File{Name: "a", Schedule: &schedule.Schedule{Size: 1, Chunks: 1,
			Programs: []schedule.Program{{{Then: []schedule.Step{{Verb: schedule.Copy, Peer: -1, Src: schedule.In(0, 1),
				Dst: schedule.Out(0, 1)}}}}}}}},
	})
}
