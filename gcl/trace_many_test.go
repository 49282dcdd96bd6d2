package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
)

// A call on several tensors is one call, with one method, to whoever looks on.
func TestTraceOfMany(t *testing.T) {
	shaped := func(dtype tensor.DType, n int) *tensor.Tensor {
		x, err := tensor.New(dtype, n)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	for _, x := range []struct {
		name    string
		options gcl.Options
		call    func(context.Context, *gcl.Comm) error
		dtype   tensor.DType
		numbers string // tensors, elements, bytes
		chosen  string // Method, Implementation, Path, rounds
		// segments of replica 0
		segments int
	}{
		{"slices by messages", gcl.Options{Method: methods.ClockwiseRing},
			func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceManyInPlace(ctx, c, [][]float32{make([]float32, 3), make([]float32, 5)}, gcl.Add)
			}, tensor.F32, "2 8 32", "clockwise_ring Syncless messages 2", 4},
		{"one of them apart", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
			func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceManyInPlace(ctx, c, [][]float32{make([]float32, 3), make([]float32, 1<<14)},
					gcl.Add)
			}, tensor.F32, "2 16387 65548", "clockwise_ring Syncful peer memory in rounds 2", 4},
		{"small tensors", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllGatherTensors(ctx, c, []*tensor.Tensor{shaped(tensor.F32, 2), shaped(tensor.I8, 3)})
			return err
		}, 0, "2 5 22", "direct Syncful small 1", 0},
		{"in one pass", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, [][]int16{make([]int16, 5000), make([]int16, 1)}, gcl.Add)
		}, tensor.I16, "2 5001 10002", "direct Syncful peer memory 1", 0},
		{"mapped", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatterMapped(ctx, c, make([]int32, 6), chunks.Mapping{4, 0, 2}, gcl.Add)
			return err
		}, tensor.I32, "3 6 24", "direct Syncful small 1", 0},
		{"a batch", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			b := c.Batch(schedule.AllReduce, gcl.Add, 0)
			gcl.Append(b, make([]float32, 3), make([]float32, 3))
			gcl.Append(b, make([]float64, 2), make([]float64, 2))
			return b.Run(ctx)
		}, 0, "2 5 28", "direct Syncful small 1", 0},
		{"a batch of one", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			b := c.Batch(schedule.AllGather, 0, 0)
			gcl.Append(b, make([]float32, 6), make([]float32, 3))
			return b.Run(ctx)
		}, tensor.F32, "0 3 24", "direct Syncful small 1", 0},
		{"Local", gcl.Options{}, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, [][]int8{{1}}, gcl.Local)
		}, tensor.I8, "1 1 1", "auto Auto local 0", 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			var mu sync.Mutex
			var log []string
			segments := 0
			note := func(c gcl.TraceCall, text string) {
				mu.Lock()
				defer mu.Unlock()
				if c.Replica == 0 {
					log = append(log, text)
				}
			}
			x.options.Trace = &gcl.Trace{
				CollectiveStart: func(c gcl.TraceCall) {
					if c.DType != x.dtype {
						t.Errorf("%v, want %v", c.DType, x.dtype)
					}
					note(c, fmt.Sprint(c.String(), " ", c.Tensors, c.Elements, c.Bytes))
				},
				MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
					note(c, fmt.Sprint(c.Method, " ", c.Implementation, " ", c.Path, " ", m.Rounds))
				},
				Segment: func(c gcl.TraceCall, _ int, s gcl.TraceSegment) {
					mu.Lock()
					defer mu.Unlock()
					if c.Replica == 0 {
						segments++
					}
				},
				CollectiveEnd: func(c gcl.TraceCall, err error) { note(c, fmt.Sprint("end ", err)) },
			}
			replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
				return x.call(ctx, c.Named("all"))
			}, gcl.WithOptions(x.options))
			if len(log) != 3 || !strings.HasSuffix(log[0], ` #1 "all" `+x.numbers) || log[1] != x.chosen ||
				log[2] != "end <nil>" || segments != x.segments {
				t.Errorf("%q and %d segments, want %s, %s and %d", log, segments, x.numbers, x.chosen, x.segments)
			}
		})
	}
}

// A call on several tensors that is refused, or fails, is named, told of and recorded.
func TestDumpOfMany(t *testing.T) {
	var e events
	o := gcl.Options{Method: methods.ClockwiseRing, Trace: e.trace()}
	var refused [2]error
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		c = c.Named("grads")
		if err := gcl.AllReduceManyInPlace(ctx, c, [][]float32{make([]float32, 8), make([]float32, 1)},
			gcl.Add); err != nil {
			return err
		}
		refused[c.Rank()] = batchInPlace(ctx, c, schedule.AllToAll, [][]int8{make([]int8, 2), make([]int8, 3)}, 0, 0)
		if c.Rank() == 1 {
			c.Abort(errBoom)
			return nil
		}
		return batchInPlace(ctx, c, schedule.Broadcast, [][]int8{{1}, {2}}, 0, 1)
	}, gcl.WithOptions(o))
	if err := refused[0]; err == nil ||
		!strings.HasPrefix(err.Error(), `gcl: all-to-all #2 "grads": replica 0: operand 1: `) {
		t.Errorf("error %v", err)
	}
	if err := errs[0]; !errors.Is(err, gcl.ErrAborted) ||
		!strings.HasPrefix(err.Error(), `gcl: broadcast #3 "grads": `) {
		t.Errorf("error %v", err)
	}
	ends := 0
	for _, line := range e.list[0] {
		if strings.HasPrefix(line, "end ") {
			ends++
		}
	}
	if last := e.list[0][len(e.list[0])-1]; ends != 3 || !strings.HasSuffix(last, errs[0].Error()) {
		t.Errorf("events %q", e.list[0])
	}
	text := dumped(errs[0])
	for _, want := range []string{
		"replica 0, connection 0: 3 collectives\n",
		` T T done all-reduce #1 "grads" (ADD tensors, float32 x 9 in all, group {0, 1}), clockwise_ring, messages` +
			"\n",
		` T T failed all-to-all #2 "grads" (tensors, int8 x 5 in all, group {0, 1})` + "\n",
		` broadcast #3 "grads" (tensors, int8 x 2 in all, root 1, group {0, 1}), clockwise_ring, messages` + "\n",
		"replica 1, connection 0: 2 collectives\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// A call by Hybrid is one call with a method for each phase.
func TestTraceOfHybrid(t *testing.T) {
	var e events
	o := gcl.Options{Implementation: gcl.Hybrid, Trace: e.trace()}
	var mu sync.Mutex
	var phases []string
	chosen := o.Trace.MethodChosen
	o.Trace.MethodChosen = func(c gcl.TraceCall, m gcl.TraceMethod) {
		chosen(c, m)
		mu.Lock()
		defer mu.Unlock()
		if c.Replica == 0 {
			phases = append(phases, fmt.Sprint(c.Phase, " ",
				c.Seq, " ", c.Collective, " ", c.Path, " ", c.Implementation))
		}
	}
	var bad error
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		if err := gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 5000), gcl.Add); err != nil {
			return err
		}
		if err := gcl.BroadcastInPlace(ctx, c, []int8{1}, 9); c.Rank() == 0 {
			bad = err
		}
		return c.Barrier(ctx)
	}, gcl.WithOptions(o), gcl.WithTopology(hosts(t, 2, 2)))
	want := []string{"1 1 all-reduce peer memory Hybrid",
		"2 1 all-reduce messages Hybrid", "3 1 all-reduce peer memory Hybrid"}
	if len(phases) != 6 || !slices.Equal(phases[:3], want) {
		t.Errorf("phases %q, want %q and those of a barrier", phases, want)
	}
	open, starts, ends := 0, 0, 0
	for _, line := range e.list[0] {
		switch {
		case strings.HasPrefix(line, "start "):
			starts++
		case strings.HasPrefix(line, "end "):
			ends++
		case strings.HasPrefix(line, "  chosen ") && open != 0:
			t.Errorf("a phase begins within a round: %q", e.list[0])
		case strings.HasPrefix(line, "  round ") && strings.HasSuffix(line, " ends: <nil>"):
			open--
		case strings.HasPrefix(line, "  round "):
			open++
		}
	}
	if starts != 3 || ends != 3 || open != 0 {
		t.Errorf("%d starts, %d ends, %d rounds open: %q", starts, ends, open, e.list[0])
	}
	if text := dumped(bad); strings.Count(text,
		` T T done all-reduce #1 "grads" (ADD float32 x 5000, group {0, 1, 2, 3}), Hybrid phase 3, direct, peer memory`) != 4 {
		t.Errorf("Dump:\n%s", text)
	}
}

// A Dump of a failure between hosts says in which phase it was.
func TestDumpOfHybrid(t *testing.T) {
	errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		n := 5000
		if c.Rank() >= 2 {
			n++ // inside its host each is right
		}
		return gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Add)
	}, gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}), gcl.WithTopology(hosts(t, 2, 2)))
	if !errors.Is(errs[0], gcl.ErrMismatch) {
		t.Errorf("error %v", errs[0])
	}
	if text := dumped(errs[0]); !strings.Contains(text, "failed in round 0 all-reduce #1 (ADD float32 x 5000, group "+
		"{0, 1, 2, 3}), Hybrid phase 2, ") {
		t.Errorf("%v\n%s", errs[0], text)
	}
}

// A collective within the replica is named, recorded and told of, with what IPU 0 does of it.
func TestDumpOfWithin(t *testing.T) {
	var told []string
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		c = c.Named("rows")
		if _, err := gcl.AllReduceWithinReplica(ctx, c, [][]int8{{1}, {2}}, gcl.Add); err != nil {
			return err
		}
		_, err := gcl.AllReduceWithinReplica(ctx, c, [][]int8{{1}, {2, 3}}, gcl.Add)
		if err == nil || !strings.HasPrefix(err.Error(),
			`gcl: all-reduce within the replica "rows": replica 0: the row of IPU 1 `) {
			t.Errorf("error %v", err)
		}
		mustDump(t, err,
			`gcl: flight recorder; times are relative to the failure of all-reduce within the replica "rows" on replica 0`,
			"replica 0, connection 0: 2 collectives",
			tableHead,
			`  T T done all-reduce within the replica "rows" (2 IPUs)`,
			`> T T failed all-reduce within the replica "rows" (2 IPUs)`,
		)
		return nil
	}, gcl.WithOptions(gcl.Options{Trace: withinTrace(&told)}))
	want := []string{
		`start all-reduce within the replica "rows" of 2 int8 x 2 = 2 bytes`,
		`chosen direct Syncful small`,
		`round 0 of all-reduce within the replica "rows"`,
		`round 0 of all-reduce within the replica "rows" ends: <nil>`,
		`end all-reduce within the replica "rows" of 2 int8 x 2 = 2 bytes: <nil>`,
		`start all-reduce within the replica "rows" of 2 int8 x 3 = 3 bytes`,
		`end all-reduce within the replica "rows" of 2 int8 x 3 = 3 bytes: gcl: all-reduce within the replica "rows": replica 0: the row of IPU 1 has 2 elements`,
	}
	mustTell(t, told, want)
}

// mustTell compares the beginnings of events.
func mustTell(t *testing.T, told, want []string) {
	t.Helper()
	for i := range max(len(told), len(want)) {
		if i >= len(told) || i >= len(want) || !strings.HasPrefix(told[i], want[i]) {
			t.Fatalf("event %d of\n%s\nis not as in\n%s", i, strings.Join(told, "\n"), strings.Join(want, "\n"))
		}
	}
}

// withinTrace is a Trace for collectives within a replica, which puts events into a list.
func withinTrace(told *[]string) *gcl.Trace {
	add := func(format string, args ...any) { *told = append(*told, fmt.Sprintf(format, args...)) }
	describe := func(c gcl.TraceCall) string {
		return fmt.Sprintf("%v of %d %v x %d = %d bytes", c, c.IPUs, c.DType, c.Elements, c.Bytes)
	}
	return &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) { add("start %s", describe(c)) },
		MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			if m.Ring != nil {
				add("ring %v", m.Ring)
			}
			add("chosen %v %v %v", c.Method, c.Implementation, c.Path)
		},
		RoundStart:    func(c gcl.TraceCall, round int) { add("round %d of %v", round, c) },
		Segment:       func(_ gcl.TraceCall, _ int, s gcl.TraceSegment) { add("%v %d: %d", s.Kind, s.Peer, s.Bytes) },
		RoundEnd:      func(c gcl.TraceCall, round int, err error) { add("round %d of %v ends: %v", round, c, err) },
		CollectiveEnd: func(c gcl.TraceCall, err error) { add("end %s: %v", describe(c), err) },
	}
}

// TestTraceWithin: the peers of IPU 0 are IPUs, and the ring is the ladder's.
func TestTraceWithin(t *testing.T) {
	var told []string
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		in := chunks.NewChunks[int16](4)
		for i, index := range []int{0, 3, 1, 2} {
			in.List[i] = chunks.Chunk[int16]{Data: make([]int16, 1+i), Index: index}
		}
		_, err := gcl.AllGatherWithinReplica(ctx, c, in)
		return err
	}, gcl.WithOptions(gcl.Options{Trace: withinTrace(&told), Method: methods.ClockwiseRing}))
	mustTell(t, told, []string{
		"start all-gather within the replica of 4 int16 x 10 = 80 bytes",
		"ring [0 2 3 1]", "chosen clockwise_ring Syncless messages",
		"round 0 of", "send to 2: 2", "receive from 1: 4", "round 0 of all-gather within the replica ends: <nil>",
		"round 1 of", "send to 2: 4", "receive from 1: 8", "round 1 of all-gather within the replica ends: <nil>",
		"round 2 of", "send to 2: 8", "receive from 1: 6", "round 2 of all-gather within the replica ends: <nil>",
		"end all-gather within the replica of 4 int16 x 10 = 80 bytes: <nil>",
	})
}

// A panic in a Trace ends a collective within a replica, and so does a Goexit: no IPU is left waiting.
func TestTraceCrashesWithin(t *testing.T) {
	for name, trace := range map[string]*gcl.Trace{
		"start":  {CollectiveStart: func(gcl.TraceCall) { panic("in a Trace") }},
		"round":  {RoundStart: func(gcl.TraceCall, int) { panic("in a Trace") }},
		"end":    {CollectiveEnd: func(gcl.TraceCall, error) { panic("in a Trace") }},
		"goexit": {RoundStart: func(gcl.TraceCall, int) { runtime.Goexit() }},
	} {
		ctx, stop := lookOn(t)
		err := gcl.Run(ctx, 1, func(ctx context.Context, c *gcl.Comm) error {
			rows := make([][]int32, 4)
			for i := range rows {
				rows[i] = make([]int32, 50_000)
			}
			defer func() { // by now no IPU reads them, which the race detector watches
				for _, row := range rows {
					row[len(row)-1] = 1
				}
			}()
			_, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
			return err
		}, gcl.WithOptions(gcl.Options{Trace: trace, Method: methods.ClockwiseRing}))
		stop()
		if want := map[bool]string{true: "Goexit", false: "in a Trace"}[name == "goexit"]; err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A mismatch in a phase of Hybrid names the members of the phase.
func TestHybridMismatchNamesThePhase(t *testing.T) {
	errs := failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, make([]int32, 5000+c.Replica()/3), gcl.Add)
	}, gcl.WithTopology(hosts(t, 2, 2)), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
	if err := errs[3]; !errors.Is(err, gcl.ErrMismatch) ||
		!strings.Contains(err.Error(), "Hybrid phase 1, round 0, group {2, 3})") {
		t.Errorf("%v", err)
	}
}

// A root that is refused is told of as it is, as far as 32 bits go.
func TestTraceOfBadRoot(t *testing.T) {
	var told []int
	trace := &gcl.Trace{CollectiveEnd: func(c gcl.TraceCall, _ error) { told = append(told, c.Root) }}
	replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		for _, root := range []int{-1, 1, math.MaxInt} {
			if err := gcl.BroadcastInPlace(ctx, c, []int8{1}, root); err == nil {
				return fmt.Errorf("root %d is not refused", root)
			}
		}
		return nil
	}, gcl.WithOptions(gcl.Options{Trace: trace}))
	if want := []int{-1, 1, math.MaxInt32}; !slices.Equal(told, want) {
		t.Errorf("roots %v, want %v", told, want)
	}
}

// TestTraceOfNamedRings: the ring that is told is the one that the option names, on the machine given.
func TestTraceOfNamedRings(t *testing.T) {
	for ring, want := range map[topology.RingName][]int{
		topology.Auto:           {0, 2, 4, 6, 7, 5, 3, 1},
		topology.PeripheralRing: {0, 2, 4, 6, 7, 5, 3, 1},
	} {
		machine, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{8}})
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		trace := &gcl.Trace{MethodChosen: func(_ gcl.TraceCall, m gcl.TraceMethod) {
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(m.Ring, want) {
				t.Errorf("%v: ring %v, want %v", ring, m.Ring, want)
			}
		}}
		replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int16, 9), gcl.Add)
		}, gcl.WithTopology(machine),
			gcl.WithOptions(gcl.Options{Topology: ring, Method: methods.ClockwiseRing, Trace: trace}))
	}
	machine, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{4}, IPUsPerReplica: 2})
	if err != nil {
		t.Fatal(err)
	}
	rings := map[topology.RingName]string{}
	for _, ring := range []topology.RingName{topology.RungRing2, topology.RingOnLine} {
		trace := &gcl.Trace{MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			if c.Replica == 0 {
				rings[ring] = fmt.Sprint(m.Ring)
			}
		}}
		replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int16, 9), gcl.Add)
		}, gcl.WithTopology(machine),
			gcl.WithOptions(gcl.Options{Topology: ring, Method: methods.ClockwiseRing, Trace: trace}))
	}
	if rings[topology.RungRing2] != "[0 1 2 3]" || rings[topology.RingOnLine] != "[0 2 3 1]" {
		t.Errorf("rings %v", rings)
	}
}

// TestRingsOfOneGroup: on peer memory, where replicas share the plans of a group, each ring of it has its own.
func TestRingsOfOneGroup(t *testing.T) {
	machine, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{4}, IPUsPerReplica: 2})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, r := range []struct {
			name topology.RingName
			ring []int
		}{{topology.RungRing2, []int{0, 1, 2, 3}}, {topology.RingOnLine, []int{0, 2, 3, 1}},
			{topology.RungRing2, []int{0, 1, 2, 3}}} {
			at := slices.Index(r.ring, c.Rank())
			peers := map[int]bool{}
			trace := &gcl.Trace{Segment: func(_ gcl.TraceCall, _ int, s gcl.TraceSegment) { peers[s.Peer] = true }}
			on := withOptions(c, gcl.Options{Topology: r.name, Method: methods.ClockwiseRing,
				Implementation: gcl.Syncful, Trace: trace})
			if err := gcl.AllReduceInPlace(ctx, on, make([]int16, 9), gcl.Add); err != nil {
				return err
			}
			if behind := r.ring[(at+3)%4]; len(peers) != 1 || !peers[behind] {
				return fmt.Errorf("on %v the data comes from %v, want replica %d", r.name, peers, behind)
			}
		}
		return nil
	}, gcl.WithTopology(machine))
}

// TestTraceOfRefusedLists: the Trace is told what a list that is refused has had in it.
func TestTraceOfRefusedLists(t *testing.T) {
	data := [][]float32{make([]float32, 3), make([]float32, 4)}
	tensors := []*tensor.Tensor{flat(data[0]), flat(data[1])}
	for _, x := range []struct {
		name     string
		call     func(ctx context.Context, c *gcl.Comm) error
		tensors  int
		elements int
		dtype    tensor.DType
	}{
		{"fewer destinations", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyTo(ctx, c, data[:1], data, gcl.Add)
		}, 2, 7, tensor.F32},
		{"fewer tensors as destinations", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsTo(ctx, c, tensors[:1], tensors, gcl.Add)
		}, 2, 7, tensor.F32},
		{"fewer destinations, and types that differ", func(ctx context.Context, c *gcl.Comm) error {
			none := flat([]int32{})
			return gcl.AllReduceTensorsTo(ctx, c, nil, []*tensor.Tensor{none, tensors[0], none, tensors[1]}, gcl.Add)
		}, 4, 7, 0},
		{"an unknown operator", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceManyInPlace(ctx, c, data, 99)
		}, 2, 7, tensor.F32},
		{"no destination", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceTensorsTo(ctx, c, []*tensor.Tensor{nil, tensors[1]}, tensors, gcl.Add)
		}, 2, 7, tensor.F32},
		{"a mapping of another length", func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceScatterMappedTo(ctx, c, data[0][:2], data[1], chunks.Mapping{1, 2}, gcl.Add)
		}, 2, 4, tensor.F32},
	} {
		replicas(t, 1, func(ctx context.Context, c *gcl.Comm) error {
			var told gcl.TraceCall
			c = withOptions(c, gcl.Options{Trace: &gcl.Trace{
				CollectiveEnd: func(k gcl.TraceCall, _ error) { told = k }}})
			if err := x.call(ctx, c); err == nil {
				return fmt.Errorf("%s: no error", x.name)
			}
			if told.Tensors != x.tensors || told.Elements != x.elements || told.DType != x.dtype ||
				told.Bytes != 4*x.elements {
				return fmt.Errorf("%s: told of %d tensors, %v x %d = %d bytes, want %d of %v x %d", x.name,
					told.Tensors, told.DType, told.Elements, told.Bytes, x.tensors, x.dtype, x.elements)
			}
			return nil
		})
	}
}
