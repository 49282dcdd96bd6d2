package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// manyVariants are calls on several tensors of some length, any two of which differ, and how errors describe them.
func manyVariants(size int) []variant {
	f := func(lengths ...int) [][]float32 {
		out := make([][]float32, len(lengths))
		for t, n := range lengths {
			out[t] = make([]float32, n)
		}
		return out
	}
	zeros := func(dtype tensor.DType, shape ...int) *tensor.Tensor {
		t, err := tensor.New(dtype, shape...)
		if err != nil {
			panic(err)
		}
		return t
	}
	sum := func(name, text string, call func(ctx context.Context, c *gcl.Comm) error) variant {
		return variant{name: name, text: []string{text}, call: call}
	}
	floats := func(total int) string { return fmt.Sprintf(" #1 (ADD tensors, float32 x %d in all, ", total) }
	reduce := func(name string, lengths ...int) variant {
		total := 0
		for _, n := range lengths {
			total += n
		}
		text := floats(total)
		if total == 0 {
			text = " #1 (ADD tensors, 0 elements in all, "
		}
		return sum(name, text, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, f(lengths...), gcl.Add)
		})
	}
	onTensors := func(name, text string, ts ...*tensor.Tensor) variant {
		return sum(name, text, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsInPlace(ctx, c, clones(ts), gcl.Add)
		})
	}
	mapped := func(name string, m chunks.Mapping) variant {
		return sum(name, "reduce-scatter"+floats(3*size), func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatterMapped(ctx, c, make([]float32, 3*size), m, gcl.Add)
			return err
		})
	}
	a, b := size, 2*size
	return []variant{
		reduce("base", a, b),
		reduce("order", b, a),
		reduce("lengths", a-1, b+1),
		reduce("one length", a, b+8),
		reduce("number", a, a, a),
		reduce("an empty one more", a, 0, b),
		reduce("no tensors"),
		onTensors("shapes", floats(3*size), zeros(tensor.F32, 8, size/8), zeros(tensor.F32, b)),
		onTensors("dtypes", fmt.Sprintf("(ADD tensors, %d elements in all, ", 3*size), zeros(tensor.F32, a),
			zeros(tensor.I32, b)),
		onTensors("dtypes in another order", fmt.Sprintf("(ADD tensors, %d elements in all, ", 3*size),
			zeros(tensor.I32, a), zeros(tensor.F32, b)),
		onTensors("dtype", fmt.Sprintf("(ADD tensors, int32 x %d in all, ", 3*size), zeros(tensor.I32, a),
			zeros(tensor.I32, b)),
		sum("operator", fmt.Sprintf("(MAX tensors, float32 x %d in all, ", 3*size),
			func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceManyInPlace(ctx, c, f(a, b), gcl.Max)
			}),
		sum("one tensor", fmt.Sprintf("all-reduce #1 (ADD float32 x %d, ", 3*size),
			func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, make([]float32, 3*size), gcl.Add)
			}),
		sum("collective", "reduce-scatter"+floats(3*size), func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatterMany(ctx, c, f(a, b), gcl.Add)
			return err
		}),
		mapped("mapping", chunks.Mapping{a, b}),
		mapped("another mapping", chunks.Mapping{b, a}),
		mapped("a mapping with an IPU more", chunks.Mapping{a, b, 0}),
		sum("root 0", fmt.Sprintf("broadcast #1 (tensors, float32 x %d in all, root 0", 3*size),
			func(ctx context.Context, c *gcl.Comm) error {
				return batchInPlace(ctx, c, schedule.Broadcast, f(a, b), 0, 0)
			}),
		sum("root 1", fmt.Sprintf("broadcast #1 (tensors, float32 x %d in all, root 1", 3*size),
			func(ctx context.Context, c *gcl.Comm) error {
				return batchInPlace(ctx, c, schedule.Broadcast, f(a, b), 0, 1)
			}),
	}
}

// manyMismatchOptions are the ways that the tests of mismatches go: by messages, and on peer memory by steps and in
// one pass.
var manyMismatchOptions = []gcl.Options{
	{Method: methods.ClockwiseRing, Implementation: gcl.Syncless}, {Method: methods.Direct, Implementation: gcl.Syncless},
	{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, {},
}

// confuseMany is confuse with options. The text says what differs where the description of both calls is the same.
func confuseMany(ctx context.Context, t *testing.T, n, odd int, o gcl.Options, theirs, ours variant) []string {
	in := func(v variant) variant {
		call := v.call
		v.call = func(ctx context.Context, c *gcl.Comm) error {
			err := call(ctx, withOptions(c, o))
			if err != nil && theirs.text[0] == ours.text[0] && errors.Is(err, gcl.ErrMismatch) &&
				!strings.Contains(err.Error(), "tensors, mapping or options differ") {
				return fmt.Errorf("hides what differs: %v", err)
			}
			return err
		}
		return v
	}
	return confuse(ctx, t, n, odd, in(theirs), in(ours))
}

// TestManyMismatch tries every pair of calls, in bubbles in which a hang would end at once: small tensors and such as
// have messages of their own or are read where they lie.
func TestManyMismatch(t *testing.T) {
	tried := 0
	for _, size := range []int{24, 12000} {
		for _, n := range []int{2, 3, 4} {
			all := manyVariants(size)
			for i, theirs := range all {
				for j, ours := range all {
					for k, o := range manyMismatchOptions {
						odd := (i + j + k) % n
						if i == j || underRace && (i*7+j*3+k)%(4*n) != 0 || !*full && (i+j+k+n)%4 != 0 {
							continue
						}
						tried++
						var wrong []string
						synctest.Test(t, func(t *testing.T) {
							wrong = confuseMany(watched(t), t, n, odd, o, theirs, ours)
						})
						for _, w := range wrong {
							t.Errorf("%+v: %s", o, w)
						}
					}
				}
			}
		}
	}
	t.Logf("%d cases", tried)
}

// TestManyMismatchInRealTime tries some of the same while others still run.
func TestManyMismatchInRealTime(t *testing.T) {
	for _, size := range []int{24, 12000} {
		for _, n := range []int{2, 4} {
			all := manyVariants(size)
			for i := range all {
				for _, w := range confuseMany(watched(t), t, n, i%n, manyMismatchOptions[i%len(manyMismatchOptions)],
					all[i], all[(i+1)%len(all)]) {
					t.Error(w)
				}
			}
		}
	}
}
