package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// segments are the lengths of those that replicas take from others, as a Trace tells them.
func segments(t *testing.T, o gcl.Options, tiles int, body func(context.Context, *gcl.Comm) error) []int {
	t.Helper()
	machine, err := topology.New(topology.Config{Replicas: []int{2}, IOTiles: tiles})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var out []int
	o.Trace = &gcl.Trace{Segment: func(_ gcl.TraceCall, _ int, s gcl.TraceSegment) {
		mu.Lock()
		defer mu.Unlock()
		if s.Kind != transport.Send {
			out = append(out, s.Bytes)
		}
	}}
	replicas(t, 2, body, gcl.WithOptions(o), gcl.WithTopology(machine))
	return out
}

// TestSegments counts the segments of a message of 4 MiB: what 32 tiles of 35,000 bytes stage, unless told otherwise.
func TestSegments(t *testing.T) {
	const size = 4 << 20
	for _, x := range []struct {
		perTile, tiles int
		want           []int
	}{
		{0, 0, []int{1_120_000, 1_120_000, 1_120_000, size - 3*1_120_000}},
		{gcl.DefaultMaxBytesPerTile, topology.DefaultIOTiles, []int{1_120_000, 1_120_000, 1_120_000, size - 3*1_120_000}},
		{gcl.MaxBytesPerTileLimit, 0, []int{2_048_000, 2_048_000, size - 2*2_048_000}},
		{0, 64, []int{2_240_000, size - 2_240_000}},
		{32 << 10, 64, []int{2 << 20, 2 << 20}}, // no more than needed
		{0, 1472, []int{size}},
		{30_001, 33, []int{990_032, 990_032, 990_032, 990_032, size - 4*990_032}}, // of 990,033 bytes, whole elements
	} {
		for _, implementation := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			o := gcl.Options{Method: methods.SendToAll, Implementation: implementation, MaxBytesPerTile: x.perTile}
			for name, call := range map[string]func(context.Context, *gcl.Comm) error{
				"one": func(ctx context.Context, c *gcl.Comm) error {
					return gcl.BroadcastInPlace(ctx, c, make([]float64, size/8), 1)
				},
				"several": func(ctx context.Context, c *gcl.Comm) error {
					return batchInPlace(ctx, c, schedule.Broadcast, [][]float64{make([]float64, size/8), {}}, 0, 1)
				},
			} {
				if got := segments(t, o, x.tiles, call); !slices.Equal(got, x.want) {
					t.Errorf("%v, %d bytes a tile, %d tiles, %s: segments of %v bytes, want %v",
						implementation, x.perTile, x.tiles, name, got, x.want)
				}
			}
		}
	}
}

// TestSegmentsAreSent: the segments told are what goes out, 64 of a message in one round of the transport.
func TestSegmentsAreSent(t *testing.T) {
	const size, segment = 10_000, 32 * 3
	var mu sync.Mutex
	longest, segments, exchanges := 0, 0, 0
	endpoints := tapped(t, 2, func(_ transport.Call, batch []transport.Transfer) {
		mu.Lock()
		defer mu.Unlock()
		exchanges++
		segments += len(batch)
		for _, x := range batch {
			longest = max(longest, len(x.Buf))
		}
	})
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.BroadcastInPlace(ctx, c, make([]uint8, size), 0)
	}, gcl.WithEndpoints(endpoints), gcl.WithOptions(gcl.Options{Method: methods.SendToAll, MaxBytesPerTile: 3}))
	if longest != segment || segments != 2*105 || exchanges != 2*2 {
		t.Errorf("%d rounds with %d segments of up to %d bytes, want 4 with 210 of %d",
			exchanges, segments, longest, segment)
	}
}

// TestSegmentsOnPeerMemory: what goes in one pass goes in pieces of at most a segment, and nothing longer is published.
func TestSegmentsOnPeerMemory(t *testing.T) {
	for _, x := range []struct{ perTile, pieces int }{{0, 8}, {64, 32}, {1, 1024}} {
		replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, gcl.Options{MaxBytesPerTile: x.perTile})
			if err := gcl.AllReduceInPlace(ctx, c, make([]float32, 16<<10), gcl.Add); err != nil {
				return err
			}
			if got := gcl.Pieces(c); got != x.pieces {
				return fmt.Errorf("%d bytes a tile: %d pieces of 64 KiB, want %d", x.perTile, got, x.pieces)
			}
			return nil
		})
	}
	for bytes, want := range map[int]gcl.Path{96: gcl.PathSmall, 97: gcl.PathMemory} {
		for name, call := range map[string]func(context.Context, *gcl.Comm) error{
			"one": func(ctx context.Context, c *gcl.Comm) error {
				return gcl.BroadcastInPlace(ctx, c, make([]int8, bytes), 0)
			},
			"several": func(ctx context.Context, c *gcl.Comm) error {
				return batchInPlace(ctx, c, schedule.Broadcast, [][]int8{make([]int8, bytes), {}}, 0, 0)
			},
		} {
			if name == "several" && want == gcl.PathSmall {
				bytes = 64 // packed, it is whole cache lines
			}
			for _, p := range chosenPaths(t, gcl.Options{MaxBytesPerTile: 3}, call) {
				if p != want {
					t.Errorf("%d bytes, segments of 96, %s: %v, want %v", bytes, name, p, want)
				}
			}
		}
	}
}

// chosenPaths are those that two replicas' calls take.
func chosenPaths(t *testing.T, o gcl.Options, call func(context.Context, *gcl.Comm) error) []gcl.Path {
	t.Helper()
	var mu sync.Mutex
	var out []gcl.Path
	o.Trace = &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) {
		mu.Lock()
		defer mu.Unlock()
		out = append(out, c.Path)
	}}
	replicas(t, 2, call, gcl.WithOptions(o))
	return out
}

// TestPiecemealBits has the bits of all collectives when messages are cut up, staged, or both: by all methods on one
// element type, and on two others, of which float16 has wider partial results, in one group.
func TestPiecemealBits(t *testing.T) {
	ways, all, one, few := append(bothWays(), gcl.Options{}), []int{2, 3, 4, 5}, []int{3}, fewWays()
	if *full {
		one, few = all, ways
	}
	piecemealBits(t, single(), all, ways)
	piecemealBits(t, half(), one, ways)
	piecemealBits(t, double(), one, few)
}

func piecemealBits[T tensor.Element](t *testing.T, f float[T], groups []int, ways []gcl.Options) {
	for _, n := range groups {
		for i, base := range ways {
			if (testing.Short() || underRace) && (n+i)%4 != 0 {
				continue
			}
			for _, base.Reproducible = range []bool{false, true} {
				var others []gcl.Options
				for _, o := range []gcl.Options{{MaxBytesPerTile: 1}, {MaxBytesPerTile: 9}, {StageFragments: true},
					{StageFragments: true, MaxBytesPerTile: 5}} {
					other := base
					other.MaxBytesPerTile, other.StageFragments = o.MaxBytesPerTile, o.StageFragments
					others = append(others, other)
				}
				f.sameBits(t, n, base, others)
			}
		}
	}
}

// sameBits carries out all collectives with several sets of options, which must not show.
func (f float[T]) sameBits(t *testing.T, n int, plain gcl.Options, others []gcl.Options) {
	t.Helper()
	size := 97*n - 1 // not small, no multiple of a segment, and with a tail
	data := f.randoms(n, 97*n)
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		mine := data[c.Rank()]
		type named struct {
			name string
			call func(c *gcl.Comm) ([]T, error)
		}
		calls := []named{
			{"all-gather", func(c *gcl.Comm) ([]T, error) { return gcl.AllGather(ctx, c, mine) }},
			{"all-to-all", func(c *gcl.Comm) ([]T, error) { return gcl.AllToAll(ctx, c, mine) }},
			{"all-to-all in place", func(c *gcl.Comm) ([]T, error) {
				out := slices.Clone(mine)
				return out, gcl.AllToAllInPlace(ctx, c, out)
			}},
			{"broadcast", func(c *gcl.Comm) ([]T, error) { return gcl.Broadcast(ctx, c, mine, n-1) }},
			{"several all-gathers", func(c *gcl.Comm) ([]T, error) {
				out, err := gcl.AllGatherMany(ctx, c, [][]T{mine[:40], mine[40:]})
				return slices.Concat(out...), err
			}},
			{"several broadcasts", func(c *gcl.Comm) ([]T, error) {
				out := make([]T, len(mine))
				return out, batchTo(ctx, c, schedule.Broadcast, [][]T{out[:40], out[40:]},
					[][]T{mine[:40], mine[40:]}, 0, 0)
			}},
		}
		for _, op := range []gcl.Operator{gcl.Add, gcl.Mean, gcl.Max, gcl.SquareAdd} {
			calls = append(calls,
				named{fmt.Sprintf("all-reduce %v", op), func(c *gcl.Comm) ([]T, error) {
					return gcl.AllReduce(ctx, c, mine[:size], op)
				}},
				named{fmt.Sprintf("all-reduce %v in place", op), func(c *gcl.Comm) ([]T, error) {
					out := slices.Clone(mine[:size])
					return out, gcl.AllReduceInPlace(ctx, c, out, op)
				}},
				named{fmt.Sprintf("reduce-scatter %v", op), func(c *gcl.Comm) ([]T, error) {
					return gcl.ReduceScatter(ctx, c, mine[:size], op)
				}},
				named{fmt.Sprintf("several all-reduces %v", op), func(c *gcl.Comm) ([]T, error) {
					out, err := gcl.AllReduceMany(ctx, c, [][]T{mine[:40], mine[40:size]}, op)
					return slices.Concat(out...), err
				}},
			)
		}
		for _, x := range calls {
			want, err := x.call(withOptions(c, plain))
			if err != nil {
				return err
			}
			for _, other := range others {
				got, err := x.call(withOptions(c, other))
				if err != nil {
					return err
				}
				if err := check(fmt.Sprintf("%s with %+v", x.name, other), got, want); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestStageFragments: inputs are copied to memory of the connection, whatever carries the call out.
func TestStageFragments(t *testing.T) {
	const size = 96 << 10 // bytes
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing},
		{Method: methods.Direct, Implementation: gcl.Syncless},
		{Method: methods.BidirectionalRingPair, Implementation: gcl.Syncful}} {
		for _, stage := range []bool{false, true} {
			o.StageFragments = stage
			replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
				for _, call := range []func(*gcl.Comm) error{
					func(c *gcl.Comm) error { return gcl.AllReduceInPlace(ctx, c, make([]float32, size/4), gcl.Add) },
					func(c *gcl.Comm) error {
						return gcl.AllReduceManyInPlace(ctx, c,
							[][]float32{make([]float32, size/8), make([]float32, size/8)}, gcl.Add)
					},
				} {
					d, err := withOptions(c, o).Dup(ctx)
					if err != nil {
						return err
					}
					if err := errors.Join(call(d), d.Close()); err != nil {
						return err
					}
					if got := gcl.Staged(d); stage != (got >= size) || !stage && got > 0 {
						return fmt.Errorf("%+v: %d bytes staged of an input of %d", o, got, size)
					}
				}
				return nil
			})
		}
	}
}

// TestStageFragmentsWithin is the same for collectives within a replica: the result is the same, by way of a copy.
func TestStageFragmentsWithin(t *testing.T) {
	rows := [][]float32{{1, 2, 3, 4, 5}, {10, 20, 30, 40, 50}, {100, 200, 300, 400, 500}}
	machine, err := topology.New(topology.Config{Replicas: []int{1}, IPUsPerReplica: 2, IOTiles: 7})
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range []bool{false, true} {
		replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			c = withOptions(c, gcl.Options{StageFragments: stage})
			scattered, err := gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add)
			if err != nil {
				return err
			}
			for i, bytes := range gcl.StagedWithin(c, 3) {
				if want := 5 * 4; stage != (bytes >= want) {
					return fmt.Errorf("reduce-scatter: IPU %d has staged %d bytes, want %d or more: %v",
						i, bytes, want, stage)
				}
			}
			gathered, err := gcl.AllGatherWithinReplica(ctx, c, scattered)
			if err != nil {
				return err
			}
			for i, row := range gathered {
				if err := check(fmt.Sprintf("IPU %d", i), row, []float32{111, 222, 333, 444, 555}); err != nil {
					return err
				}
			}
			return nil
		})
		replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error { // an all-gather alone
			c = withOptions(c, gcl.Options{StageFragments: stage})
			own := chunks.Chunks[float32]{List: []chunks.Chunk[float32]{{Data: []float32{1}, Index: 0},
				{Data: []float32{2}, Index: 1}}}
			if _, err := gcl.AllGatherWithinReplica(ctx, c, own); err != nil {
				return err
			}
			if tiles := gcl.IOTilesWithin(c, 2); tiles != 7 {
				return fmt.Errorf("IPUs have %d IO tiles, want the topology's 7", tiles)
			}
			for i, bytes := range gcl.StagedWithin(c, 2) {
				if stage != (bytes >= 4) {
					return fmt.Errorf("all-gather: IPU %d has staged %d bytes: %v", i, bytes, stage)
				}
			}
			return nil
		}, gcl.WithTopology(machine))
	}
}

// TestFragmentsAreAligned: staged, every fragment that is sent begins a cache line, whatever the elements are.
func TestFragmentsAreAligned(t *testing.T) {
	for _, stage := range []bool{false, true} {
		var mu sync.Mutex
		apart := 0
		endpoints := tapped(t, 3, func(_ transport.Call, batch []transport.Transfer) {
			mu.Lock()
			defer mu.Unlock()
			for _, x := range batch {
				if x.Kind == transport.Send && uintptr(unsafe.Pointer(unsafe.SliceData(x.Buf)))%64 != 0 {
					apart++
				}
			}
		})
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			err1 := gcl.AllReduceInPlace(ctx, c, make([]int16, 1001), gcl.Add)
			_, err2 := gcl.AllGather(ctx, c, make([]int16, 77))
			return errors.Join(err1, err2, gcl.AllToAllInPlace(ctx, c, make([]int16, 3*77)),
				gcl.BroadcastInPlace(ctx, c, make([]int16, 1001), 1))
		}, gcl.WithEndpoints(endpoints),
			gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, StageFragments: stage}))
		if stage != (apart == 0) {
			t.Errorf("StageFragments %v: %d messages do not begin a cache line", stage, apart)
		}
	}
}

// TestPiecemealTensors cuts messages that hold several types.
func TestPiecemealTensors(t *testing.T) {
	for _, o := range []gcl.Options{{Method: methods.ClockwiseRing},
		{Method: methods.Direct, Implementation: gcl.Syncless},
		{Method: methods.MeetInMiddleRing, Implementation: gcl.Syncful}} {
		cut := o
		cut.MaxBytesPerTile = 1
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			all := func() []*tensor.Tensor {
				a, b, d := make([]float32, 50), make([]tensor.Float16, 33), make([]int8, 121)
				for i := range a {
					a[i] = float32(i*7+c.Rank()) / 3
				}
				for i := range b {
					b[i] = tensor.Float16FromFloat32(float32(i*5-c.Rank()) / 7)
				}
				for i := range d {
					d[i] = int8(i*11 + c.Rank())
				}
				return []*tensor.Tensor{must(tensor.FromSlice(a, len(a))), must(tensor.FromSlice(b, len(b))),
					must(tensor.FromSlice(d, len(d)))}
			}
			want, got := all(), all()
			err1 := gcl.AllReduceTensorsInPlace(ctx, withOptions(c, o), want, gcl.Add)
			err2 := gcl.AllReduceTensorsInPlace(ctx, withOptions(c, cut), got, gcl.Add)
			if err := errors.Join(err1, err2); err != nil {
				return err
			}
			for i := range want {
				if err := check(fmt.Sprintf("%+v: tensor %d", cut, i), got[i].Bytes(), want[i].Bytes()); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// TestPiecemealTensorsOfManyLengths: a tensor whose messages take five windows of segments comes before one whose
// messages take two.
func TestPiecemealTensorsOfManyLengths(t *testing.T) {
	const n = 3
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless, MaxBytesPerTile: 1})
		long, short := make([]int16, 15000), make([]int16, 6144)
		for i := range long {
			long[i] = int16(i + c.Rank())
		}
		if err := gcl.AllReduceManyInPlace(ctx, c, [][]int16{long, short}, gcl.Add); err != nil {
			return err
		}
		for i, v := range long {
			if want := int16(n*i + n*(n-1)/2); v != want {
				return fmt.Errorf("element %d of %d is %d, want %d", i, len(long), v, want)
			}
		}
		return nil
	})
}

// must is for what cannot fail.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // which Run reports
	}
	return v
}

// methodTaken reports which method Auto takes for an all-reduce of so many bytes by a group.
func methodTaken(t *testing.T, n int, g commgroup.Group, o gcl.Options, bytes int) methods.Method {
	t.Helper()
	var taken methods.Method
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		mine := o
		if c.Replica() == 0 {
			mine.Trace = &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { taken = c.Method }}
		}
		return gcl.AllReduceInPlace(ctx, withOptions(grouped(c, g), mine), make([]int8, bytes), gcl.Add)
	})
	return taken
}

// TestMaxBroadcastSize: broadcast is taken up to exactly group size x bytes, and never with a stride above 1.
func TestMaxBroadcastSize(t *testing.T) {
	all, apart := commgroup.Group{}, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}
	next, across := commgroup.Group{Type: commgroup.Consecutive, Size: 2},
		commgroup.Group{Type: commgroup.Orthogonal, Size: 2}
	for _, x := range []struct {
		implementation gcl.Implementation
		limit          int
		group          commgroup.Group
		bytes          int
		want           methods.Method
	}{
		{gcl.AutoImplementation, 0, all, 8, methods.Direct},
		{gcl.AutoImplementation, 2048, all, 512, methods.SendToAll},
		{gcl.AutoImplementation, 2048, all, 513, methods.Direct},
		{gcl.AutoImplementation, 2047, all, 511, methods.SendToAll},
		{gcl.AutoImplementation, 2047, all, 512, methods.Direct},
		{gcl.AutoImplementation, 2048, next, 1024, methods.SendToAll},
		{gcl.AutoImplementation, 2048, next, 1025, methods.Direct},
		{gcl.AutoImplementation, 2048, apart, 8, methods.Direct},
		{gcl.AutoImplementation, 2048, across, 8, methods.SendToAll}, // its stride is not explicit
		{gcl.AutoImplementation, 1 << 20, all, 256 << 10, methods.SendToAll},
		{gcl.AutoImplementation, gcl.NoBroadcast, all, 0, methods.Direct},
		{gcl.Syncless, 0, all, 2048, methods.SendToAll}, // as measured
		{gcl.Syncless, 0, all, 2049, methods.Direct},
		{gcl.Syncless, 2048, all, 512, methods.SendToAll},
		{gcl.Syncless, 2048, all, 513, methods.Direct},
		{gcl.Syncless, 1 << 20, all, 256 << 10, methods.SendToAll},
		{gcl.Syncless, 1 << 20, apart, 8, methods.Direct},
		{gcl.Syncless, 0, apart, 8, methods.Direct},
		{gcl.Syncless, gcl.NoBroadcast, all, 0, methods.Direct},
		{gcl.Syncful, 2048, all, 512, methods.SendToAll},
		{gcl.Syncful, 2048, all, 513, methods.Direct},
	} {
		o := gcl.Options{Implementation: x.implementation, MaxBroadcastSize: x.limit}
		if got := methodTaken(t, 4, x.group, o, x.bytes); got != x.want {
			t.Errorf("%+v: %v", x, got)
		}
	}
}

// TestMaxBroadcastSizeExplained: the reason names the limit that is set.
func TestMaxBroadcastSizeExplained(t *testing.T) {
	for _, x := range []struct {
		limit int
		bytes int64
		want  string
	}{
		{2048, 512, "broadcast, since group size x bytes, 4 x 512, is at or below 2048; Syncful"},
		{2048, 516, "direct, since on peer memory it is one pass; Syncful"},
		{gcl.NoBroadcast, 4, "direct, since on peer memory it is one pass; Syncful"},
	} {
		replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
			e, err := withOptions(c, gcl.Options{MaxBroadcastSize: x.limit}).Explain(schedule.AllReduce, x.bytes,
				tensor.F32)
			if err == nil && !strings.HasPrefix(e.Why, x.want) {
				err = fmt.Errorf("limit %d, %d bytes: %q, want %q", x.limit, x.bytes, e.Why, x.want)
			}
			return err
		})
	}
	replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
		e, err := withOptions(c, gcl.Options{Implementation: gcl.Syncless,
			MaxBroadcastSize: gcl.NoBroadcast}).Explain(schedule.AllReduce, 8, tensor.F32)
		if err == nil && !strings.HasPrefix(e.Why, "direct, since broadcast is never to be taken") {
			err = fmt.Errorf("without broadcast: %q", e.Why)
		}
		return err
	})
}

// The limit is named for a phase of Hybrid too.
func TestMaxBroadcastSizeExplainedUnderHybrid(t *testing.T) {
	replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
		e, err := withOptions(c, gcl.Options{Implementation: gcl.Hybrid,
			MaxBroadcastSize: 600}).Explain(schedule.AllReduce, 4096, tensor.F32)
		if err == nil && !strings.Contains(e.Why, "group size x bytes, 2 x 2048, is above 600") {
			err = fmt.Errorf("%q", e.Why)
		}
		return err
	}, gcl.WithTopology(hosts(t, 2, 2)))
}

// TestTagsAreDense: whatever is cut into segments, the transfers from one replica to another are numbered without
// holes.
func TestTagsAreDense(t *testing.T) {
	const n = 3
	for _, m := range methods.All() {
		var mu sync.Mutex
		holes := 0
		endpoints := tapped(t, n, func(_ transport.Call, batch []transport.Transfer) {
			mu.Lock()
			defer mu.Unlock()
			seen, most := map[[2]int]int{}, map[[2]int]int{}
			for _, x := range batch {
				way := [2]int{x.Peer, 0}
				if x.Kind == transport.Send {
					way[1] = 1
				}
				seen[way]++
				most[way] = max(most[way], int(x.Tag)+1)
			}
			for way, count := range seen {
				if most[way] != count {
					holes++
				}
			}
		})
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			data := [][]float32{make([]float32, 30000), make([]float32, 8000), make([]float32, 5)}
			return errors.Join(gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add),
				batchInPlace(ctx, c, schedule.Broadcast, data, 0, 1))
		}, gcl.WithEndpoints(endpoints), gcl.WithOptions(gcl.Options{Method: m, MaxBytesPerTile: 200}))
		if holes > 0 {
			t.Errorf("%v: %d batches have tags with holes", m, holes)
		}
	}
}

// TestPiecemealInGroups: staging, segments and the limit change no bits in groups and under Hybrid.
func TestPiecemealInGroups(t *testing.T) {
	for _, x := range []struct {
		options gcl.Options
		group   commgroup.Group
	}{
		{gcl.Options{Implementation: gcl.Hybrid}, commgroup.Group{}},
		{gcl.Options{Implementation: gcl.Hybrid, Method: methods.ClockwiseRing}, commgroup.Group{}},
		{gcl.Options{}, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}},
		{gcl.Options{Method: methods.MeetInMiddleRing}, commgroup.Group{Type: commgroup.Orthogonal, Size: 2}},
	} {
		other := x.options
		other.MaxBytesPerTile, other.StageFragments, other.MaxBroadcastSize = 7, true, 1<<20
		replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			a, b := withOptions(grouped(c, x.group), x.options), withOptions(grouped(c, x.group), other)
			data := make([]int32, 1001)
			for i := range data {
				data[i] = int32(i*i + 17*c.Replica())
			}
			for _, call := range []func(*gcl.Comm) ([]int32, error){
				func(c *gcl.Comm) ([]int32, error) { return gcl.AllReduce(ctx, c, data, gcl.Add) },
				func(c *gcl.Comm) ([]int32, error) { return gcl.ReduceScatter(ctx, c, data, gcl.Max) },
				func(c *gcl.Comm) ([]int32, error) { return gcl.AllGather(ctx, c, data) },
				func(c *gcl.Comm) ([]int32, error) { return gcl.AllToAll(ctx, c, data[:1000]) },
				func(c *gcl.Comm) ([]int32, error) { return gcl.Broadcast(ctx, c, data, 1) },
				func(c *gcl.Comm) ([]int32, error) {
					out, err := gcl.ReduceScatterMany(ctx, c, [][]int32{data[:9], data[9:]}, gcl.Add)
					return slices.Concat(out...), err
				},
				func(c *gcl.Comm) ([]int32, error) {
					return gcl.ReduceScatterMapped(ctx, c, data, chunks.Mapping{400, 601}, gcl.Add)
				},
			} {
				want, err1 := call(a)
				got, err2 := call(b)
				if err := errors.Join(err1, err2, check(fmt.Sprintf("%+v", other), got, want)); err != nil {
					return err
				}
			}
			return nil
		}, gcl.WithTopology(hosts(t, 2, 2)))
	}
}

// TestPiecemealMismatch: one replica with another of the options is found, by Many and under Hybrid too.
func TestPiecemealMismatch(t *testing.T) {
	for _, base := range []gcl.Options{{Implementation: gcl.Hybrid}, {Method: methods.ClockwiseRing}, {}} {
		for name, odd := range map[string]func(*gcl.Options){
			"MaxBytesPerTile":  func(o *gcl.Options) { o.MaxBytesPerTile = 1 },
			"StageFragments":   func(o *gcl.Options) { o.StageFragments = true },
			"MaxBroadcastSize": func(o *gcl.Options) { o.MaxBroadcastSize = 1 << 30 },
		} {
			if name == "MaxBroadcastSize" && base.Method != methods.Auto {
				continue // it says nothing then
			}
			errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				o := base
				if c.Replica() == 1 {
					odd(&o)
				}
				c = withOptions(c, o)
				if name == "MaxBroadcastSize" {
					return gcl.AllReduceInPlace(ctx, c, make([]int64, 5000), gcl.Add)
				}
				return gcl.AllReduceManyInPlace(ctx, c, [][]int64{make([]int64, 5000), {1}}, gcl.Add)
			}, gcl.WithTopology(hosts(t, 2, 2)))
			for r, err := range errs {
				if !errors.Is(err, gcl.ErrMismatch) && !errors.Is(err, gcl.ErrAborted) ||
					r == 1 && !errors.Is(err, gcl.ErrMismatch) {
					t.Errorf("%v %v, %s on replica 1: replica %d: %v", base.Implementation, base.Method, name, r, err)
				}
			}
		}
	}
}
