package gcl_test

import (
	"context"
	"flag"
	"fmt"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// The axes of the tests against package oracle, apart where no code depends on both: see docs/design/testing.md.

// full multiplies the axes: every element type and operator by every method, implementation, group size and length.
var full = flag.Bool("full", false, "multiply the axes of the tests")

// testMethods are the methods that the tests try: the constants, Auto among them.
var testMethods = append(thinned.Constants(), methods.Auto)

// bothWays are the methods, each by messages and on peer memory.
func bothWays() []gcl.Options {
	var out []gcl.Options
	for _, m := range testMethods {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			out = append(out, gcl.Options{Method: m, Implementation: i})
		}
	}
	return out
}

// galleryWays are those of one method of the gallery, another one for each size of group.
func galleryWays(n int) []gcl.Options {
	all := thinned.Methods(n)
	m := all[len(all)-1]
	return []gcl.Options{{Method: m, Implementation: gcl.Syncless}, {Method: m, Implementation: gcl.Syncful}}
}

// eachMethod are the methods by the implementation that Auto takes.
func eachMethod() []gcl.Options {
	var out []gcl.Options
	for _, m := range testMethods {
		out = append(out, gcl.Options{Method: m})
	}
	return out
}

// fewWays are those that handle elements differently: in one pass, round by round on peer memory, by messages folded
// where they arrive, and folded in rank order after all have arrived.
func fewWays() []gcl.Options {
	return []gcl.Options{
		{},
		{Method: methods.RecursiveDoubling, Implementation: gcl.Syncful},
		{Method: methods.ClockwiseRing, Implementation: gcl.Syncless},
		{Method: methods.SendToAll, Implementation: gcl.Syncless},
	}
}

// crossed is one table of cases: all operators on all lengths by all ways, in a group of n.
type crossed struct {
	n         int
	operators []gcl.Operator
	sizes     []int
	ways      []gcl.Options
}

// TestOperatorMatrix tries every element type with every operator that takes it, by few methods, in small groups, on
// few lengths: float32 and bfloat16 by all methods in a group of three.
func TestOperatorMatrix(t *testing.T) {
	cross[bool](t, operatorCases[bool]())
	cross[int8](t, operatorCases[int8]())
	cross[int16](t, operatorCases[int16]())
	cross[int32](t, operatorCases[int32]())
	cross[int64](t, operatorCases[int64]())
	cross[uint8](t, operatorCases[uint8]())
	cross[uint16](t, operatorCases[uint16]())
	cross[uint32](t, operatorCases[uint32]())
	cross[uint64](t, operatorCases[uint64]())
	cross[tensor.Float16](t, operatorCases[tensor.Float16]())
	cross[tensor.BFloat16](t, operatorCases[tensor.BFloat16]())
	cross[float32](t, operatorCases[float32]())
	cross[float64](t, operatorCases[float64]())
}

func operatorCases[T tensor.Element]() (out []crossed) {
	groups := []int{1, 2, 3, 4}
	if *full {
		groups = groupSizes()
	}
	d := tensor.DTypeOf[T]()
	for _, n := range groups {
		x := crossed{n, operators[T](), []int{1, 97, 4099}, fewWays()}
		if *full || n == 3 && !underRace && (d == tensor.F32 || d == tensor.BF16) {
			x.ways = bothWays()
		}
		if *full {
			x.sizes = matrixSizes(n)
		}
		out = append(out, x)
	}
	return out
}

// TestMatrix tries every collective, method and implementation with every group size and length, in place and not,
// on two element types: float32, and bfloat16, whose partial results are wider than it is.
func TestMatrix(t *testing.T) {
	cross[float32](t, matrixCases(true))
	cross[tensor.BFloat16](t, matrixCases(false))
}

// matrixCases tries peer memory by every method in groups of up to nine, with thorough, or else of up to three: there
// every rank needs the plans of all.
func matrixCases(thorough bool) (out []crossed) {
	for _, n := range groupSizes() {
		x := crossed{n, []gcl.Operator{gcl.Add}, matrixSizes(n), eachMethod()}
		switch {
		case n <= 3 && !underRace, n <= 9 && thorough:
			x.ways = bothWays()
		case n > 16 || n > 9 && !thorough:
			x.sizes = []int{1, n + 1, 4099}
		}
		if underRace {
			x.sizes = []int{0, n + 1, 4099}
		}
		x.ways = append(x.ways, galleryWays(n)...)
		out = append(out, x)
	}
	return out
}

// matrixSizes are the lengths around the bounds at which methods divide data.
func matrixSizes(n int) []int { return []int{0, 1, n - 1, n, n + 1, 97, 4099} }

// cross tries tables on one element type, Reproducible and not.
func cross[T tensor.Element](t *testing.T, tables []crossed) {
	crossOn[T](t, tables, func(*testing.T, int) []gcl.CommOption { return nil })
}

// crossOn is cross with options of Run, made anew for each set of replicas.
func crossOn[T tensor.Element](t *testing.T, tables []crossed, opts func(t *testing.T, n int) []gcl.CommOption) {
	d, tried := tensor.DTypeOf[T](), 0
	for _, x := range tables {
		for _, reproducible := range []bool{false, true} {
			if reproducible && !d.IsFloat() {
				continue // the order of a reduction does not change integers
			}
			t.Run(fmt.Sprintf("dtype=%v/n=%d/reproducible=%v", d, x.n, reproducible), func(t *testing.T) {
				tried += try[T](t, x, reproducible, opts(t, x.n)...)
			})
		}
	}
	t.Logf("%v: %d calls on every replica", d, tried)
}

// try tries a table on one set of replicas. It returns the number of calls that each makes.
func try[T tensor.Element](t *testing.T, x crossed, reproducible bool, opts ...gcl.CommOption) (calls int) {
	reductions, placed := make([][]reduceCase[T], len(x.sizes)), make([]moveCase[T], len(x.sizes))
	for i, size := range x.sizes {
		for _, op := range x.operators {
			reductions[i] = append(reductions[i], newReduceCase(op, inputs[T](op, x.n, size)))
		}
		placed[i] = newMoveCase(inputs[T](gcl.Local, x.n, size))
	}
	replicas(t, x.n, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range x.ways {
			o.Reproducible = reproducible
			c, err := c.With(o)
			if err != nil {
				return err
			}
			for i, size := range x.sizes {
				for _, r := range reductions[i] {
					if err := r.try(ctx, c); err != nil {
						return fmt.Errorf("method=%v implementation=%v op=%v size=%d: %w",
							o.Method, o.Implementation, r.op, size, err)
					}
				}
				if reproducible {
					continue // which is about reductions
				}
				if err := placed[i].try(ctx, c); err != nil {
					return fmt.Errorf("method=%v implementation=%v size=%d: %w", o.Method, o.Implementation, size, err)
				}
			}
		}
		return nil
	}, opts...)
	const forms, moved = 6, 15 // of all-reduce and reduce-scatter; of the other three, the broadcast from three roots
	calls = len(x.ways) * len(x.sizes) * len(x.operators) * forms
	if !reproducible {
		calls += len(x.ways) * len(x.sizes) * moved
	}
	return calls
}
