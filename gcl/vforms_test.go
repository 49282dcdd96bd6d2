package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// countsCase is the data of all ranks in parts of different lengths, and what the ...V forms must give each.
type countsCase[T tensor.Element] struct {
	op     gcl.Operator
	root   int
	counts []int
	in     [][]T // by rank: as long as the counts together
	parts  [][]T // by rank: its own part of its input

	shards, gathered, atRoot, dealt [][]T

	sent    [][]int // by rank
	blocks  [][]T
	swapped [][]T
}

func newCountsCase[T tensor.Element](op gcl.Operator, root int, counts []int) countsCase[T] {
	n, total := len(counts), 0
	for _, count := range counts {
		total += count
	}
	x := countsCase[T]{op: op, root: root, counts: counts, in: inputs[T](op, n, total)}
	first := 0
	for rank, count := range counts {
		x.parts = append(x.parts, x.in[rank][first:first+count])
		first += count
	}
	call := oracle.Call{Operator: named(op), Root: root, Counts: counts}
	outputs := func(c schedule.Collective, in [][]T) [][]T {
		call.Collective = c
		return oracle.Outputs(call, in)
	}
	x.shards, x.gathered = outputs(schedule.ReduceScatter, x.in), outputs(schedule.AllGather, x.parts)
	x.atRoot, x.dealt = outputs(schedule.Gather, x.parts), outputs(schedule.Scatter, x.in)
	for rank := range n {
		var sent []int
		length := 0
		for to := range n {
			sent = append(sent, counts[(rank+2*to)%n])
			length += sent[to]
		}
		x.sent, x.blocks = append(x.sent, sent), append(x.blocks, inputs[T](gcl.Local, n, length)[rank])
	}
	x.swapped = oracle.AllToAllV(x.blocks, x.sent)
	return x
}

// received are the counts that a rank receives in the all-to-all.
func (x *countsCase[T]) received(rank int) (out []int) {
	for _, sent := range x.sent {
		out = append(out, sent[rank])
	}
	return out
}

// try tries the forms on one tensor.
func (x *countsCase[T]) try(ctx context.Context, c *gcl.Comm) error {
	rank, root, counts := c.Rank(), x.root, slices.Clone(x.counts)
	in, part := slices.Clone(x.in[rank]), slices.Clone(x.parts[rank])
	total, own, first := len(in), len(part), 0
	for _, count := range counts[:rank] {
		first += count
	}
	room := func(n int) []T { return slices.Repeat([]T{x.mark()}, n) }
	holding := func() []T { // the own part at its place
		all := room(total)
		copy(all[first:], part)
		return all
	}
	gathered, err1 := gcl.AllGatherV(ctx, c, part, counts)
	gatheredTo, gatheredOwn := room(total), holding()
	err2 := gcl.AllGatherVTo(ctx, c, gatheredTo, part, counts)
	err3 := gcl.AllGatherVTo(ctx, c, gatheredOwn, gatheredOwn[first:first+own], counts)
	scattered, err4 := gcl.ReduceScatterV(ctx, c, in, counts, x.op)
	scatteredTo, larger := room(own), slices.Clone(in)
	err5 := gcl.ReduceScatterVTo(ctx, c, scatteredTo, in, counts, x.op)
	err6 := gcl.ReduceScatterVTo(ctx, c, larger[first:first+own], larger, counts, x.op)
	if err := errors.Join(err1, err2, err3, err4, err5, err6,
		check("all-gather", gathered, x.gathered[rank]),
		check("all-gather to", gatheredTo, x.gathered[rank]),
		check("all-gather of the own part", gatheredOwn, x.gathered[rank]),
		check("reduce-scatter", scattered, x.shards[rank]),
		check("reduce-scatter to", scatteredTo, x.shards[rank]),
		check("reduce-scatter to the own part", larger[first:first+own], x.shards[rank]),
		check("the input", in, x.in[rank]), check("the part", part, x.parts[rank]),
	); err != nil {
		return err
	}
	if err := x.tryRooted(ctx, c, root, first, room, holding); err != nil {
		return fmt.Errorf("root %d: %w", root, err)
	}
	return x.tryAllToAll(ctx, c)
}

// mark is what no result holds unless it is written, or in a bool may hold.
func (x *countsCase[T]) mark() T {
	marked := make([]T, 1)
	tensor.Bytes(marked)[0] = 1
	return marked[0]
}

func (x *countsCase[T]) tryRooted(ctx context.Context, c *gcl.Comm, root, first int, room func(int) []T,
	holding func() []T) error {
	rank, counts := c.Rank(), x.counts
	in, part := x.in[rank], x.parts[rank]
	total, own := len(in), len(part)
	gathered, err1 := gcl.GatherV(ctx, c, part, counts, root)
	data := []T(nil)
	if rank == root {
		data = slices.Clone(in)
	}
	dealt, err2 := gcl.ScatterV(ctx, c, data, counts, root)
	to, dealtTo, all := room(total), room(own), holding()
	source := all[first : first+own]
	unwritten := slices.Clone(all)
	err3 := gcl.GatherVTo(ctx, c, to, part, counts, root)
	err4 := gcl.ScatterVTo(ctx, c, dealtTo, in, counts, root)
	if rank != root {
		source = part
	}
	err5 := gcl.GatherVTo(ctx, c, all, source, counts, root)
	target := dealtTo
	if rank == root {
		target = data[first : first+own]
	}
	err6 := gcl.ScatterVTo(ctx, c, target, data, counts, root)
	wantTo, wantAll := room(total), unwritten
	if rank == root {
		wantTo, wantAll = x.atRoot[rank], x.atRoot[rank]
	}
	return errors.Join(err1, err2, err3, err4, err5, err6,
		check("gather", gathered, x.atRoot[rank]),
		check("gather to", to, wantTo),
		check("gather of the own part", all, wantAll),
		check("scatter", dealt, x.dealt[rank]),
		check("scatter to", dealtTo, x.dealt[rank]),
		check("scatter to the own part", target, x.dealt[rank]),
	)
}

func (x *countsCase[T]) tryAllToAll(ctx context.Context, c *gcl.Comm) error {
	rank := c.Rank()
	data, sent, received := slices.Clone(x.blocks[rank]), x.sent[rank], x.received(rank)
	swapped, err1 := gcl.AllToAllV(ctx, c, data, sent, received)
	to := make([]T, len(x.swapped[rank]))
	err2 := gcl.AllToAllVTo(ctx, c, to, data, sent, received)
	// in place where two ranks exchange as much both ways: the lesser of the two counts
	var both []int
	var inPlace, want []T
	for peer := range c.Size() {
		both = append(both, min(sent[peer], received[peer]))
	}
	at, from := 0, 0
	for peer, n := range both {
		inPlace = append(inPlace, data[at:at+n]...)
		want = append(want, x.swapped[rank][from:from+n]...)
		at, from = at+sent[peer], from+received[peer]
	}
	err3 := error(nil)
	if rank%2 == 0 { // each rank may choose
		err3 = gcl.AllToAllVInPlace(ctx, c, inPlace, both)
	} else {
		inPlace, err3 = gcl.AllToAllV(ctx, c, inPlace, both, both)
	}
	return errors.Join(err1, err2, err3,
		check("all-to-all", swapped, x.swapped[rank]),
		check("all-to-all to", to, x.swapped[rank]),
		check("all-to-all in place", inPlace, want),
		check("the input of an all-to-all", data, x.blocks[rank]),
	)
}

// countsFor are counts for n ranks: all but one empty, some empty, of all lengths, and longer ones.
func countsFor(n int) (out [][]int) {
	only, some, rising, long := make([]int, n), make([]int, n), make([]int, n), make([]int, n)
	only[n-1] = 5
	for r := range n {
		some[r], rising[r], long[r] = r%2*3, r+1, 300*r+257*(r%3)
	}
	return append(out, make([]int, n), only, some, rising, long)
}

// tryCounts tries cases on n replicas by some options.
func tryCounts[T tensor.Element](t *testing.T, n int, ways []gcl.Options, cases []countsCase[T],
	opts ...gcl.CommOption) {
	t.Helper()
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range ways {
			c, err := c.With(o)
			if err != nil {
				return err
			}
			for _, x := range cases {
				if err := x.try(ctx, c); err != nil {
					return fmt.Errorf("%v %v, %+v, counts %v: %w", tensor.DTypeOf[T](), x.op, o, x.counts, err)
				}
			}
		}
		return nil
	}, opts...)
}

// TestVForms tries every ...V form by every method, by messages and on peer memory, for counts that are even and not.
func TestVForms(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 6} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			var cases []countsCase[float32]
			for i, counts := range countsFor(n) {
				cases = append(cases, newCountsCase[float32](gcl.Add, i%n, counts))
			}
			ways := bothWays()
			if underRace {
				ways = fewWays()
			}
			tryCounts(t, n, ways, cases)
		})
	}
}

// TestVFormsGallery tries all methods of the gallery. A collective that one does not do goes as by Auto.
func TestVFormsGallery(t *testing.T) {
	if underRace {
		t.Skip("the detector has seen these goroutines with other methods")
	}
	var ways []gcl.Options
	for _, l := range methods.Gallery() {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			ways = append(ways, gcl.Options{Method: own(t, l.Name), Implementation: i})
		}
	}
	for _, n := range []int{5, 8} {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			var cases []countsCase[float32]
			for i, counts := range countsFor(n)[1:] {
				cases = append(cases, newCountsCase[float32](gcl.Add, (3+i)%n, counts))
			}
			tryCounts(t, n, ways, cases)
		})
	}
}

// TestVFormsOperators tries operators, element types and options that handle elements otherwise.
func TestVFormsOperators(t *testing.T) {
	ways := []gcl.Options{{}, {Implementation: gcl.Syncless},
		{Reproducible: true, Method: methods.ClockwiseRing}, {StageFragments: true, Implementation: gcl.Syncless},
		{StageFragments: true}, {Reproducible: true, Method: methods.Direct, Implementation: gcl.Syncless},
		{Implementation: gcl.Hybrid}, {MaxBytesPerTile: 1, Method: methods.ClockwiseRing}}
	vformsOperators[tensor.BFloat16](t, ways)
	if underRace {
		return
	}
	vformsOperators[float32](t, ways)
	vformsOperators[int16](t, ways)
	vformsOperators[bool](t, ways)
}

func vformsOperators[T tensor.Element](t *testing.T, ways []gcl.Options) {
	var cases []countsCase[T]
	for i, op := range operators[T]() {
		counts := [][]int{{0, 7, 1, 3}, {1000, 2, 0, 700}}[i%2]
		cases = append(cases, newCountsCase[T](op, i%4, counts))
	}
	tryCounts(t, 4, ways, cases, gcl.WithTopology(hosts(t, 2, 2)))
}

// TestVFormsByChance tries counts, roots, operators and options by chance.
func TestVFormsByChance(t *testing.T) {
	random, tries := rand.New(rand.NewPCG(17, 4)), 60
	if underRace {
		tries = 15
	}
	for range tries {
		counts := make([]int, 1+random.IntN(5))
		for r := range counts {
			counts[r] = []int{0, random.IntN(5), random.IntN(300), random.IntN(3000)}[random.IntN(4)]
		}
		ways := bothWays()
		o := ways[random.IntN(len(ways))]
		o.Reproducible, o.StageFragments = random.IntN(3) == 0, random.IntN(3) == 0
		o.MaxBytesPerTile = []int{0, 2, 70}[random.IntN(3)]
		op := operators[tensor.Float16]()
		x := newCountsCase[tensor.Float16](op[random.IntN(len(op))], random.IntN(len(counts)), counts)
		tryCounts(t, len(counts), []gcl.Options{o}, []countsCase[tensor.Float16]{x})
	}
}

// TestVFormsOnSockets tries the forms where every part is sent.
func TestVFormsOnSockets(t *testing.T) {
	const n = 3
	onSockets(t, func(t *testing.T, network tcp.Network) {
		var cases []countsCase[float32]
		for _, counts := range append(countsFor(n), []int{0, 20000, 7}) {
			cases = append(cases, newCountsCase[float32](gcl.Add, 1, counts))
		}
		tryCounts(t, n, []gcl.Options{{}, {Implementation: gcl.Syncful, MaxBytesPerTile: 1000},
			{Method: methods.ClockwiseRing}, {Method: methods.RecursiveDoubling, StageFragments: true}}, cases,
			sockets(t, network, n))
	})
}

// TestVFormsInGroups tries the forms in strided groups and in those of lists, by a program's own methods, of which one
// does not do most collectives, and where a member's memory cannot be laid open.
func TestVFormsInGroups(t *testing.T) {
	const n = 6
	for _, g := range []commgroup.Group{{Type: commgroup.Orthogonal, Size: 3}, lists([]int{4, 0, 5}, []int{1, 2, 3})} {
		x := newCountsCase[float32](gcl.Max, 2, []int{4, 0, 301})
		for k := range 3 {
			ends, err := inproc.New(n)
			if err != nil {
				t.Fatal(err)
			}
			hidden, err := faulty.WrapMemory(ends, 0, faulty.Hide(4, k))
			if err != nil {
				t.Fatal(err)
			}
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing, own(t, "like_direct"),
					own(t, "star")} {
					c := withOptions(grouped(c, g), gcl.Options{Method: m, Implementation: gcl.Syncful})
					if err := x.try(ctx, c); err != nil {
						return fmt.Errorf("%v: %w", m, err)
					}
				}
				return nil
			}, gcl.WithEndpoints(hidden), gcl.WithMethod("like_direct", like(methods.Direct)),
				gcl.WithMethod("star", star))
		}
	}
}

// TestVFormsTrace: a Trace is told that a call is by counts, how much it is, and that an all-to-all goes straight
// whatever the options ask, each part in one message.
func TestVFormsTrace(t *testing.T) {
	const n, long = 2, 3000
	counts := []int{1, long}
	var calls [n][]gcl.TraceCall
	var segments [n][]int
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		r := c.Rank()
		o := gcl.Options{Method: methods.ClockwiseRing, MaxBytesPerTile: 1, Trace: &gcl.Trace{
			CollectiveEnd: func(call gcl.TraceCall, _ error) { calls[r] = append(calls[r], call) },
			Segment: func(call gcl.TraceCall, _ int, s gcl.TraceSegment) {
				if call.Collective == schedule.AllToAll && s.Kind == transport.Send {
					segments[r] = append(segments[r], s.Bytes)
				}
			},
		}}
		c = withOptions(c, o)
		sent, received := counts, []int{counts[r], counts[r]}
		_, err1 := gcl.AllGatherV(ctx, c, make([]float32, counts[r]), counts)
		_, err2 := gcl.AllToAllV(ctx, c, make([]float32, 1+long), sent, received)
		err3 := batchVTo(ctx, c, schedule.AllToAll, [][]float32{make([]float32, 2*counts[r])},
			[][]float32{make([]float32, 1+long)}, 0, 0, [][]int{sent}, [][]int{received})
		return errors.Join(err1, err2, err3)
	})
	for r := range n {
		larger := max(1+long, 2*counts[r])
		for i, want := range []struct {
			method   methods.Method
			elements int
		}{{methods.ClockwiseRing, 1 + long}, {methods.Direct, larger}, {methods.Direct, larger}} {
			got := calls[r][i]
			if !got.ByCounts || got.Method != want.method || got.Elements != want.elements ||
				got.Bytes != 4*want.elements || got.Path != gcl.PathMessages {
				t.Errorf("replica %d, call %d: %+v, want %+v", r, i, got, want)
			}
		}
		if want := 4 * counts[1-r]; !slices.Equal(segments[r], []int{want, want}) {
			t.Errorf("replica %d sends segments of %v bytes in the all-to-alls, want one of %d in each", r, segments[r],
				want)
		}
	}
}

// TestVFormsOfNewCounts: calls on the same buffers, of as much in all, whose counts change from one to the next, in the
// caller's slices.
func TestVFormsOfNewCounts(t *testing.T) {
	const n = 3
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		r, all, mine, counts := c.Rank(), make([]int32, 6), make([]int32, 6), make([]int, n)
		alls, mines, lists := [][]int32{all, nil}, make([][]int32, 2), [][]int{counts, make([]int, n)}
		forms := map[string]func(c *gcl.Comm) error{
			"one":  func(c *gcl.Comm) error { return gcl.AllGatherVTo(ctx, c, all, mines[0], counts) },
			"many": func(c *gcl.Comm) error { return batchVTo(ctx, c, schedule.AllGather, alls, mines, 0, 0, lists) },
		}
		for _, o := range bothWays() {
			c := withOptions(c, o)
			for _, form := range []string{"one", "many"} {
				for _, next := range [][]int{{1, 2, 3}, {3, 2, 1}, {0, 0, 6}, {1, 2, 3}} {
					copy(counts, next)
					mines[0] = mine[:counts[r]]
					for i := range mines[0] {
						mine[i] = int32(10*r + i)
					}
					var want []int32
					for from, count := range counts {
						for i := range count {
							want = append(want, int32(10*from+i))
						}
					}
					clear(all)
					if err := errors.Join(forms[form](c), check(form, all, want)); err != nil {
						return fmt.Errorf("%v by %+v: %w", next, o, err)
					}
				}
			}
		}
		return nil
	})
}

// TestAllToAllVFromNothing: a destination that begins where an empty input does is not in place.
func TestAllToAllVFromNothing(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 0 {
			data := []int16{7, 8, 9}
			return gcl.AllToAllVTo(ctx, c, nil, data, []int{0, 3}, []int{0, 0})
		}
		room := make([]int16, 3)
		return errors.Join(gcl.AllToAllVTo(ctx, c, room, room[:0], []int{0, 0}, []int{3, 0}),
			check("all-to-all", room, []int16{7, 8, 9}))
	})
}
