package chunks_test

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"testing"

	"gogcl.dev/chunks"
)

// floorMul is floor(n*f/k) by big integers.
func floorMul(n, k, f int) int {
	product := new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(f)))
	return int(product.Quo(product, big.NewInt(int64(k))).Int64())
}

func TestSplitNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n, k int
		want string
	}{
		{10, 4, "[0 2)[2 5)[5 7)[7 10)"},
		{3, 4, "[0 0)[0 1)[1 2)[2 3)"},
		{0, 3, "[0 0)[0 0)[0 0)"},
		{1, 2, "[0 0)[0 1)"},
		{7, 1, "[0 7)"},
		{8, 4, "[0 2)[2 4)[4 6)[6 8)"},
	} {
		var got strings.Builder
		for f := range c.k {
			lo, hi := chunks.Split(c.n, c.k, f)
			got.WriteString(fmt.Sprintf("[%d %d)", lo, hi))
		}
		if got.String() != c.want {
			t.Errorf("%d in %d pieces: %s, want %s", c.n, c.k, got.String(), c.want)
		}
	}
}

// Every small n and k: the rule itself, no gap, lengths that differ by at most one.
func TestSplitSmall(t *testing.T) {
	t.Parallel()
	for n := range 70 {
		for k := 1; k <= 40; k++ {
			end := 0
			for f := range k {
				lo, hi := chunks.Split(n, k, f)
				if lo != n*f/k || hi != n*(f+1)/k || lo != end {
					t.Fatalf("n=%d k=%d f=%d: %d to %d after %d", n, k, f, lo, hi, end)
				}
				if size := hi - lo; size != n/k && size != (n+k-1)/k {
					t.Fatalf("n=%d k=%d f=%d: %d elements", n, k, f, size)
				}
				end = hi
			}
			if end != n {
				t.Fatalf("n=%d k=%d: pieces end at %d", n, k, end)
			}
		}
	}
}

func TestSplitLarge(t *testing.T) {
	t.Parallel()
	sizes := []int{math.MaxInt, math.MaxInt - 1, math.MaxInt / 2, math.MaxInt32, math.MaxInt32 - 1, 1<<31 - 1 - 4095,
		1 << 20}
	pieces := []int{1, 2, 3, 4095, 4096, 16384, math.MaxInt32, math.MaxInt}
	for shift := 40; shift < 63 && shift < math.MaxInt>>58; shift++ { // none where int has 32 bits
		sizes = append(sizes, 1<<shift, 1<<shift+1)
	}
	for _, n := range sizes {
		for _, k := range pieces {
			for _, f := range []int{0, 1, k / 3, k / 2, k - 2, k - 1} {
				if f < 0 || f >= k {
					continue
				}
				lo, hi := chunks.Split(n, k, f)
				wantHi := n
				if f < k-1 {
					wantHi = floorMul(n, k, f+1)
				}
				if wantLo := floorMul(n, k, f); lo != wantLo || hi != wantHi {
					t.Errorf("n=%d k=%d f=%d: %d to %d, want %d to %d", n, k, f, lo, hi, wantLo, wantHi)
				}
			}
		}
	}
}

func TestPerRank(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ n, ranks, want int }{
		{3, 2, 2}, {4, 2, 2}, {0, 5, 0}, {1, 5, 1}, {5, 5, 1}, {6, 5, 2}, {-1, 2, 0}, {3, 0, 0}, {3, -1, 0},
		{math.MaxInt, 1, math.MaxInt}, {math.MaxInt, 2, math.MaxInt/2 + 1}, {1, math.MaxInt, 1},
	} {
		if got := chunks.PerRank(c.n, c.ranks); got != c.want {
			t.Errorf("%d elements on %d ranks: %d, want %d", c.n, c.ranks, got, c.want)
		}
	}
}

// The pieces of every method of m pieces per rank meet the shards: rank r's are [r*c, (r+1)*c), clipped.
func TestSplitPaddedMeetsShards(t *testing.T) {
	t.Parallel()
	for n := range 60 {
		for ranks := 1; ranks <= 17; ranks++ {
			c := chunks.PerRank(n, ranks)
			for _, m := range []int{1, 2, 4} {
				k, end := m*ranks, 0
				for f := range k {
					lo, hi := chunks.SplitPadded(n, ranks, k, f)
					padded := c * ranks
					if lo != min(n, padded*f/k) || hi != min(n, padded*(f+1)/k) || lo != end {
						t.Fatalf("n=%d ranks=%d k=%d f=%d: %d to %d after %d", n, ranks, k, f, lo, hi, end)
					}
					if r := f / m; lo < min(n, r*c) || hi > min(n, (r+1)*c) {
						t.Fatalf("n=%d ranks=%d k=%d f=%d: %d to %d leaves the shard of rank %d",
							n, ranks, k, f, lo, hi, r)
					}
					end = hi
				}
				if end != n {
					t.Fatalf("n=%d ranks=%d k=%d: pieces end at %d", n, ranks, k, end)
				}
			}
		}
	}
}

func TestSplitPaddedLarge(t *testing.T) {
	t.Parallel()
	// The padded length is more than an int holds.
	n, ranks := math.MaxInt, math.MaxInt-1
	if lo, hi := chunks.SplitPadded(n, ranks, ranks, ranks/2); lo != ranks/2*2 || hi != n {
		t.Errorf("middle piece %d to %d", lo, hi)
	}
	if lo, hi := chunks.SplitPadded(n, ranks, ranks, ranks-1); lo != n || hi != n {
		t.Errorf("last piece %d to %d, want it empty at %d", lo, hi, n)
	}
}

func TestNoSuchPiece(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]int{{-1, 2, 0}, {5, 0, 0}, {5, -3, 0}, {5, 2, -1}, {5, 2, 2}, {math.MinInt, 1, 0},
		{5, math.MinInt, math.MinInt}} {
		if lo, hi := chunks.Split(c[0], c[1], c[2]); lo != 0 || hi != 0 {
			t.Errorf("Split%v: %d to %d", c, lo, hi)
		}
		if lo, hi := chunks.SplitPadded(c[0], 2, c[1], c[2]); lo != 0 || hi != 0 {
			t.Errorf("SplitPadded%v: %d to %d", c, lo, hi)
		}
	}
	if lo, hi := chunks.SplitPadded(5, 0, 2, 1); lo != 0 || hi != 0 {
		t.Errorf("no rank: %d to %d", lo, hi)
	}
}

func BenchmarkSplit(b *testing.B) {
	for _, k := range []int{8, 4096} {
		b.Run(fmt.Sprintf("k=%d/n=2^20+1", k), func(b *testing.B) {
			f, sum := 0, 0
			for b.Loop() {
				lo, hi := chunks.Split(1<<20+1, k, f)
				sum += hi - lo
				f = (f + 1) & (k - 1)
			}
			if sum < 0 {
				b.Fatal(sum)
			}
		})
	}
}

func BenchmarkSplitPadded(b *testing.B) {
	f, sum := 0, 0
	for b.Loop() {
		lo, hi := chunks.SplitPadded(1<<20+1, 8, 32, f)
		sum += hi - lo
		f = (f + 1) & 31
	}
	if sum < 0 {
		b.Fatal(sum)
	}
}
