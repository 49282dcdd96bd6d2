package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// events is what a Trace was told, by replica.
type events struct {
	mu   sync.Mutex
	list map[int][]string
}

func (e *events) add(c gcl.TraceCall, format string, args ...any) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.list == nil {
		e.list = map[int][]string{}
	}
	e.list[c.Replica] = append(e.list[c.Replica], fmt.Sprintf(format, args...))
}

// describe has every field of a TraceCall but the replica.
func describe(c gcl.TraceCall) string {
	return fmt.Sprintf("%v rank %d/%d connection %d group %x, %v barrier=%v %v root %d %v x %d = %d bytes, %v %v %v", c,
		c.Rank, c.Size, c.Connection, c.Group, c.Collective, c.Barrier, c.Operator, c.Root, c.DType, c.Elements,
		c.Bytes, c.Method, c.Implementation, c.Path)
}

// trace tells of everything. Between its start and its end a call is described once more only when the method has been
// chosen.
func (e *events) trace() *gcl.Trace {
	return &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) { e.add(c, "start %s", describe(c)) },
		MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			e.add(c, "  chosen %v %v %v, rounds %d, ring %v, second %v",
				c.Method, c.Implementation, c.Path, m.Rounds, m.Ring, m.Second)
		},
		RoundStart: func(c gcl.TraceCall, round int) { e.add(c, "  round %d of %v", round, c) },
		Segment: func(c gcl.TraceCall, round int, s gcl.TraceSegment) {
			e.add(c, "    round %d: %v %d, %d bytes", round, s.Kind, s.Peer, s.Bytes)
		},
		RoundEnd: func(c gcl.TraceCall, round int, err error) {
			e.add(c, "  round %d of %v ends: %v", round, c, err)
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) { e.add(c, "end %s: %v", describe(c), err) },
	}
}

// tracedCase is a call on four replicas, of which the events of one are looked at.
type tracedCase struct {
	name    string
	options gcl.Options
	replica int
	body    func(context.Context, *gcl.Comm) error
}

func tracedCases() []tracedCase {
	sum := func(n int) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Add)
		}
	}
	messages := func(m methods.Method) gcl.Options { return gcl.Options{Method: m, Implementation: gcl.Syncless} }
	memory := func(m methods.Method) gcl.Options { return gcl.Options{Method: m, Implementation: gcl.Syncful} }
	return []tracedCase{
		{"ring by messages", messages(methods.ClockwiseRing), 1, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.ReduceScatter(ctx, c.Named("layer3/grads"), make([]float32, 10), gcl.Max)
			return err
		}},
		{"two rings", messages(methods.QuadDirectionalRing), 2, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllGather(ctx, c, make([]int8, 0))
			return err
		}},
		{"a chain of ranks uses no ring",
			gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless, Reproducible: true}, 3,
			func(ctx context.Context, c *gcl.Comm) error {
				_, err := gcl.ReduceScatter(ctx, c, make([]float32, 4), gcl.Add)
				return err
			}},
		{"direct by messages", messages(methods.Direct), 0, func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllGather(ctx, c, make([]int16, 5))
			return err
		}},
		{"ring on peer memory", memory(methods.ClockwiseRing), 1, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, c, make([]float64, 3), 2)
		}},
		{"one pass over peer memory", gcl.Options{}, 1, sum(10000)},
		{"small", gcl.Options{}, 2, sum(2)},
		{"barrier", gcl.Options{}, 0, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }},
		{"barrier by messages", gcl.Options{Implementation: gcl.Syncless}, 0, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }},
		{"Local", gcl.Options{}, 3, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]uint8, 3), gcl.Local)
		}},
		{"group, twice", messages(methods.AnticlockwiseRing), 3, func(ctx context.Context, c *gcl.Comm) error {
			g := grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
			return errors.Join(gcl.BroadcastInPlace(ctx, g, make([]int32, 1), 0),
				gcl.BroadcastInPlace(ctx, g.Named("again"), make([]int32, 2), 1))
		}},
		{"Start and Dup", gcl.Options{}, 1, func(ctx context.Context, c *gcl.Comm) error {
			d, err := c.Named("dup").Dup(ctx)
			if err != nil {
				return err
			}
			return d.Start(ctx, func(ctx context.Context, c *gcl.Comm) error { return sum(1)(ctx, c) }).Wait()
		}},
		{"refused", gcl.Options{}, 1, func(ctx context.Context, c *gcl.Comm) error {
			gcl.BroadcastInPlace(ctx, c, make([]int32, 1), 4)
			return sum(3)(ctx, c)
		}},
	}
}

// TestTraceEvents compares what a replica's Trace is told with testdata/trace.txt. With -update it writes the file:
// look at what changed before you commit it.
func TestTraceEvents(t *testing.T) {
	ladder, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, x := range tracedCases() {
		var e events
		x.options.Trace = e.trace()
		replicas(t, 4, x.body, gcl.WithOptions(x.options), gcl.WithTopology(ladder))
		fmt.Fprintf(&out, "-- %s, replica %d\n%s\n\n", x.name, x.replica, strings.Join(e.list[x.replica], "\n"))
		for r, list := range e.list {
			if len(list) == 0 || !strings.HasPrefix(list[0], "start ") ||
				!strings.HasPrefix(list[len(list)-1], "end ") {
				t.Errorf("%s: replica %d has %q", x.name, r, list)
			}
		}
		if len(e.list) != 4 {
			t.Errorf("%s: events of %d replicas", x.name, len(e.list))
		}
	}
	golden := filepath.Join("testdata", "trace.txt")
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	have, wants := strings.Split(out.String(), "\n"), strings.Split(string(want), "\n")
	for i := range max(len(have), len(wants)) {
		if i >= len(have) || i >= len(wants) || have[i] != wants[i] {
			t.Fatalf("line %d is not that of %s:\nhave %q\nwant %q",
				i+1, golden, have[min(i, len(have)-1)], wants[min(i, len(wants)-1)])
		}
	}
}

// TestTraceSegments compares the segments with what goes through the endpoint, and the peers of a ring with the order
// told.
func TestTraceSegments(t *testing.T) {
	ladder, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{8}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	told, sent := map[string]int{}, map[string]int{}
	ring := map[int][]int{}
	note := func(m map[string]int, s string) {
		mu.Lock()
		defer mu.Unlock()
		m[s]++
	}
	endpoints := tapped(t, 8, func(call transport.Call, batch []transport.Transfer) {
		for _, x := range batch {
			note(sent, fmt.Sprintf("#%d round %d %v %d: %d", call.Seq, call.Round, x.Kind, x.Peer, len(x.Buf)))
		}
	})
	trace := &gcl.Trace{
		MethodChosen: func(c gcl.TraceCall, m gcl.TraceMethod) {
			mu.Lock()
			defer mu.Unlock()
			ring[c.Replica] = m.Ring
		},
		Segment: func(c gcl.TraceCall, round int, s gcl.TraceSegment) {
			note(told, fmt.Sprintf("#%d round %d %v %d: %d", c.Seq, round, s.Kind, s.Peer, s.Bytes))
			mu.Lock()
			defer mu.Unlock()
			order := ring[c.Replica]
			if at := slices.Index(order, c.Replica); s.Kind == transport.Send && order[(at+1)%8] != s.Peer ||
				s.Kind != transport.Send && order[(at+7)%8] != s.Peer {
				t.Errorf("replica %d: %v %d, but the ring is %v", c.Replica, s.Kind, s.Peer, order)
			}
		},
	}
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		for n := range 20 {
			if err := gcl.AllReduceInPlace(ctx, c, make([]int16, n), gcl.Add); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithEndpoints(endpoints), gcl.WithTopology(ladder),
		gcl.WithOptions(gcl.Options{Method: methods.ClockwiseRing, Trace: trace}))
	if len(told) == 0 || fmt.Sprint(told) != fmt.Sprint(sent) {
		t.Errorf("told of\n%v\nsent\n%v", told, sent)
	}
	if slices.IsSorted(ring[0]) {
		t.Errorf("the ring %v is in rank order, which shows nothing", ring[0])
	}
}

// A failed call ends its round and itself, with the error that it returns.
func TestTraceOfFailure(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing},
		{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}} {
		var e events
		o.Trace = e.trace()
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				c.Abort(errBoom)
				return nil
			}
			return gcl.AllReduceInPlace(ctx, c, make([]int32, 5000), gcl.Add)
		}, gcl.WithOptions(o))
		list := e.list[0]
		n := len(list)
		if errs[0] == nil || n < 2 || !strings.HasPrefix(list[n-1], "end all-reduce #1 ") ||
			!strings.HasSuffix(list[n-1], ": "+errs[0].Error()) {
			t.Fatalf("%v: error %v, events %q", o.Method, errs[0], list)
		}
		starts, ends := 0, 0
		for _, line := range list {
			if strings.HasPrefix(line, "  round ") {
				if strings.Contains(line, " ends: ") {
					ends++
				} else {
					starts++
				}
			}
		}
		if starts != ends {
			t.Errorf("%v: %d rounds start, %d end: %q", o.Method, starts, ends, list)
		}
		if o.Method == methods.Auto &&
			(starts != 1 || !strings.Contains(list[n-2], "ends: ") || strings.HasSuffix(list[n-2], "<nil>")) {
			t.Errorf("the round's end has no error: %q", list)
		}
	}
}

// A call that never gets its turn starts and ends at once.
func TestTraceWithoutTurn(t *testing.T) {
	var e events
	o := gcl.Options{Trace: e.trace()}
	failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		release := make(chan struct{})
		w := c.Start(ctx, func(context.Context, *gcl.Comm) error { <-release; return nil })
		done, cancel := context.WithCancel(ctx)
		cancel()
		err := c.Barrier(done)
		close(release)
		if !errors.Is(err, gcl.ErrAborted) {
			t.Errorf("error %v", err)
		}
		if list := e.list[0]; len(list) != 2 || !strings.HasPrefix(list[0], "start barrier #1") ||
			!strings.HasSuffix(list[1], err.Error()) {
			t.Errorf("events %q", list)
		}
		return w.Wait()
	}, gcl.WithOptions(o))
}

// traceCrashes are Traces that do something on replica 1, once for each function.
func traceCrashes(do func()) map[string]*gcl.Trace {
	if1 := func(c gcl.TraceCall) {
		if c.Replica == 1 {
			do()
		}
	}
	return map[string]*gcl.Trace{
		"CollectiveStart": {CollectiveStart: if1},
		"MethodChosen":    {MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { if1(c) }},
		"RoundStart":      {RoundStart: func(c gcl.TraceCall, _ int) { if1(c) }},
		"Segment":         {Segment: func(c gcl.TraceCall, _ int, _ gcl.TraceSegment) { if1(c) }},
		"RoundEnd":        {RoundEnd: func(c gcl.TraceCall, _ int, _ error) { if1(c) }},
		"CollectiveEnd":   {CollectiveEnd: func(c gcl.TraceCall, _ error) { if1(c) }},
	}
}

// A panic in a Trace, even one that the body recovers, leaves no turn taken and nobody waiting.
func TestTracePanics(t *testing.T) {
	for name, trace := range traceCrashes(func() { panic("in a Trace") }) {
		for _, o := range []gcl.Options{{}, {Method: methods.MeetInMiddleRing},
			{Method: methods.MeetInMiddleRing, Implementation: gcl.Syncful}} {
			if name == "Segment" && o.Method == methods.Auto {
				continue // on peer memory in one pass there are none
			}
			t.Run(fmt.Sprintf("%s/method=%v/implementation=%v", name, o.Method, o.Implementation), func(t *testing.T) {
				o.Trace = trace
				var after error
				errs := failures(t, 3, func(ctx context.Context, c *gcl.Comm) error {
					recovered := func() (v any) {
						defer func() { v = recover() }()
						gcl.AllReduceInPlace(ctx, c, make([]int32, 5000), gcl.Add)
						return nil
					}()
					if c.Replica() != 1 {
						if recovered != nil {
							t.Errorf("replica %d panics: %v", c.Replica(), recovered)
						}
						for { // until the abort shows
							if err := c.Barrier(ctx); err != nil {
								return err
							}
						}
					}
					if recovered != "in a Trace" {
						t.Errorf("recovered %v", recovered)
					}
					after = withOptions(c, gcl.Options{}).Barrier(ctx)
					return after
				}, gcl.WithOptions(o))
				for r, err := range errs {
					if !errors.Is(err, gcl.ErrAborted) ||
						!strings.Contains(err.Error(), "a function of its Options.Trace") {
						t.Errorf("replica %d: %v", r, err)
					}
				}
			})
		}
	}
}

// Run makes an error of a panic or a Goexit in a Trace.
func TestTraceCrashInRun(t *testing.T) {
	body := func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) }
	err := gcl.Run(watched(t), 2, body, gcl.WithOptions(gcl.Options{Trace: traceCrashes(func() {
		panic("in a Trace")
	})["RoundStart"]}))
	if p := (*gcl.PanicError)(nil); !errors.As(err, &p) && !errors.Is(err, gcl.ErrAborted) {
		t.Errorf("a panic: %v", err)
	}
	err = gcl.Run(watched(t), 2, body, gcl.WithOptions(gcl.Options{Trace: traceCrashes(runtime.Goexit)["RoundStart"]}))
	if err == nil || !strings.Contains(err.Error(), "Goexit") {
		t.Errorf("Goexit: %v", err)
	}
}

// Replicas may have different Traces and names, or none.
func TestTraceNeedNotAgree(t *testing.T) {
	var e events
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		o := c.Options()
		if c.Rank() == 1 {
			o.Trace = e.trace()
		}
		c = withOptions(c, o).Named(fmt.Sprint("replica ", c.Rank()))
		if c.Name() != fmt.Sprint("replica ", c.Rank()) || c.Options() != o {
			return fmt.Errorf("name %q, options %+v", c.Name(), c.Options())
		}
		return gcl.AllReduceInPlace(ctx, c, make([]int32, 5000), gcl.Add)
	})
	if len(e.list) != 1 || len(e.list[1]) != 5 {
		t.Errorf("events %v", e.list)
	}
}

// The name stays with what is made from a Comm, and stands in errors.
func TestNamed(t *testing.T) {
	var none *gcl.Comm
	if none.Named("x") != nil {
		t.Error("a nil Comm has a name")
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		n := c.Named("layer3/grads")
		dup, err := n.Dup(ctx)
		if err != nil {
			return err
		}
		for _, x := range []*gcl.Comm{n, dup, with(n, methods.Direct),
			grouped(n, commgroup.Group{Type: commgroup.Consecutive, Size: 2})} {
			if x.Name() != "layer3/grads" {
				t.Errorf("name %q", x.Name())
			}
		}
		if c.Name() != "" || n.Named("").Name() != "" {
			t.Error("a name that nobody gave")
		}
		err = gcl.BroadcastInPlace(ctx, n, []int8{1}, 7)
		if err == nil || !strings.HasPrefix(err.Error(), `gcl: broadcast #1 "layer3/grads": replica `) {
			t.Errorf("error %v", err)
		}
		c.Barrier(ctx)
		n.Abort(errBoom)
		err = n.Barrier(ctx)
		if err == nil || !strings.HasPrefix(err.Error(), `gcl: barrier #3 "layer3/grads": replica `) &&
			!regexp.MustCompile(`^gcl: barrier #\d "layer3/grads": `).MatchString(err.Error()) {
			t.Errorf("error %v", err)
		}
		return nil
	})
}

// TestTraceCallElapsed: a call's time counts from its turn to its end. One that never got its turn, or came with no
// event, has none.
func TestTraceCallElapsed(t *testing.T) {
	var start, end, later, away time.Duration
	pause := 2 * time.Millisecond
	trace := &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			if start == 0 { // of the first call, which gets its turn
				time.Sleep(pause)
				start = c.Elapsed()
			}
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) {
			if err != nil {
				away = c.Elapsed()
				return
			}
			end = c.Elapsed()
			time.Sleep(pause)
			later = c.Elapsed()
		},
	}
	began := time.Now()
	failures(t, 1, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Trace: trace})
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		busy, free := make(chan struct{}), make(chan struct{})
		w := c.Start(ctx, func(context.Context, *gcl.Comm) error { close(busy); <-free; return nil })
		<-busy
		done, cancel := context.WithTimeout(ctx, pause)
		defer cancel()
		err := c.Barrier(done)
		close(free)
		if err == nil {
			t.Error("a barrier without a turn")
		}
		w.Wait()
		return nil
	})
	const slack = 20 * time.Microsecond // of the clocks
	if start < pause-slack || end < start || end > time.Since(began)-pause+slack || later != end ||
		away != 0 {
		t.Errorf("%v at the start, %v at the end, %v later, %v without a turn", start, end, later, away)
	}
	if none := (&gcl.TraceCall{}).Elapsed(); none != 0 {
		t.Errorf("%v of no event", none)
	}
}

// TestTraceCallExplain: a call is explained as its Comm explains it, and what has no price is an error that says so.
func TestTraceCallExplain(t *testing.T) {
	var calls []gcl.TraceCall
	var want gcl.Explanation
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		o := gcl.Options{Method: methods.ClockwiseRing}
		if c.Rank() == 0 {
			o.Trace = &gcl.Trace{CollectiveEnd: func(c gcl.TraceCall, _ error) { calls = append(calls, c) }}
		}
		c = withOptions(c, o)
		var err error
		if c.Rank() == 0 {
			want, err = c.Explain(schedule.AllGather, 4*16, tensor.F32)
		}
		data, mixed := make([]float32, 8), c.Batch(schedule.AllGather, 0, 0)
		gcl.Append(mixed, make([]float32, 16), data)
		gcl.Append(mixed, make([]int8, 2), make([]int8, 1))
		return errors.Join(err, gcl.AllGatherTo(ctx, c, make([]float32, 16), data), c.Barrier(ctx),
			gcl.SendRecv(ctx, c, data, 1-c.Rank(), make([]float32, 8), 1-c.Rank()),
			gcl.AllGatherVTo(ctx, c, make([]float32, 8), data[:8*c.Rank()], []int{0, 8}), mixed.Run(ctx))
	})
	if len(calls) != 5 || calls[0].Transport != "inproc" {
		t.Fatalf("%d calls, the first over %q", len(calls), calls[0].Transport)
	}
	if got, err := calls[0].Explain(); err != nil || got.String() != want.String() {
		t.Errorf("%v, %v; want %v", got, err, want)
	}
	for i := range calls[1:] {
		c := &calls[1+i]
		if _, err := c.Explain(); err == nil || !strings.Contains(err.Error(), c.String()+" has no price: want") {
			t.Errorf("%v: %v", c, err)
		}
	}
	if _, err := (&gcl.TraceCall{}).Explain(); err == nil || !strings.Contains(err.Error(), "with no event") {
		t.Error(err)
	}
}

func TestTraceTexts(t *testing.T) {
	call := gcl.TraceCall{Collective: schedule.AllGather, Seq: 3}
	named := gcl.TraceCall{Barrier: true, Seq: 4, Name: "a \"b\""}
	for _, x := range []struct{ have, want string }{
		{call.String(), "all-gather #3"},
		{named.String(), `barrier #4 "a \"b\""`},
		{gcl.PathRounds.String(), "peer memory in rounds"},
		{gcl.Path(99).String(), "Path(99)"},
	} {
		if x.have != x.want {
			t.Errorf("%q, want %q", x.have, x.want)
		}
	}
}
