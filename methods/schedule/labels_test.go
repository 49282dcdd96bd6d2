package schedule_test

import (
	"errors"
	"fmt"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestLabelsLieApart draws all methods and collectives in space and time: no text lies on another.
func TestLabelsLieApart(t *testing.T) {
	t.Parallel()
	for _, m := range methods.All() {
		for _, c := range schedule.Collectives() {
			for _, n := range []int{2, 3, 8, 12, 32} {
				ring := make([]int, n)
				for i := range ring {
					ring[i] = i
				}
				s, err := methods.Build(methods.Spec{Method: m, Collective: c, Size: n, Ring: ring, Second: ring})
				if errors.Is(err, errors.ErrUnsupported) {
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				schedule.MustLieApart(t, fmt.Sprintf("method=%v/collective=%v/n=%d", m, c, n), s)
			}
		}
	}
}
