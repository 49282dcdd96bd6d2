package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
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
			return fmt.Errorf("%s: IPU %d has index %d and offset %d, want %d and %d",
				what, p, have.Index, have.Offset, w.Index, w.Offset)
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
		if err != nil || !slices.Equal(equal, x.equal) || !slices.Equal(equalRing, x.equalRing) ||
			!slices.Equal(every, x.every) || !slices.Equal(everyRing, x.everyRing) {
			t.Errorf("%+v: %v round %v of %v round %v, %v", x, equal, equalRing, every, everyRing, err)
		}
	}
}

func TestWithinMatrix(t *testing.T) {
	withinMatrix[float32](t)
	withinMatrix[int64](t)
	withinMatrix[tensor.Float16](t)
	withinMatrix[bool](t)
}

func withinMatrix[T tensor.Element](t *testing.T) {
	type shape struct{ k, m int }
	shapes := []shape{{1, 1}, {2, 1}, {2, 2}, {3, 1}, {4, 1}, {4, 2}, {5, 1}, {6, 3}, {7, 1}, {8, 1}, {8, 2}, {9, 3},
		{15, 1}, {16, 1}, {16, 4}}
	dtype := tensor.DTypeOf[T]()
	if testing.Short() || underRace || dtype != tensor.F32 && !*full {
		shapes = []shape{{1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 1}, {9, 3}, {16, 1}}
	}
	for i, s := range shapes {
		if dtype != tensor.F32 && s.k > 4 && (i+int(dtype))%3 != 0 {
			continue // float32 has all shapes, the others small ones and some
		}
		options := eachMethod()
		// on peer memory every IPU needs the plans of all
		if s.k <= 3 && !underRace || s.k <= 9 && dtype == tensor.F32 {
			options = bothWays()
		}
		sizes := []int{0, 1, s.k - 1, s.k, s.k + 1, 1291, 1399}
		if s.m > 1 {
			sizes = []int{0, 1, s.k + 1, 1291}
		}
		for _, reproducible := range []bool{false, true} {
			if reproducible && underRace && dtype != tensor.F32 {
				continue
			}
			t.Run(fmt.Sprintf("dtype=%v/ipus=%d/perRank=%d/reproducible=%v", dtype, s.k, s.m, reproducible),
				func(t *testing.T) {
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
									if err := tryWithin[T](ctx, withOptions(c, o), withOptions(c, other), op, s.k,
										size); err != nil {
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
func tryWithin[T tensor.Element](ctx context.Context, c, other *gcl.Comm, op gcl.Operator, k, size int) error {
	m := c.Options().IPUsPerRank
	ranks := k / m
	rows := make([][]T, k)
	reduced := make([][]T, k)
	want := make([]chunks.Chunk[T], k)
	var joined []T
	for offset := range m {
		in := inputs[T](op, ranks, size+3*offset)
		out := oracle.AllReduce(named(op), in)
		for r := range in {
			p := ipuOf(r, offset, k, m)
			rows[p], reduced[p] = in[r], out[r]
		}
		for f := range ranks {
			p := ipuOf(f, offset, k, m)
			n := len(reduced[p])
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
	if err := errors.Join(err1, err2, checkChunks("reduce-scatter", scattered, want),
		checkRows("all-reduce", out, reduced),
		checkRows("the input", rows, kept), check("Concat", scattered.Concat(), joined)); err != nil {
		return err
	}
	if len(scattered.Original) != k || &scattered.Original[0] != &rows[0] {
		return errors.New("Original is not the input")
	}
	gathered, err := gcl.AllGatherWithinReplica(ctx, other, scattered)
	if err := errors.Join(err, checkRows("all-gather", gathered, repeated(joined, k)),
		checkChunks("the chunks", scattered, want)); err != nil {
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
				// where reduce-scatter leaves it
				in.List[p] = chunks.Chunk[int16]{Index: []int{0, 2, 1}[p], Data: make([]int16, n)}
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
			if err := errors.Join(err1, err2, checkRows("all-reduce", out, repeated([]float32{2}, 4)),
				check("Concat", scattered.Concat(), []float32{2})); err != nil {
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
				if err := errors.Join(err1, err2, checkRows("all-reduce", out, results),
					check("reduce-scatter", scattered.Concat(), slices.Concat(shards...))); err != nil {
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
		if at, err := tensor.Of[int32](x); err != nil || len(scattered.Original) != 2 ||
			len(scattered.Original[1]) != 3 || &scattered.Original[1][0] != &at[3] {
			return fmt.Errorf("Original is %v, %w", scattered.Original, err)
		}
		return nil
	})
}

// The IPUs of a replica are in one link domain, however those of the replicas lie.
func TestWithinHybrid(t *testing.T) {
	machine, err := topology.New(topology.Config{Replicas: []int{2, 2}, IPUsPerReplica: 3})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		rows := [][]int32{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}}
		scattered, err1 := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
		gathered, err2 := gcl.AllGatherWithinReplica(ctx, c, scattered)
		reduced, err3 := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		for p := range rows {
			err1 = errors.Join(err1, check("gathered", gathered[p], []int32{111, 222, 333}),
				check("reduced", reduced[p], []int32{111, 222, 333}))
		}
		return err1
	}, gcl.WithTopology(machine), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
}
