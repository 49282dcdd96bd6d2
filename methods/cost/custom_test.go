package cost_test

import (
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// TestPriceCustom: a chunk of a contract of a program's own has bytes by its size, of those of the longest buffer.
func TestPriceCustom(t *testing.T) {
	own := schedule.Experts([][]int{{0, 3}, {1, 4}}) // rank 1 ends with 7
	b := schedule.NewBuilderFor(own)
	b.Copy(0, 0, 1, 0, 1)
	b.Copy(0, 1, 0, 1, 1)
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	g, err := cost.ParseGraph([]byte("replicas 2\nlink 0 1 1e9 0s\n"))
	if err != nil {
		t.Fatal(err)
	}
	e, err := cost.Model{Network: g}.Price(s, []int{0, 1}, 7000)
	if err != nil || e.Rounds != 1 || e.SentBytes != 3000 || e.Time != 3*time.Microsecond {
		t.Errorf("%+v, %v", e, err)
	}
	own.Sizes[0] = -1
	if _, err := (cost.Model{Network: g}).Price(s, []int{0, 1}, 7000); err == nil ||
		!strings.Contains(err.Error(), "chunk 0 has size -1") {
		t.Error(err)
	}
	own.Sizes[0] = 3
	s.Chunks = 4
	if _, err := (cost.Model{Network: g}).Price(s, []int{0, 1}, 7000); err == nil || err.Error() !=
		"cost: a contract of 3 chunks and 2 ranks, and the schedule has 4 and 2" {
		t.Error(err)
	}
}
