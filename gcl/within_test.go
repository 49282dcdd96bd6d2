package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// checkRows returns an error if got is not want, row by row.
func checkRows[T tensor.Element](what string, got, want [][]T) error {
	if len(got) != len(want) {
		return fmt.Errorf("%s: %d rows, want %d", what, len(got), len(want))
	}
	for p := range got {
		if err := check(fmt.Sprintf("%s: row of IPU %d", what, p), got[p], want[p]); err != nil {
			return err
		}
	}
	return nil
}

// checkChunks returns an error if the chunks are not want.
func checkChunks[T tensor.Element](what string, got chunks.Chunks[T], want []chunks.Chunk[T]) error {
	if len(got.List) != len(want) {
		return fmt.Errorf("%s: %d chunks, want %d", what, len(got.List), len(want))
	}
	for p, w := range want {
		have := got.List[p]
		if have.Index != w.Index || have.Offset != w.Offset {
			return fmt.Errorf("%s: IPU %d has index %d and offset %d, want %d and %d", what, p, have.Index, have.Offset, w.Index, w.Offset)
		}
		if err := check(fmt.Sprintf("%s: chunk of IPU %d", what, p), have.Data, w.Data); err != nil {
			return err
		}
	}
	return nil
}

// repeated is k times the same row.
func repeated[T any](row []T, k int) [][]T {
	rows := make([][]T, k)
	for p := range rows {
		rows[p] = row
	}
	return rows
}

// everyWay runs body on one replica with each method and implementation, Reproducible and not.
func everyWay(t *testing.T, body func(context.Context, *gcl.Comm) error) {
	t.Helper()
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range bothWays() {
			for _, o.Reproducible = range []bool{false, true} {
				if err := body(ctx, withOptions(c, o)); err != nil {
					return fmt.Errorf("%+v: %w", o, err)
				}
			}
		}
		return nil
	})
}

// SEMANTICS.md: three elements on four IPUs, ring 0, 2, 3, 1.
func TestWithinThreeElementsOnFourIPUs(t *testing.T) {
	rows := [][]int32{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}, {1000, 2000, 3000}}
	everyWay(t, func(ctx context.Context, c *gcl.Comm) error {
		scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
		if err := errors.Join(err, checkChunks("reduce-scatter", scattered, []chunks.Chunk[int32]{
			{Index: 0},
			{Index: 3, Data: []int32{3333}},
			{Index: 1, Data: []int32{1111}},
			{Index: 2, Data: []int32{2222}},
		})); err != nil {
			return err
		}
		gathered, err1 := gcl.AllGatherWithinReplica(ctx, c, scattered)
		reduced, err2 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
		want := repeated([]int32{1111, 2222, 3333}, 4)
		return errors.Join(err1, err2, check("Concat", scattered.Concat(), want[0]),
			checkRows("all-gather", gathered, want), checkRows("all-reduce", reduced, want))
	})
}

// GCL prints an all-gather of x with index 3, y with index 0 and z with index 1, and says that the result is x, y, z.
// By the sorting rule it is y, z, x.
func TestWithinGathersByTheSortingRule(t *testing.T) {
	const x, y, z = 'x', 'y', 'z'
	in := chunks.NewChunks[uint8](4)
	in.List[0] = chunks.Chunk[uint8]{Index: 2}
	in.List[1] = chunks.Chunk[uint8]{Index: 1, Data: []uint8{z}}
	in.List[2] = chunks.Chunk[uint8]{Index: 3, Data: []uint8{x}}
	in.List[3] = chunks.Chunk[uint8]{Index: 0, Data: []uint8{y}}
	everyWay(t, func(ctx context.Context, c *gcl.Comm) error {
		out, err := gcl.AllGatherWithinReplica(ctx, c, in)
		return errors.Join(err, checkRows("all-gather", out, repeated([]uint8{y, z, x}, 4)))
	})
}

// SEMANTICS.md: the first offset's rows are one reduction, the second's another, of another length. IPU p has index p/m
// and offset p mod m.
func TestWithinRanksOfTwoIPUs(t *testing.T) {
	rows := [][]float64{{1, 2, 3}, {7}, {10, 20, 30}, {70}}
	sums := [][]float64{{11, 22, 33}, {77}}
	everyWay(t, func(ctx context.Context, c *gcl.Comm) error {
		o := c.Options()
		o.IPUsPerRank = 2
		c = withOptions(c, o)
		scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
		if err := errors.Join(err, checkChunks("reduce-scatter", scattered, []chunks.Chunk[float64]{
			{Index: 0, Offset: 0, Data: []float64{11}},
			{Index: 0, Offset: 1},
			{Index: 1, Offset: 0, Data: []float64{22, 33}},
			{Index: 1, Offset: 1, Data: []float64{77}},
		})); err != nil {
			return err
		}
		gathered, err1 := gcl.AllGatherWithinReplica(ctx, c, scattered)
		reduced, err2 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
		mean, err3 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Mean) // of two rows, not of four
		return errors.Join(err1, err2, err3,
			checkRows("all-gather", gathered, repeated([]float64{11, 22, 33, 77}, 4)),
			checkRows("all-reduce", reduced, [][]float64{sums[0], sums[1], sums[0], sums[1]}),
			checkRows("mean", mean, [][]float64{{5.5, 11, 16.5}, {38.5}, {5.5, 11, 16.5}, {38.5}}))
	})
}

// ipuOf is the dumb rule for who has which chunk: the ladder's ring where ranks have one IPU, their numbers where they
// have several.
func ipuOf(index, offset, k, m int) int {
	if m > 1 {
		return index*m + offset
	}
	if index < (k+1)/2 { // the even ids going up
		return 2 * index
	}
	return 2*(k-index) - 1 // the odd ids coming down
}

// The IPUs by rank, and the ring of ranks: the ladder's, even ids going up and odd ones coming down.
func TestWithinRings(t *testing.T) {
	for _, x := range []struct {
		k, m, id                           int
		equal, equalRing, every, everyRing []int
	}{
		{4, 1, 3, []int{0, 2, 3, 1}, []int{0, 1, 2, 3}, []int{0, 2, 3, 1}, []int{0, 1, 2, 3}},
		{5, 1, 0, []int{0, 2, 4, 3, 1}, []int{0, 1, 2, 3, 4}, []int{0, 2, 4, 3, 1}, []int{0, 1, 2, 3, 4}},
		{8, 2, 6, []int{0, 2, 4, 6}, []int{0, 1, 2, 3}, []int{0, 2, 4, 6, 1, 3, 5, 7}, []int{0, 1, 2, 3, 7, 6, 5, 4}},
		{8, 2, 1, []int{1, 3, 5, 7}, []int{0, 3, 2, 1}, []int{0, 2, 4, 6, 1, 3, 5, 7}, []int{0, 1, 2, 3, 7, 6, 5, 4}},
		{9, 3, 4, []int{1, 4, 7}, []int{0, 1, 2}, []int{0, 3, 6, 1, 4, 7, 2, 5, 8}, []int{0, 6, 4, 2, 8, 5, 7, 1, 3}},
		{2, 2, 1, []int{1}, []int{0}, []int{0, 1}, []int{0, 1}},
	} {
		equal, equalRing, every, everyRing, err := gcl.IPURings(x.k, x.m, x.id)
		if err != nil || !slices.Equal(equal, x.equal) || !slices.Equal(equalRing, x.equalRing) || !slices.Equal(every, x.every) || !slices.Equal(everyRing, x.everyRing) {
			t.Errorf("%+v: %v round %v of %v round %v, %v", x, equal, equalRing, every, everyRing, err)
		}
	}
}

func TestWithinMatrix(t *testing.T) {
	withinMatrix(t, plain[float32]())
	withinMatrix(t, plain[int64]())
	withinMatrix(t, f16())
	withinMatrix(t, boolean())
}

func withinMatrix[T tensor.Element](t *testing.T, e elem[T]) {
	type shape struct{ k, m int }
	shapes := []shape{{1, 1}, {2, 1}, {2, 2}, {3, 1}, {4, 1}, {4, 2}, {5, 1}, {6, 3}, {7, 1}, {8, 1}, {8, 2}, {9, 3}, {15, 1}, {16, 1}, {16, 4}}
	if testing.Short() || underRace {
		shapes = []shape{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 1}, {9, 3}, {16, 1}}
	}
	dtype := tensor.DTypeOf[T]()
	for _, s := range shapes {
		options := testOptions(dtype, s.k)
		sizes := []int{0, 1, s.k - 1, s.k, s.k + 1, 1291, 1399}
		if s.m > 1 {
			sizes = []int{0, 1, s.k + 1, 1291}
		}
		for _, reproducible := range []bool{false, true} {
			t.Run(fmt.Sprintf("dtype=%v/ipus=%d/perRank=%d/reproducible=%v", dtype, s.k, s.m, reproducible), func(t *testing.T) {
				alone(t, func(ctx context.Context, c *gcl.Comm) error {
					for i, o := range options {
						o.Reproducible, o.IPUsPerRank = reproducible, s.m
						other := options[(i+1)%len(options)]
						other.IPUsPerRank = s.m
						for _, op := range operators[T]() {
							if op != gcl.Add && reproducible && dtype != tensor.F16 {
								continue
							}
							for i, size := range sizes {
								if i != 1 && i != 4 && op != gcl.Add {
									continue
								}
								if err := tryWithin(ctx, withOptions(c, o), withOptions(c, other), e, op, s.k, size); err != nil {
									return fmt.Errorf("%+v op=%v size=%d: %w", o, op, size, err)
								}
							}
						}
					}
					return nil
				})
			})
		}
	}
}

// tryWithin tries the three collectives on k IPUs with rows of size elements, more at higher offsets; the all-gather
// with the options of another Comm.
func tryWithin[T tensor.Element](ctx context.Context, c, other *gcl.Comm, e elem[T], op gcl.Operator, k, size int) error {
	m := c.Options().IPUsPerRank
	ranks := k / m
	rows := make([][]T, k)
	reduced := make([][]T, k)
	want := make([]chunks.Chunk[T], k)
	var joined []T
	for offset := range m {
		in := inputs(e, op, ranks, size+3*offset)
		sum := in[0] // a group of one copies
		if ranks > 1 && op != gcl.Local {
			sum = reduce(e, op, in)
		}
		for r := range in {
			p := r*m + offset
			rows[p], reduced[p] = in[r], sum
			if op == gcl.Local {
				reduced[p] = in[r]
			}
		}
		for f := range ranks {
			p := ipuOf(f, offset, k, m)
			n := len(sum)
			want[p] = chunks.Chunk[T]{Index: f, Offset: offset, Data: reduced[p][n*f/ranks : n*(f+1)/ranks]}
			joined = append(joined, want[p].Data...)
		}
	}
	kept := make([][]T, k)
	for p := range rows {
		kept[p] = slices.Clone(rows[p])
	}
	scattered, err1 := gcl.ReduceScatterWithinReplica(ctx, c, rows, op)
	out, err2 := gcl.AllReduceWithinReplica(ctx, c, rows, op)
	if err := errors.Join(err1, err2, checkChunks("reduce-scatter", scattered, want), checkRows("all-reduce", out, reduced),
		checkRows("the input", rows, kept), check("Concat", scattered.Concat(), joined)); err != nil {
		return err
	}
	if len(scattered.Original) != k || &scattered.Original[0] != &rows[0] {
		return errors.New("Original is not the input")
	}
	gathered, err := gcl.AllGatherWithinReplica(ctx, other, scattered)
	if err := errors.Join(err, checkRows("all-gather", gathered, repeated(joined, k)), checkChunks("the chunks", scattered, want)); err != nil {
		return err
	}
	// Every result is memory of its own.
	mine := [][][]T{rows, out, gathered}
	for p := range k {
		mine = append(mine, [][]T{scattered.List[p].Data})
	}
	seen := map[*T]bool{}
	for _, list := range mine {
		for _, s := range list {
			if len(s) > 0 && seen[&s[0]] {
				return errors.New("two results, or a result and the input, share memory")
			}
			if len(s) > 0 {
				seen[&s[0]] = true
			}
		}
	}
	return nil
}

// Chunks of any lengths on any IPUs: the row is their Concat.
func TestWithinGathersAnyChunks(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	options := bothWays()
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		for trial := range 300 {
			o := options[trial%len(options)]
			o.IPUsPerRank = 1 + rng.IntN(3)
			k := o.IPUsPerRank * (1 + rng.IntN(5))
			in := chunks.NewChunks[int16](k)
			for i, p := range rng.Perm(k) {
				in.List[p] = chunks.Chunk[int16]{Index: i / o.IPUsPerRank, Offset: i % o.IPUsPerRank}
				for range rng.IntN(4) * rng.IntN(400) {
					in.List[p].Data = append(in.List[p].Data, int16(rng.Uint32()))
				}
			}
			out, err := gcl.AllGatherWithinReplica(ctx, withOptions(c, o), in)
			if err := errors.Join(err, checkRows("all-gather", out, repeated(in.Concat(), k))); err != nil {
				return fmt.Errorf("trial %d, %+v: %w", trial, o, err)
			}
		}
		return nil
	})
}

// A plan that was made for other parts of as many elements does not do.
func TestWithinGathersOtherPartsOfOneLength(t *testing.T) {
	everyWay(t, func(ctx context.Context, c *gcl.Comm) error {
		for _, lengths := range [][]int{{100, 0, 28}, {28, 100, 0}, {43, 42, 43}} {
			in := chunks.NewChunks[int16](len(lengths))
			for p, n := range lengths {
				in.List[p] = chunks.Chunk[int16]{Index: []int{0, 2, 1}[p], Data: make([]int16, n)} // where reduce-scatter leaves it
				for i := range in.List[p].Data {
					in.List[p].Data[i] = int16(1000*p + i)
				}
			}
			out, err := gcl.AllGatherWithinReplica(ctx, c, in)
			if err := errors.Join(err, checkRows("all-gather", out, repeated(in.Concat(), 3))); err != nil {
				return err
			}
		}
		return nil
	})
}

// order is four numbers whose sum tells in which order they were added.
var order = [][]float32{{1e8}, {1}, {-1e8}, {1}}

// Reproducible folds in the order of the ring, 0 2 3 1, whatever the method: ((1e8 + -1e8) + 1) + 1.
func TestWithinReproducibleFoldsInRingOrder(t *testing.T) {
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range bothWays() {
			o.Reproducible = true
			reproducible := withOptions(c, o)
			out, err1 := gcl.AllReduceWithinReplica(ctx, reproducible, order, gcl.Add)
			scattered, err2 := gcl.ReduceScatterWithinReplica(ctx, reproducible, order, gcl.Add)
			if err := errors.Join(err1, err2, checkRows("all-reduce", out, repeated([]float32{2}, 4)), check("Concat", scattered.Concat(), []float32{2})); err != nil {
				return fmt.Errorf("%+v: %w", o, err)
			}
		}
		return nil
	})
}

// The schedules are those across replicas: on data whose sum depends on its order, k replicas in the order of the
// ladder's ring get the same bits by every method, which get different ones. Both rings of the quad-directional method
// are the ladder's, which no other machine of k replicas in rank order has; it is left out.
func TestWithinIsWhatReplicasDo(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	different := map[string]bool{}
	for _, k := range []int{2, 3, 4, 5, 8} {
		const perRank = 20
		rows := make([][]float32, k)
		for p := range rows {
			for range perRank * k {
				rows[p] = append(rows[p], float32(rng.NormFloat64()*math.Pow(10, float64(rng.IntN(8)))))
			}
		}
		for _, o := range bothWays() {
			if o.Method == methods.QuadDirectionalRing {
				continue
			}
			shards := make([][]float32, k)
			results := make([][]float32, k)
			replicas(t, k, func(ctx context.Context, c *gcl.Comm) (err error) {
				row := rows[ipuOf(c.Rank(), 0, k, 1)]
				var err2 error
				results[c.Rank()], err = gcl.AllReduce(ctx, c, row, gcl.Add)
				shards[c.Rank()], err2 = gcl.ReduceScatter(ctx, c, row, gcl.Add)
				return errors.Join(err, err2)
			}, gcl.WithOptions(o))
			alone(t, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				out, err1 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
				scattered, err2 := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
				if err := errors.Join(err1, err2, checkRows("all-reduce", out, results), check("reduce-scatter", scattered.Concat(), slices.Concat(shards...))); err != nil {
					return fmt.Errorf("ipus=%d %+v: %w", k, o, err)
				}
				different[fmt.Sprint(out[0])] = true
				return nil
			})
		}
	}
	if len(different) < 10 { // else the data tells nothing
		t.Errorf("the methods give %d different results", len(different))
	}
}

// A tensor of rank 2 is worked on where it lies.
func TestWithinWorksOnTensors(t *testing.T) {
	x, err := tensor.FromSlice([]int32{1, 2, 3, 10, 20, 30}, 2, 3)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := tensor.Rows[int32](x)
	if err != nil {
		t.Fatal(err)
	}
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Mul)
		if err := errors.Join(err, check("Concat", scattered.Concat(), []int32{10, 40, 90})); err != nil {
			return err
		}
		// The original input is the tensor's memory, with its shape.
		if at, err := tensor.Of[int32](x); err != nil || len(scattered.Original) != 2 || len(scattered.Original[1]) != 3 || &scattered.Original[1][0] != &at[3] {
			return fmt.Errorf("Original is %v, %w", scattered.Original, err)
		}
		return nil
	})
}

func TestWithinErrors(t *testing.T) {
	three := [][]int32{{1}, {2}, {3}}
	four := [][]int32{{1, 2}, {3, 4}, {5, 6}, {7, 8}}
	pairs := gcl.Options{IPUsPerRank: 2}
	reduceBoth := func(rows [][]int32, op gcl.Operator) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduceWithinReplica(ctx, c, rows, op)
			out, err2 := gcl.ReduceScatterWithinReplica(ctx, c, rows, op)
			if err == nil || err2 == nil || strings.ReplaceAll(err2.Error(), "reduce-scatter", "all-reduce") != err.Error() || out.List != nil {
				return fmt.Errorf("all-reduce: %v, reduce-scatter: %v with %v", err, err2, out)
			}
			return err
		}
	}
	gather := func(list ...chunks.Chunk[int32]) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			out, err := gcl.AllGatherWithinReplica(ctx, c, chunks.Chunks[int32]{List: list})
			if out != nil {
				return fmt.Errorf("a result of %v with %v", out, err)
			}
			return err
		}
	}
	for _, x := range []struct {
		name    string
		options gcl.Options
		call    func(context.Context, *gcl.Comm) error
		want    string
	}{
		{"rows of different length", gcl.Options{}, reduceBoth([][]int32{{1, 2}, {3, 4}, {5}}, gcl.Add),
			"gcl: all-reduce within the replica: replica 0: the row of IPU 2 has 1 elements, that of IPU 0 has 2; rows of one offset (here 0 of 1) are of equal length"},
		{"rows of different length at one offset", pairs, reduceBoth([][]int32{{1}, {3, 4}, {5}, {6}}, gcl.Add),
			"gcl: all-reduce within the replica: replica 0: the row of IPU 3 has 1 elements, that of IPU 1 has 2; rows of one offset (here 1 of 2) are of equal length"},
		{"no rows", gcl.Options{}, reduceBoth(nil, gcl.Add), "no IPU is given data, want 1 or more"},
		{"ranks that do not fit", pairs, reduceBoth(three, gcl.Add), "3 IPUs do not divide into ranks of 2 (Options.IPUsPerRank)"},
		{"ranks larger than the replica", gcl.Options{IPUsPerRank: 4}, reduceBoth(three, gcl.Add), "3 IPUs do not divide into ranks of 4"},
		{"an operator for other types", gcl.Options{}, reduceBoth(four, gcl.LogicalAnd), "operator LOGICAL_AND takes bool, not int32"},
		{"an operator that is none", gcl.Options{}, reduceBoth(four, 99), "Operator(99) is not an operator"},
		{"nil context", gcl.Options{}, func(_ context.Context, c *gcl.Comm) error { return reduceBoth(four, gcl.Add)(noContext, c) }, "nil context"},

		{"no chunks", gcl.Options{}, gather(), "gcl: all-gather within the replica: replica 0: no IPU is given data, want 1 or more"},
		{"chunks for ranks that do not fit", pairs, gather(make([]chunks.Chunk[int32], 3)...), "3 IPUs do not divide into ranks of 2"},
		{"fresh chunks", gcl.Options{}, gather(chunks.NewChunks[int32](3).List...), "the chunks of IPUs 0 and 1 both have index 0 and offset 0"},
		{"an index twice", gcl.Options{}, gather(chunks.Chunk[int32]{Index: 1}, chunks.Chunk[int32]{Index: 0}, chunks.Chunk[int32]{Index: 1}),
			"gcl: all-gather within the replica: replica 0: the chunks of IPUs 0 and 2 both have index 1 and offset 0"},
		{"an index too high", gcl.Options{}, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Index: 2}), "the chunk of IPU 1 has index 2, want 0 to 1: 2 IPUs are 2 ranks"},
		{"an index too high for the ranks", pairs, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 1, Index: 1}),
			"the chunk of IPU 1 has index 1, want 0 to 0: 2 IPUs are 1 ranks"},
		{"an index below 0", gcl.Options{}, gather(chunks.Chunk[int32]{Index: -1}), "the chunk of IPU 0 has index -1, want 0 to 0"},
		{"an offset without ranks", gcl.Options{}, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 1}),
			"the chunk of IPU 1 has offset 1, want 0 to 0: ranks have 1 IPUs (Options.IPUsPerRank)"},
		{"an offset too high", pairs, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: 2}), "the chunk of IPU 1 has offset 2, want 0 to 1"},
		{"an offset below 0", pairs, gather(chunks.Chunk[int32]{}, chunks.Chunk[int32]{Offset: -1}), "the chunk of IPU 1 has offset -1, want 0 to 1"},
	} {
		t.Run(x.name, func(t *testing.T) {
			alone(t, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, x.options)
				err := x.call(ctx, c)
				if err == nil || !strings.Contains(err.Error(), x.want) || !strings.Contains(err.Error(), "within the replica: replica 0: ") {
					t.Errorf("error %v, want %q", err, x.want)
				}
				if errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrMismatch) || errors.Is(err, gcl.ErrClosed) {
					t.Errorf("bad arguments are more than that: %#v", err)
				}
				_, err = gcl.AllReduceWithinReplica(ctx, c, four, gcl.Add) // the communicator stays usable
				return err
			})
		})
	}
	if _, err := gcl.AllReduceWithinReplica(t.Context(), nil, four, gcl.Add); err == nil {
		t.Error("nil Comm: no error")
	}
	if _, err := gcl.ReduceScatterWithinReplica(t.Context(), nil, four, gcl.Add); err == nil {
		t.Error("nil Comm: no error")
	}
	if _, err := gcl.AllGatherWithinReplica(t.Context(), nil, chunks.NewChunks[int32](1)); err == nil {
		t.Error("nil Comm: no error")
	}
}

// Chunks may share memory, so that rows of more than there is can be asked for.
func TestWithinGatherTooLarge(t *testing.T) {
	const k = 1 << 20
	part := make([]int64, 1<<20)
	in := chunks.NewChunks[int64](k)
	for p := range in.List {
		in.List[p] = chunks.Chunk[int64]{Index: p, Data: part}
	}
	alone(t, func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllGatherWithinReplica(ctx, c, in)
		if err == nil || !strings.Contains(err.Error(), "make rows larger than memory can hold") {
			t.Errorf("error %v", err)
		}
		return nil
	})
}

func TestIPUsPerRankIsChecked(t *testing.T) {
	alone(t, func(_ context.Context, c *gcl.Comm) error {
		_, err := c.With(gcl.Options{IPUsPerRank: -1})
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != "IPUsPerRank" || option.Value != "-1" {
			t.Errorf("error %v", err)
		}
		return nil
	})
}

// A topology that is given says how many IPUs a replica has, on Dups too.
func TestWithinKnowsTheIPUs(t *testing.T) {
	machine, err := topology.New(topology.Config{Replicas: []int{2}, IPUsPerReplica: 3})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		for _, c := range []*gcl.Comm{c, dup} {
			_, err1 := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}}, gcl.Add)
			_, err2 := gcl.AllGatherWithinReplica(ctx, c, chunks.NewChunks[int32](4))
			_, err3 := gcl.ReduceScatterWithinReplica(ctx, c, [][]int32{}, gcl.Add)
			for given, err := range map[int]error{2: err1, 4: err2, 0: err3} {
				if want := fmt.Sprintf("%d IPUs are given data, but a replica has 3 by the topology", given); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			out, err := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}, {3}}, gcl.Add)
			if err := errors.Join(err, checkRows("all-reduce", out, repeated([]int32{6}, 3))); err != nil {
				return err
			}
		}
		return dup.Close()
	}, gcl.WithTopology(machine))
}

// Other replicas take no part: nothing is sent to them, and nothing counted.
func TestWithinConcernsNoOtherReplica(t *testing.T) {
	count, endpoints := counted(t, 2)
	done := make(chan struct{})
	within := func(ctx context.Context, c *gcl.Comm) error {
		defer close(done)
		for range 3 {
			rows := [][]int32{{1, 2}, {3, 4}, {5}}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); err == nil {
				return errors.New("rows of different length: no error")
			}
			scattered, err1 := gcl.ReduceScatterWithinReplica(ctx, c, rows[:2], gcl.Add)
			_, err2 := gcl.AllGatherWithinReplica(ctx, c, scattered)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
		}
		if n := count.Load(); n != 0 {
			return fmt.Errorf("%d transfers, want none", n)
		}
		return nil
	}
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			<-done
		} else if err := within(ctx, c); err != nil {
			return err
		}
		out, err := gcl.AllReduce(ctx, c, []int32{int32(c.Rank())}, gcl.Add)
		_, refused := gcl.AllReduce(ctx, c, []int32{1}, gcl.LogicalAnd)
		if text := fmt.Sprint(refused); !strings.Contains(text, "all-reduce #2: ") {
			t.Errorf("replica %d: the second all-reduce across replicas is called %q", c.Rank(), text)
		}
		return errors.Join(err, check("all-reduce", out, []int32{1}))
	}, gcl.WithEndpoints(endpoints))
}

// Replicas do it at the same time, on several connections and in functions given to Start.
func TestWithinBesideOthers(t *testing.T) {
	leaktest.Check(t)
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		try := func(ctx context.Context, c *gcl.Comm) error {
			for k := 2; k < 6; k++ {
				rows := make([][]int32, k)
				for p := range rows {
					rows[p] = []int32{int32(c.Replica() + p), int32(p)}
				}
				sum := int32(k * (k - 1) / 2)
				out, err1 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
				across, err2 := gcl.AllReduce(ctx, c, out[k-1], gcl.Add)
				if err := errors.Join(err1, err2, check("across", across, []int32{int32(3*k) + 3*sum, 3 * sum})); err != nil {
					return err
				}
			}
			return nil
		}
		dup, err := c.Dup(ctx)
		if err != nil {
			return err
		}
		w1 := c.Start(ctx, try)
		w2 := dup.Start(ctx, try)
		return errors.Join(try(ctx, c), w1.Wait(), w2.Wait(), dup.Close())
	})
}

// A context that is done on the way aborts the communicator, and the error says which IPU waited for which.
func TestWithinCancelled(t *testing.T) {
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return c.Barrier(ctx) // which replica 0 does not come to
			}
			own, cancel := context.WithCancelCause(ctx)
			late := errors.New("too late")
			err := gcl.AllReduceWithinAfter(own, c, 3, func(ipu int) {
				if ipu == 1 {
					cancel(late)
				}
			})
			if !errors.Is(err, late) || !errors.Is(err, gcl.ErrAborted) || errors.Is(err, gcl.ErrClosed) {
				t.Errorf("%v: error %v, want one of %v and %v", i, err, late, gcl.ErrAborted)
			}
			peer := (*gcl.PeerError)(nil)
			if errors.As(err, &peer) {
				t.Errorf("%v: error %v blames a replica", i, err)
			}
			if text := fmt.Sprint(err); !strings.HasPrefix(text, "gcl: all-reduce within the replica: replica 0: IPU ") || !strings.HasSuffix(text, "too late") {
				t.Errorf("%v: error %q", i, text)
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, [][]int32{{1}, {2}}, gcl.Add); !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, late) {
				t.Errorf("%v: afterwards: %v, want %v", i, err, gcl.ErrAborted)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Implementation: i}))
		if err := errs[1]; !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), "all-reduce within the replica: replica 0: IPU ") {
			t.Errorf("%v: replica 1: error %v", i, err)
		}
	}
}

// A communicator that another replica has aborted, and a context that is done before, show.
func TestWithinAborted(t *testing.T) {
	rows := [][]int32{{1}, {2}}
	cause := errors.New("no more data")
	failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 1 {
			c.Abort(cause)
		}
		if err := c.Barrier(ctx); err == nil {
			t.Error("a barrier after an abort")
		}
		if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, cause) {
			t.Errorf("replica %d: error %v", c.Rank(), err)
		}
		return nil
	})
	failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		done, cancel := context.WithCancel(ctx)
		cancel()
		if _, err := gcl.AllReduceWithinReplica(done, c, rows, gcl.Add); !errors.Is(err, gcl.ErrAborted) || !errors.Is(err, context.Canceled) {
			t.Errorf("a context that is done: error %v", err)
		}
		return nil
	})
}

// Close fails a collective within the replica that is in progress, and those that come after.
func TestWithinClosed(t *testing.T) {
	leaktest.Check(t)
	rows := [][]int32{{1}, {2}}
	for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
		failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return nil
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); err != nil {
				return err
			}
			err := gcl.AllReduceWithinAfter(ctx, c, 3, func(ipu int) {
				if ipu == 2 {
					if err := c.Close(); err != nil {
						t.Error(err)
					}
				}
			})
			if !errors.Is(err, gcl.ErrClosed) || errors.Is(err, gcl.ErrAborted) {
				t.Errorf("%v: in progress: %v, want %v", i, err, gcl.ErrClosed)
			}
			if text := fmt.Sprint(err); !strings.Contains(text, "replica 0: IPU ") || !strings.HasSuffix(text, "the communicator is closed") {
				t.Errorf("%v: error %q", i, text)
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); !errors.Is(err, gcl.ErrClosed) {
				t.Errorf("%v: afterwards: %v, want %v", i, err, gcl.ErrClosed)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Implementation: i}))
	}
}

// A panic on an IPU's goroutine does not end the program, nor leave the others waiting.
func TestWithinPanic(t *testing.T) {
	for _, guilty := range []int{0, 2} {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			err := gcl.AllReduceWithinAfter(ctx, c, 4, func(ipu int) {
				if ipu == guilty {
					panic("a fault")
				}
			})
			crash := (*gcl.PanicError)(nil)
			if !errors.As(err, &crash) || crash.Value != "a fault" || !errors.Is(err, gcl.ErrAborted) || !strings.Contains(err.Error(), fmt.Sprintf("IPU %d: ", guilty)) {
				t.Errorf("error %v", err)
			}
			return nil
		})
	}
}

// Nor does one in the middle of a schedule, with the IPUs' memory laid open to each other.
func TestWithinPanicInside(t *testing.T) {
	for _, o := range bothWays() {
		failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			err := gcl.AllReduceWithinBroken(ctx, c, 4, 1)
			crash := (*gcl.PanicError)(nil)
			if !errors.As(err, &crash) || !errors.Is(err, gcl.ErrAborted) {
				t.Errorf("%+v: error %v", o, err)
			}
			return nil
		}, gcl.WithOptions(o))
	}
}

// A call allocates its result and less than a KiB, however long the rows are.
func TestWithinAllocations(t *testing.T) {
	if underRace {
		t.Skip("the race detector allocates")
	}
	const k, runs = 4, 20
	const rowBytes = 32 << 10
	rows := make([][]float32, k)
	for p := range rows {
		rows[p] = make([]float32, rowBytes/4)
	}
	for _, o := range bothWays() {
		for _, o.Reproducible = range []bool{false, true} {
			alone(t, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, o)
				scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
				for _, x := range []struct {
					name   string
					result int
					call   func() error
				}{
					{"all-reduce", k * rowBytes, func() error { _, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add); return err }},
					{"reduce-scatter", rowBytes, func() error { _, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add); return err }},
					{"all-gather", k * rowBytes, func() error { _, err := gcl.AllGatherWithinReplica(ctx, c, scattered); return err }},
				} {
					err = errors.Join(err, x.call())
					var before, after runtime.MemStats
					runtime.ReadMemStats(&before)
					for range runs {
						err = errors.Join(err, x.call())
					}
					runtime.ReadMemStats(&after)
					if n := int(after.TotalAlloc-before.TotalAlloc)/runs - x.result; n > 1<<10 {
						t.Errorf("%+v: %s allocates %d bytes beside its result", o, x.name, n)
					}
				}
				return err
			})
		}
	}
}
