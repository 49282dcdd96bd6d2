package measure

import (
	"math"
	"testing"

	"gogcl.dev/methods/schedule"
)

func TestBusFactor(t *testing.T) {
	for _, c := range []struct {
		collective schedule.Collective
		n          int
		want       float64
	}{
		{schedule.AllReduce, 1, 0}, {schedule.AllReduce, 2, 1}, {schedule.AllReduce, 8, 1.75},
		{schedule.ReduceScatter, 2, .5}, {schedule.ReduceScatter, 8, .875}, {schedule.AllGather, 4, .75}, {schedule.AllToAll, 4, .75},
		{schedule.Broadcast, 1, 1}, {schedule.Broadcast, 8, 1}, {schedule.Reduce, 1, 1}, {schedule.Reduce, 8, 1}, {schedule.Gather, 4, .75}, {schedule.Scatter, 4, .75},
		{schedule.Custom, 4, 0}, {schedule.AllReduce, 0, 0},
	} {
		if got := Collective(c.collective).BusFactor(c.n); got != c.want {
			t.Errorf("%v over %d: %v, want %v", c.collective, c.n, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	for _, c := range []struct {
		q, want float64
		sorted  []float64
	}{
		{.5, 3, []float64{3}}, {.99, 3, []float64{3}}, {.5, 1.5, []float64{1, 2}}, {.5, 2, []float64{1, 2, 9}}, {1, 9, []float64{1, 2, 9}}, {0, 1, []float64{1, 2, 9}},
		{.9, 9, []float64{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}},
	} {
		if got := Quantile(c.sorted, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v of %v: %v, want %v", c.q, c.sorted, got, c.want)
		}
	}
}

func TestGeometricMean(t *testing.T) {
	if got := GeometricMean([]float64{.5, 4, 32}); math.Abs(got-4) > 1e-12 {
		t.Errorf("%v, want 4", got)
	}
}

func TestFillAndCompare(t *testing.T) {
	block := make([]byte, period*4)
	for i := range block {
		block[i] = byte(i * i * 7 >> 3)
	}
	for _, n := range []int{0, 1, 4092, 4093, 4094, 10000} {
		for _, first := range []int{0, 1, 4092, 4093, 5000} {
			buf := make([]byte, n*4)
			fill(buf, block, 4, first)
			for i := range n {
				if at := (first + i) % period * 4; string(buf[i*4:i*4+4]) != string(block[at:at+4]) {
					t.Fatalf("%d elements from %d: element %d", n, first, i)
				}
			}
			if wrong, _ := compare(buf, block, 4, first); wrong != 0 {
				t.Fatalf("%d elements from %d: %d wrong", n, first, wrong)
			}
			for _, i := range []int{0, n / 2, n - 1} {
				if n == 0 {
					continue
				}
				buf[i*4+3] ^= 1
				if wrong, where := compare(buf, block, 4, first); wrong != 1 || where != i {
					t.Fatalf("%d elements from %d: %d wrong at %d, want one at %d", n, first, wrong, where, i)
				}
				buf[i*4+3] ^= 1
			}
		}
	}
}
