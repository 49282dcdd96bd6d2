package chunks_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"gogcl.dev/chunks"
)

func TestMapping(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mapping  chunks.Mapping
		elements int
		ranks    int
		perRank  int
	}{
		{nil, 0, 4, 0},
		{chunks.Mapping{0, 0}, 0, 1, 0},
		{chunks.Mapping{3, 1}, 4, 4, 2}, // SEMANTICS: x, y, z on IPU 0 and w on IPU 1
		{chunks.Mapping{3, 1}, 4, 2, 3},
		{chunks.Mapping{3, 1}, 4, 1, 4},
		{chunks.Mapping{0, 5, 0, 8}, 13, 4, 4},
		{chunks.Mapping{1, 1, 1}, 3, 100, 3},
		{chunks.Mapping{math.MaxInt - 1, 1}, math.MaxInt, 1, math.MaxInt},
		{chunks.Mapping{math.MaxInt}, math.MaxInt, math.MaxInt, 1},
	} {
		if got, err := c.mapping.Elements(); err != nil || got != c.elements {
			t.Errorf("%v has %d elements, %v; want %d", c.mapping, got, err, c.elements)
		}
		if got, err := c.mapping.PerRank(c.ranks); err != nil || got != c.perRank {
			t.Errorf("%v over %d ranks: %d each, %v; want %d", c.mapping, c.ranks, got, err, c.perRank)
		}
		if err := c.mapping.Check(c.elements); err != nil {
			t.Errorf("%v for %d elements: %v", c.mapping, c.elements, err)
		}
	}
}

// TestMappingPerRank compares with the segments one by one.
func TestMappingPerRank(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		m, ranks, want := make(chunks.Mapping, r.IntN(6)), 1+r.IntN(9), 0
		for i := range m {
			m[i] = r.IntN(20)
			want += chunks.PerRank(m[i], ranks)
		}
		if got, err := m.PerRank(ranks); err != nil || got != want {
			t.Errorf("%v over %d ranks: %d each, %v; want %d", m, ranks, got, err, want)
		}
	}
}

// TestMappingErrors: each names what disagrees.
func TestMappingErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mapping chunks.Mapping
		n       int
		want    []string
	}{
		{chunks.Mapping{3, 1}, 5, []string{"4 elements", "2 IPUs", "the data 5"}},
		{chunks.Mapping{3, 1}, 0, []string{"4 elements", "the data 0"}},
		{nil, 2, []string{"0 elements", "the data 2"}},
		{chunks.Mapping{4, -1}, 3, []string{"-1 elements on IPU 1"}},
		{chunks.Mapping{math.MinInt, math.MaxInt}, -1, []string{"elements on IPU 0"}},
		{chunks.Mapping{math.MaxInt, 1}, math.MinInt, []string{"more elements than an int"}},
		{chunks.Mapping{math.MaxInt, math.MaxInt, 2}, 0, []string{"more elements than an int"}},
	} {
		err := c.mapping.Check(c.n)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "chunks: ") {
				t.Errorf("%v for %d elements: %v, want %q", c.mapping, c.n, err, want)
			}
		}
		if _, err := c.mapping.PerRank(2); (err == nil) != (c.want[0] == "4 elements" || c.want[0] == "0 elements") {
			t.Errorf("%v over 2 ranks: %v", c.mapping, err)
		}
	}
	for _, ranks := range []int{0, -1} {
		if _, err := (chunks.Mapping{3}).PerRank(ranks); err == nil ||
			!strings.Contains(err.Error(), fmt.Sprintf("%d ranks", ranks)) {
			t.Errorf("over %d ranks: %v", ranks, err)
		}
	}
}
