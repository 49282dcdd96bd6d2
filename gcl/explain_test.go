package gcl_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// sight is what an endpoint was asked to do.
type sight struct {
	method           methods.Method
	syncful          bool
	rounds, barriers int
	sent             int64
}

// messageWitness writes down what goes through an endpoint, which it robs of peer memory.
type messageWitness struct {
	transport.Endpoint
	sight
}

func (w *messageWitness) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	w.exchanged(call, batch)
	return w.Endpoint.Exchange(ctx, call, batch)
}

func (s *sight) exchanged(call transport.Call, batch []transport.Transfer) {
	const barrier = 1 << 31 // in Call.Round
	s.method = methods.Method(call.Method)
	if call.Round >= barrier {
		s.syncful = true
		s.barriers++
		return
	}
	for _, t := range batch {
		s.rounds = max(s.rounds, int(call.Round)+1)
		if t.Kind == transport.Send {
			s.sent += int64(len(t.Buf))
		}
	}
}

// near is an endpoint whose peers reach its memory and read its boards.
type near interface {
	transport.PeerMemory
	transport.Boards
}

// memoryWitness is the same with peer memory.
type memoryWitness struct {
	near
	sight
}

func (w *memoryWitness) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	w.exchanged(call, batch)
	return w.near.Exchange(ctx, call, batch)
}

func (w *memoryWitness) arrived() { w.syncful, w.barriers = true, w.barriers+1 }

func (w *memoryWitness) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory,
	rounds []int, worker transport.Worker) error {
	w.method = methods.Method(call.Method)
	w.arrived()
	for _, pieces := range rounds {
		if pieces > 0 || len(rounds) == 1 {
			w.arrived()
		}
	}
	return w.near.Share(ctx, call, members, mine, rounds, worker)
}

// Broadcast implements transport.Boards. Nobody waits for everybody.
func (w *memoryWitness) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	w.method, w.syncful = methods.Method(call.Method), true
	return w.near.Broadcast(ctx, call, members, root, buf)
}

func (w *memoryWitness) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	w.method = methods.Method(call.Method)
	w.arrived()
	return w.near.Gather(ctx, call, members, mine, size, c)
}

// witnesses connects n replicas, with peer memory or without, and says what they saw.
func witnesses(t testing.TB, n int, memory bool) (endpoints []transport.Endpoint, seen []*sight) {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range endpoints {
		if memory {
			w := &memoryWitness{near: e.(near)}
			endpoints[i], seen = w, append(seen, &w.sight)
		} else {
			w := &messageWitness{Endpoint: e}
			endpoints[i], seen = w, append(seen, &w.sight)
		}
	}
	return endpoints, seen
}

// explained is a collective that Explain is asked about and that then takes place.
type explained struct {
	collective schedule.Collective
	options    gcl.Options
	elements   int // in the larger buffer
	half       bool

	asked       int               // a replica that asks, beside replica 0
	explanation []gcl.Explanation // by replica
	seen        []sight
}

func (x *explained) String() string {
	return fmt.Sprintf("%v of %d elements with %+v", x.collective, x.elements, x.options)
}

// cases are the collectives for a group of so many ranks.
func explainedCases(ranks int) []*explained {
	var out []*explained
	for _, c := range schedule.Collectives() {
		for _, m := range append(thinned.Methods(ranks), methods.Auto) {
			for _, i := range []gcl.Implementation{gcl.AutoImplementation, gcl.Syncless, gcl.Syncful} {
				for _, reproducible := range []bool{false, true} {
					// 1024: 4 KiB, the most that Gather takes
					for _, n := range []int{0, 3 * ranks, 1024, 1024 * ranks, 38400} {
						contract := c.Contract()
						if reproducible && (n == 3*ranks || !contract.Combines && c != schedule.AllGather) {
							continue
						}
						if contract.PerRank() && !contract.Combines && n%ranks != 0 {
							n += ranks - n%ranks
						}
						o := gcl.Options{Method: m, Implementation: i, Reproducible: reproducible}
						out = append(out, &explained{collective: c, options: o, elements: n, half: reproducible})
					}
				}
			}
		}
	}
	return out
}

// perform asks, and then does it.
func (x *explained) perform(ctx context.Context, c *gcl.Comm, seen *sight) error {
	c = withOptions(c, x.options)
	*seen = sight{}
	dtype := tensor.F32
	if x.half {
		dtype = tensor.F16
	}
	var err error
	if r := c.Replica(); r == 0 || r == x.asked {
		x.explanation[r], err = c.Explain(x.collective, int64(x.elements*dtype.Size()), dtype)
	}
	if err != nil {
		return err
	}
	if *seen != (sight{}) {
		return fmt.Errorf("Explain has sent something: %+v", *seen)
	}
	inShape, outShape := shapesOf(x.collective, x.elements, c.Size())
	in := must(tensor.New(dtype, inShape...))
	out := in
	if len(inShape) > 1 || !slices.Equal(inShape, outShape) { // else in place
		out = must(tensor.New(dtype, outShape...))
	}
	err = c.Do(ctx, x.collective, out, in, gcl.Add, 0)
	x.seen[c.Replica()] = *seen
	return err
}

// A call takes the method, implementation, rounds and barriers, and sends the bytes, that Explain says.
func TestExplainIsTrue(t *testing.T) {
	all := commgroup.Group{}
	for _, g := range []struct {
		replicas, ranks int
		group           commgroup.Group
	}{
		{1, 1, all}, {2, 2, all}, {3, 3, all}, {5, 5, all},
		{8, 4, commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 2}},
		{6, 3, commgroup.Group{Type: commgroup.Orthogonal, Size: 3}},
	} {
		for _, memory := range []bool{true, false} {
			if underRace && g.replicas > 3 || !memory && !*full && g.ranks != 3 && g.ranks != 4 {
				continue // without peer memory in a group of all and in one with a stride
			}
			t.Run(fmt.Sprintf("n=%d/of=%d/memory=%v", g.ranks, g.replicas, memory), func(t *testing.T) {
				endpoints, seen := witnesses(t, g.replicas, memory)
				cases := explainedCases(g.ranks)
				for i, x := range cases {
					x.asked, x.explanation, x.seen = i%g.replicas, make([]gcl.Explanation, g.replicas),
						make([]sight, g.replicas)
				}
				replicas(t, g.replicas, func(ctx context.Context, c *gcl.Comm) error {
					c = grouped(c, g.group)
					for _, x := range cases {
						if err := x.perform(ctx, c, seen[c.Replica()]); err != nil {
							return fmt.Errorf("%v: %w", x, err)
						}
					}
					return nil
				}, gcl.WithEndpoints(endpoints))
				for _, x := range cases {
					x.verify(t)
				}
			})
		}
	}
}

// verify compares what was said with what was seen.
func (x *explained) verify(t *testing.T) {
	t.Helper()
	first := x.explanation[0]
	if first.Ranks == 1 {
		if first.Method != methods.Auto || first.Implementation != gcl.AutoImplementation ||
			len(first.Candidates) != 0 || x.seen[0] != (sight{}) {
			t.Errorf("%v: %+v, seen %+v", x, first, x.seen[0])
		}
		return
	}
	var chosen []gcl.Candidate
	for _, c := range first.Candidates {
		if c.Chosen {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) != 1 || chosen[0].Method != first.Method || chosen[0].Implementation != first.Implementation {
		t.Fatalf("%v: %d candidates chosen:\n%v", x, len(chosen), first)
	}
	rounds, barriers, sent := 0, 0, int64(0)
	if e := x.explanation[x.asked]; e.Method != first.Method || e.Implementation != first.Implementation ||
		e.Why != first.Why || !slices.Equal(e.Candidates, first.Candidates) {
		t.Fatalf("%v: replica %d says\n%vand replica 0\n%v", x, x.asked, e, first)
	}
	method := first.Method
	if method.Own() {
		method = math.MaxUint8 // a call on a transport has one number for all of them
	}
	for r, s := range x.seen {
		if s.method != method || s.syncful != (first.Implementation == gcl.Syncful) {
			t.Fatalf("%v: replica %d used %v, syncful %v, but Explain says\n%v", x, r, s.method, s.syncful, first)
		}
		rounds, barriers, sent = max(rounds, s.rounds), max(barriers, s.barriers), max(sent, s.sent)
	}
	if barriers != chosen[0].Barriers {
		t.Errorf("%v: %d barriers, but Explain says\n%v", x, barriers, first)
	}
	if rounds > 0 && rounds != chosen[0].Rounds {
		t.Errorf("%v: %d rounds, but Explain says\n%v", x, rounds, first)
	}
	if whole := x.elements%3840 == 0; rounds > 0 && whole && sent != chosen[0].SentBytes {
		t.Errorf("%v: %d bytes sent, but Explain says\n%v", x, sent, first)
	}
}

// machineOf makes a topology with speeds of its own, so that golden files do not depend on the defaults.
func machineOf(t testing.TB, shape topology.Shape, replicas ...int) gcl.CommOption {
	t.Helper()
	m, err := topology.New(topology.Config{Shape: shape, Replicas: replicas, Speeds: topology.Speeds{
		IPULink:  topology.Speed{BytesPerSecond: 16e9, Latency: time.Microsecond},
		GWLink:   topology.Speed{BytesPerSecond: 12.5e9, Latency: 5 * time.Microsecond},
		HostLink: topology.Speed{BytesPerSecond: 8e9, Latency: time.Microsecond},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return gcl.WithTopology(m)
}

// TestExplainTexts compares what users read with testdata/explain.txt. With -update it writes the file: look at what
// changed before you commit it.
func TestExplainTexts(t *testing.T) {
	var have strings.Builder
	for _, x := range []struct {
		title      string
		replicas   int
		memory     bool
		shape      topology.Shape
		group      commgroup.Group
		options    gcl.Options
		collective schedule.Collective
		bytes      int64
		dtype      tensor.DType
	}{
		{"in process", 4, true, topology.Clique, commgroup.Group{}, gcl.Options{}, schedule.AllReduce, 1 << 20, tensor.F32},
		{"a small message", 4, true, topology.Clique, commgroup.Group{}, gcl.Options{}, schedule.AllGather, 1 << 10, tensor.U8},
		{"messages only", 4, false, topology.Clique, commgroup.Group{}, gcl.Options{}, schedule.AllReduce, 1 << 10, tensor.F32},
		{"messages only, large", 4, false, topology.Clique, commgroup.Group{}, gcl.Options{}, schedule.AllReduce, 64 << 20, tensor.F32},
		{"messages only, strided", 4, false, topology.Clique, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}, gcl.Options{}, schedule.AllReduce, 1 << 10, tensor.F32},
		{"messages with barriers", 4, false, topology.Clique, commgroup.Group{}, gcl.Options{Implementation: gcl.Syncful}, schedule.AllToAll, 1 << 20, tensor.I64},
		{"a method that is asked for", 4, true, topology.Clique, commgroup.Group{}, gcl.Options{Method: methods.ClockwiseRing}, schedule.ReduceScatter, 1 << 20, tensor.F64},
		{"a method on peer memory", 4, true, topology.Clique, commgroup.Group{}, gcl.Options{Method: methods.MeetInMiddleRing, Implementation: gcl.Syncful}, schedule.AllReduce, 1 << 20, tensor.F32},
		{"an implementation that is asked for", 3, true, topology.Clique, commgroup.Group{}, gcl.Options{Implementation: gcl.Syncless}, schedule.Broadcast, 1 << 20, tensor.BF16},
		{"a ladder", 8, true, topology.OpenLadder, commgroup.Group{}, gcl.Options{Method: methods.QuadDirectionalRing}, schedule.AllReduce, 64 << 20, tensor.F32},
		{"reproducible", 4, true, topology.Clique, commgroup.Group{}, gcl.Options{Method: methods.ClockwiseRing, Reproducible: true}, schedule.AllReduce, 1 << 20, tensor.F16},
		{"nothing", 2, true, topology.Clique, commgroup.Group{}, gcl.Options{}, schedule.AllReduce, 0, tensor.F32},
		{"one rank", 2, true, topology.Clique, commgroup.Group{Type: commgroup.Consecutive, Size: 1}, gcl.Options{}, schedule.AllReduce, 400, tensor.F32},
		{"an engine's own", 4, false, topology.Clique, commgroup.Group{}, native, schedule.AllReduce, 1 << 20, tensor.F32},
	} {
		endpoints, _ := witnesses(t, x.replicas, x.memory)
		if x.options.Method == methods.Native {
			endpoints, _ = engines(t, x.replicas)
		}
		replicas(t, x.replicas, func(ctx context.Context, c *gcl.Comm) error {
			if c.Replica() != 0 {
				return nil
			}
			e, err := withOptions(grouped(c, x.group), x.options).Explain(x.collective, x.bytes, x.dtype)
			fmt.Fprintf(&have, "-- %s\n%v\n", x.title, e)
			return err
		}, gcl.WithEndpoints(endpoints), machineOf(t, x.shape, x.replicas))
	}
	golden := filepath.Join("testdata", "explain.txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(golden, []byte(have.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if have.String() != string(want) {
		t.Errorf("have\n%s\nwant\n%s", have.String(), want)
	}
}

func TestExplainErrors(t *testing.T) {
	if _, err := (*gcl.Comm)(nil).Explain(schedule.AllReduce, 4, tensor.F32); err == nil ||
		!strings.Contains(err.Error(), "nil Comm") {
		t.Errorf("nil Comm: %v", err)
	}
	replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			collective schedule.Collective
			bytes      int64
			dtype      tensor.DType
			want       string
		}{
			{200, 4, tensor.F32, "unknown collective 200"},
			{schedule.Barrier, 0, tensor.F32, "a barrier has no bytes"},
			{schedule.AllReduce, -4, tensor.F32, "-4 bytes"},
			{schedule.AllReduce, 4, 0, "invalid dtype"},
			{schedule.AllReduce, 4, 200, "invalid dtype"},
			{schedule.AllReduce, 6, tensor.F32, "6 bytes are not whole elements of float32"},
			{schedule.AllGather, 16, tensor.F32, "4 elements do not divide into 3 equal parts"},
			{schedule.AllToAll, 16, tensor.F32, "4 elements do not divide into 3 equal parts"},
			{schedule.Gather, 16, tensor.F32, "4 elements do not divide into 3 equal parts"},
			{schedule.Scatter, 16, tensor.F32, "4 elements do not divide into 3 equal parts"},
		} {
			e, err := c.Explain(x.collective, x.bytes, x.dtype)
			if err == nil || !strings.HasPrefix(err.Error(), "gcl: explain: ") ||
				!strings.Contains(err.Error(), x.want) || e.Why != "" {
				return fmt.Errorf("%v of %d bytes of %v: %+v, error %v, want one with %q",
					x.collective, x.bytes, x.dtype, e, err, x.want)
			}
		}
		return goodCall(ctx, c) // none of them was a call
	})
}

// The greatest sizes have a price, if an absurd one.
func TestExplainHuge(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, o := range []gcl.Options{{}, {Reproducible: true},
			{Implementation: gcl.Syncful, Method: methods.SendToAll}, {Method: methods.ClockwiseRing}} {
			for _, collective := range schedule.Collectives() {
				e, err := withOptions(c, o).Explain(collective, math.MaxInt/8*8, tensor.F16)
				if err != nil {
					return err
				}
				for _, x := range e.Candidates {
					if x.Estimate <= 0 || x.SentBytes <= 0 {
						return fmt.Errorf("%v with %+v:\n%v", collective, o, e)
					}
				}
			}
		}
		return nil
	})
}

// An explanation that nobody made prints too.
func TestExplanationZero(t *testing.T) {
	if text := (gcl.Explanation{}).String(); !strings.Contains(text, "all-reduce of 0 bytes") {
		t.Error(text)
	}
}

func BenchmarkExplain(b *testing.B) {
	for _, n := range []int{2, 8, 32} {
		for _, collective := range []schedule.Collective{schedule.AllReduce, schedule.AllToAll} {
			b.Run(fmt.Sprintf("collective=%v/n=%d", collective, n), func(b *testing.B) {
				replicas(b, n, func(ctx context.Context, c *gcl.Comm) error {
					if c.Replica() != 0 {
						return nil
					}
					for b.Loop() {
						if _, err := c.Explain(collective, 1<<20, tensor.F32); err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}
