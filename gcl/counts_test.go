package gcl

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestBoundsOf: where parts begin, and the counts that are refused.
func TestBoundsOf(t *testing.T) {
	const most = maxBytes / 8
	for _, x := range []struct {
		unit   int
		counts []int
		want   any // bounds, or what the error says
	}{
		{1, []int{3, 0, 2}, []int{0, 3, 3, 5}},
		{4, []int{3, 0, 2}, []int{0, 12, 12, 20}},
		{0, []int{3, math.MaxInt, 2}, []int{0, 0, 0, 0}}, // rows of nothing
		{1, []int{0, most, 0}, []int{0, 0, most, most}},
		{1, []int{0, most, 1}, "the counts take more than "},
		{1, []int{1, most, 0}, "the counts take more than "},
		{2, []int{0, most/2 + 1, 0}, "the counts take more than "},
		{math.MaxInt, []int{0, 2, 0}, "the counts take more than "},
		{1, []int{math.MaxInt, 3, math.MaxInt}, "the counts take more than "},
		{1, []int{3, -1, 2}, "-1 in the counts of rank 1, want 0 or more"},
		{1, []int{math.MinInt, 0, 0}, " in the counts of rank 0, want 0 or more"},
		{1, []int{3, 2}, "2 counts, want 3: one for each rank"},
		{1, nil, "0 counts, want 3: one for each rank"},
	} {
		n := byCounts(x.counts, nil)
		n.unit = x.unit
		got, err := n.boundsOf([]int{9, 9}, x.counts, "counts", 3, 8)
		switch want := x.want.(type) {
		case []int:
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%v by %d: %v, %v, want %v", x.counts, x.unit, got, err, want)
			}
		case string:
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v by %d: %v, want an error that says %q", x.counts, x.unit, err, want)
			}
		}
	}
}
