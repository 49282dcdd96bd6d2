package main

import (
	"math"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

func TestBusFactor(t *testing.T) {
	for _, c := range []struct {
		collective collective
		n          int
		want       float64
	}{
		{allReduce, 1, 0}, {allReduce, 2, 1}, {allReduce, 8, 1.75},
		{reduceScatter, 2, .5}, {reduceScatter, 8, .875}, {allGather, 4, .75}, {allToAll, 4, .75},
		{broadcast, 1, 1}, {broadcast, 8, 1},
	} {
		if got := c.collective.busFactor(c.n); got != c.want {
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
		if got := quantile(c.sorted, c.q); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%v of %v: %v, want %v", c.q, c.sorted, got, c.want)
		}
	}
}

func TestPlan(t *testing.T) {
	for _, c := range []struct {
		s             settings
		each          float64
		calls, spans  int
		about, orMore bool
	}{
		{s: settings{time: 100 * time.Millisecond}, each: 1e-6, calls: 5000, spans: 20},
		{s: settings{time: 100 * time.Millisecond}, each: 1e-7, calls: 20000, spans: 50},
		{s: settings{time: 10 * time.Millisecond}, each: 1e-6, calls: 1000, spans: 10}, // 1 ms at least
		{s: settings{time: 100 * time.Millisecond}, each: .05, calls: 1, spans: 5},
		{s: settings{time: 100 * time.Second}, each: .05, calls: 100, spans: 20},
		{s: settings{time: time.Hour}, each: 1e-6, calls: 20000, spans: 200},
		{s: settings{time: time.Hour, iters: 1}, each: 1e-6, calls: 1, spans: 1},
		{s: settings{time: time.Hour, iters: 20}, each: .05, calls: 1, spans: 20},
		{s: settings{time: time.Hour, iters: 20}, each: 1e-6, calls: 20, spans: 1},
		{s: settings{time: time.Hour, iters: 30}, each: .05, calls: 2, spans: 15},
		{s: settings{time: time.Hour, iters: 100_000}, each: 1e-6, calls: 5000, spans: 20},
		{s: settings{time: 100 * time.Millisecond, sync: true}, each: 1e-3, calls: 1, spans: 100},
		{s: settings{time: 100 * time.Millisecond, sync: true}, each: 1, calls: 1, spans: 7},
		{s: settings{time: time.Hour, sync: true}, each: 1e-6, calls: 1, spans: 200_000},
		{s: settings{time: time.Hour, sync: true, iters: 17}, each: 1e-6, calls: 1, spans: 17},
	} {
		calls, spans := plan(&c.s, c.each)
		if math.Abs(float64(calls-c.calls)) > 1 || math.Abs(float64(spans-c.spans)) > 1 || c.s.iters > 0 && calls*spans < c.s.iters {
			t.Errorf("time %v, iters %d, sync %v, %v s each: %d calls %d times, want %d and %d", c.s.time, c.s.iters, c.s.sync, c.each, calls, spans, c.calls, c.spans)
		}
	}
}

// TestExact checks that partial results are exact: every prefix fits what the type can hold, whatever the number of
// replicas.
func TestExact(t *testing.T) {
	limits := map[tensor.DType]int64{tensor.BF16: 1 << 8, tensor.F16: 1 << 11, tensor.F32: 1 << 24, tensor.F64: 1 << 53}
	for _, n := range []int{2, 3, 8, 64, 255, 256, 257, 300, 1000, 5000} {
		for d, limit := range limits {
			for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.SquareAdd, gcl.Mul} {
				v := values{dtype: d, op: op, n: n}
				for i := range 50 {
					sum := int64(0) // of magnitudes, so that no order can exceed it
					if op == gcl.Mul {
						sum = 1
					}
					for r := range n {
						x := max(v.of(r, i), -v.of(r, i))
						switch op {
						case gcl.SquareAdd:
							sum += x * x
						case gcl.Mul:
							sum *= x
						default:
							sum += x
						}
					}
					if sum > limit {
						t.Fatalf("%v of %d replicas in %v: %d at index %d", op, n, d, sum, i)
					}
				}
			}
		}
	}
}

// TestDiffers checks that values tell replicas and places apart, and that a reduction misses each replica.
func TestDiffers(t *testing.T) {
	for _, d := range tensor.DTypes() {
		for _, op := range operators(d) {
			v := values{dtype: d, op: op, n: 8}
			p := newPattern(d, op, 8)
			size := d.Size()
			for r := range 8 {
				moved, own, without := 0, 0, 0
				for i := range period - 1 {
					at := func(block []byte, i int) string { return string(block[i*size : (i+1)*size]) }
					if at(p.result(r), i) != at(p.result(r), i+1) {
						moved++
					}
					if at(p.inputs[r], i) != at(p.inputs[(r+1)%8], i) {
						own++
					}
					rest := v
					rest.n = 7
					if folds(v, i, -1) != folds(v, i, r) {
						without++
					}
				}
				if moved < period/5 || own < period/20 || op != gcl.Local && without < period/60 {
					t.Errorf("%v of %v, replica %d: of %d places %d differ from the next, %d from the next replica, %d from the result without it", op, d, r, period, moved, own, without)
				}
			}
		}
	}
}

// folds is the reduction at index i of all replicas but one.
func folds(v values, i, but int) (acc int64) {
	first := true
	for r := range v.n {
		x := v.of(r, i)
		if v.op == gcl.SquareAdd {
			x *= x
		}
		switch {
		case r == but:
		case first:
			acc, first = x, false
		case v.op == gcl.Mul:
			acc *= x
		case v.op == gcl.Min || v.op == gcl.LogicalAnd:
			acc = min(acc, x)
		case v.op == gcl.Max || v.op == gcl.LogicalOr:
			acc = max(acc, x)
		default:
			acc += x
		}
	}
	return acc
}

func TestFillAndCompare(t *testing.T) {
	block := make([]byte, period*4)
	for i := range block {
		block[i] = byte(mix(uint64(i)))
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
