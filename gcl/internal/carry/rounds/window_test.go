package rounds

import (
	"testing"

	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// TestWindowLeavesTagsForAll: however many messages of however many tensors go between two ranks in one round, their
// windows have tags.
func TestWindowLeavesTagsForAll(t *testing.T) {
	const n = 8
	ring := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for _, m := range thinned.Constants() {
		for _, c := range schedule.Collectives() {
			spec := methods.Spec{Method: m, Collective: c, Size: n, Ring: ring, Second: ring}
			p, err := NewPlan(nil, Programs{Spec: spec}, 1, ring, false)
			if err != nil {
				t.Fatal(err)
			}
			for _, tensors := range []int{1, 2, 100, MaxRuns + 1} {
				runs := make([]Run, tensors)
				for i := range runs {
					runs[i] = Run{Elements: 1 << 20, ElemSize: 4, Segment: 32}
				}
				window := p.window(runs)
				if window < 1 || window > maxWindow {
					t.Errorf("%v %v of %d tensors: a window of %d", m, c, tensors, window)
				}
				for round := range p.rounds {
					messages := map[[2]int]int{} // by kind and peer
					for _, move := range p.rounds[round].moves {
						way := [2]int{0, move.peer}
						if move.kind == transport.Send {
							way[0] = 1
						}
						messages[way]++
					}
					for way, k := range messages {
						if tags := k * tensors * window; tags > transport.MaxTag+1 {
							t.Errorf("%v %v of %d tensors, round %d: %d tags with replica %d",
								m, c, tensors, round, tags, way[1])
						}
					}
				}
			}
		}
	}
}
