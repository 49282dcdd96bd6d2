package gcl_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"slices"
	"strings"
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

// phaseWitness writes down, by phase, what an endpoint without peer memory was asked to do, and on one with it counts
// the barriers.
type phaseWitness struct {
	transport.Endpoint
	rounds   map[uint64]int // by Call.Seq
	barriers int
	sent     int64
}

func (w *phaseWitness) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	const barrier = 1 << 31
	switch {
	case len(batch) == 0: // no round: a call that is only told
	case call.Round >= barrier:
		w.barriers++
	default:
		w.rounds[call.Seq] = max(w.rounds[call.Seq], int(call.Round)+1)
	}
	for _, t := range batch {
		if t.Kind == transport.Send {
			w.sent += int64(len(t.Buf))
		}
	}
	return w.Endpoint.Exchange(ctx, call, batch)
}

// TestExplainHybridIsTrue compares what is said with what is seen: rounds, barriers and bytes by messages, barriers on
// peer memory. All collectives that can cross by leaders do so at some size, and at another by all members.
func TestExplainHybridIsTrue(t *testing.T) {
	ways := map[schedule.Collective]map[string]bool{}
	for _, machine := range []topology.Topology{hosts(t, 2, 2), hosts(t, 4, 4), hosts(t, 2, 2, 2),
		dealtOut(t, 0, 1, 2, 3, 3, 2, 1, 0)} {
		for _, memory := range []bool{true, false} {
			for _, m := range []methods.Method{methods.Auto, methods.Direct, methods.ClockwiseRing,
				methods.MeetInMiddleRing} {
				for _, collective := range schedule.Collectives() {
					if !inPhases(collective) {
						continue
					}
					for _, elements := range []int{96, 9600, 96000} {
						way := tryExplainHybrid(t, machine, memory, &explained{
							collective: collective, options: gcl.Options{Implementation: gcl.Hybrid, Method: m},
							elements: elements,
						})
						if ways[collective] == nil {
							ways[collective] = map[string]bool{}
						}
						ways[collective][fmt.Sprintf("%s, memory %v", way, memory)] = true
					}
				}
			}
		}
	}
	for collective, seen := range ways {
		want := 4
		switch collective {
		case schedule.AllToAll: // by all members alone
			want = 2
		case schedule.AllReduce: // by leaders on peer memory alone, where they spare a barrier
			want = 3
		}
		if len(seen) != want {
			t.Errorf("%v goes %v, want %d ways", collective, seen, want)
		}
	}
}

// inPhases reports whether Hybrid has phases for a collective.
func inPhases(c schedule.Collective) bool {
	contract := c.Contract()
	return contract.Output != schedule.AtRoot && !contract.Deals()
}

// TestExplainWithoutPhases: with Hybrid a collective that has no phases goes as by Auto, and Explain says so.
func TestExplainWithoutPhases(t *testing.T) {
	for _, memory := range []bool{true, false} {
		for _, m := range []methods.Method{methods.Auto, methods.ClockwiseRing} {
			for _, collective := range schedule.Collectives() {
				if inPhases(collective) {
					continue
				}
				x := &explained{collective: collective, options: gcl.Options{Implementation: gcl.Hybrid, Method: m},
					elements: 38400, asked: 3}
				x.explanation, x.seen = make([]gcl.Explanation, 4), make([]sight, 4)
				endpoints, seen := witnesses(t, 4, memory)
				replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
					return x.perform(ctx, c, seen[c.Replica()])
				},
					gcl.WithEndpoints(endpoints), gcl.WithTopology(hosts(t, 2, 2)))
				x.verify(t)
				e := x.explanation[0]
				if want := fmt.Sprintf("to which Hybrid leaves a %v", collective); !strings.HasSuffix(e.Why, want) {
					t.Errorf("%v: %q, want %q at its end", x, e.Why, want)
				}
				for _, candidate := range e.Candidates {
					if candidate.Implementation == gcl.Hybrid {
						t.Errorf("%v: Hybrid is a candidate:\n%v", x, e)
					}
				}
			}
		}
	}
}

// tryExplainHybrid returns who crosses.
func tryExplainHybrid(t *testing.T, machine topology.Topology, memory bool, x *explained) (way string) {
	t.Helper()
	n := machine.Replicas()
	x.asked, x.explanation, x.seen = n-1, make([]gcl.Explanation, n), make([]sight, n)
	endpoints, seen := witnesses(t, n, memory)
	witnessed := make([]*phaseWitness, n)
	for r, e := range endpoints {
		witnessed[r] = &phaseWitness{Endpoint: e, rounds: map[uint64]int{}}
		if !memory {
			endpoints[r] = witnessed[r]
		}
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error { return x.perform(ctx, c, seen[c.Replica()]) },
		gcl.WithEndpoints(endpoints), gcl.WithTopology(machine))
	e := x.explanation[0]
	at := slices.IndexFunc(e.Candidates, func(c gcl.Candidate) bool { return c.Chosen })
	if at < 0 || e.Implementation != gcl.Hybrid || e.Candidates[at].Implementation != gcl.Hybrid ||
		e.Candidates[at].Method != e.Method {
		t.Fatalf("%v: Hybrid is not chosen:\n%v", x, e)
	}
	if last := x.explanation[n-1]; last.Why != e.Why || !slices.Equal(last.Candidates, e.Candidates) {
		t.Errorf("%v: replica %d says\n%vand replica 0\n%v", x, n-1, last, e)
	}
	chosen := e.Candidates[at]
	barriers, sent, phases := 0, int64(0), map[uint64]int{}
	for r, w := range witnessed {
		if memory {
			w.barriers = x.seen[r].barriers
		}
		barriers, sent = max(barriers, w.barriers), max(sent, w.sent)
		for seq, rounds := range w.rounds {
			phases[seq] = max(phases[seq], rounds)
		}
	}
	rounds := 0
	for _, r := range phases {
		rounds += r
	}
	if barriers != chosen.Barriers {
		t.Errorf("%v, memory %v: %v: %d barriers, but Explain says\n%v", domainsOf(machine), memory, x, barriers, e)
	}
	if !memory && (rounds != chosen.Rounds || sent != chosen.SentBytes) {
		t.Errorf("%v: %v: %d rounds, %d bytes sent, but Explain says\n%v", domainsOf(machine), x, rounds, sent, e)
	}
	_, way, _ = strings.Cut(e.Why, "Hybrid, as the options ask; ")
	way, _, _ = strings.Cut(way, ",")
	return way
}

// TestExplainHybridWhy: the reason, where Hybrid is in phases and where it comes to something else; and whether it is
// among the candidates.
func TestExplainHybridWhy(t *testing.T) {
	hybrid := gcl.Options{Implementation: gcl.Hybrid}
	for _, x := range []struct {
		name      string
		hosts     []int
		group     commgroup.Group
		options   gcl.Options
		memory    bool
		want      gcl.Implementation
		why       string
		candidate bool
	}{
		{"phases", []int{2, 2}, commgroup.Group{}, hybrid, true, gcl.Hybrid,
			"across 2 link domains, since ", true},
		{"phases by a method", []int{2, 2}, commgroup.Group{},
			gcl.Options{Implementation: gcl.Hybrid, Method: methods.ClockwiseRing}, true, gcl.Hybrid,
			"clockwise_ring across 2 link domains, as the options ask; clockwise_ring inside, among 2 ranks; Hybrid, " +
				"as the options ask; by all members, since at 1048576 bytes, the nearest power of two, that takes ", true},
		{"one domain", []int{4}, commgroup.Group{}, hybrid, true, gcl.Syncful, "; Syncful, as Hybrid is inside one link domain", false},
		{"a group in one domain", []int{2, 2}, commgroup.Group{Type: commgroup.Consecutive, Size: 2}, hybrid, false, gcl.Syncful, "; Syncful, as Hybrid is inside one link domain", false},
		{"one in each", []int{2, 2}, commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, hybrid, true, gcl.Syncless,
			"; Syncless, as Hybrid is between link domains with one rank in each", false},
		{"reproducible", []int{2, 2}, commgroup.Group{}, gcl.Options{Implementation: gcl.Hybrid, Reproducible: true},
			true, gcl.Syncful,
			"; Syncful, since the replicas share memory, to which Hybrid leaves a reproducible reduction",
			false},
		{"auto on messages", []int{2, 2}, commgroup.Group{}, gcl.Options{}, false, gcl.Syncless, "; Syncless, since the transport has no peer memory", true},
		{"auto", []int{2, 2}, commgroup.Group{}, gcl.Options{}, true, gcl.Syncful, "; Syncful, since the replicas share memory", true},
		{"uneven", []int{3, 1}, commgroup.Group{}, gcl.Options{}, true, gcl.Syncful, "; Syncful, since the replicas share memory", false},
	} {
		t.Run(x.name, func(t *testing.T) {
			endpoints, _ := witnesses(t, 4, x.memory)
			replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				e, err := withOptions(grouped(c, x.group), x.options).Explain(schedule.AllReduce, 1<<20, tensor.F32)
				if err != nil {
					return err
				}
				listed := slices.ContainsFunc(e.Candidates, func(c gcl.Candidate) bool {
					return c.Implementation == gcl.Hybrid
				})
				before := grouped(c, x.group)
				if len(x.hosts) > 1 && x.hosts[0] == x.hosts[1] {
					before = withOptions(before, hybrid)
				}
				earlier, err := withOptions(before, x.options).Explain(schedule.AllReduce, 1<<20, tensor.F32)
				if err != nil || earlier.Why != e.Why {
					return fmt.Errorf("%v; with other options before:\n%v", err, earlier)
				}
				if e.Implementation != x.want || !strings.Contains(e.Why, x.why) || listed != x.candidate {
					return fmt.Errorf("want %v, %q, Hybrid listed: %v; have\n%v", x.want, x.why, x.candidate, e)
				}
				return nil
			}, gcl.WithTopology(hosts(t, x.hosts...)), gcl.WithEndpoints(endpoints))
		})
	}
}

// The greatest sizes have a price.
func TestExplainHybridHuge(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range []methods.Method{methods.Auto, methods.SendToAll, methods.ClockwiseRing} {
			c := withOptions(c, gcl.Options{Implementation: gcl.Hybrid, Method: m})
			for _, collective := range schedule.Collectives() {
				e, err := c.Explain(collective, math.MaxInt/8*8, tensor.F16)
				if err != nil {
					return err
				}
				x := e.Candidates[slices.IndexFunc(e.Candidates, func(c gcl.Candidate) bool { return c.Chosen })]
				if x.Estimate <= 0 || x.SentBytes <= 0 || (x.Implementation == gcl.Hybrid) != inPhases(collective) {
					return fmt.Errorf("%v, %v:\n%v", collective, m, e)
				}
			}
		}
		return nil
	}, gcl.WithTopology(hosts(t, 2, 2)))
}

// Two hosts with four replicas each: what goes across is a quarter of the data.
func ExampleComm_Explain_hybrid() {
	machine, err := topology.New(topology.Config{Replicas: []int{4, 4}, Speeds: topology.Speeds{
		HostLink: topology.Speed{BytesPerSecond: 8e9, Latency: time.Microsecond},
		GWLink:   topology.Speed{BytesPerSecond: 12.5e9, Latency: 5 * time.Microsecond},
	}})
	if err != nil {
		log.Fatal(err)
	}
	var explanation gcl.Explanation
	err = gcl.Run(context.Background(), 8, func(ctx context.Context, c *gcl.Comm) error {
		e, err := c.Explain(schedule.AllReduce, 1<<20, tensor.F32)
		if c.Rank() == 0 {
			explanation = e
		}
		return err
	}, gcl.WithTopology(machine), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(explanation)
	// Output:
	// all-reduce of 1048576 bytes (float32 x 262144) over 8 ranks; clique of 4+4 replicas
	// direct across 2 link domains, since group size x bytes, 2 x 262144, is above 8192, and every pair of replicas is linked, so that a ring gains nothing (gogcl.dev/methods/tables/links/memory.txt:4); direct inside, among 4 ranks; Hybrid, as the options ask; by all members, since at 1048576 bytes, the nearest power of two, that takes 139.388µs, and by leaders 202.302µs
	//
	//   method                  implementation  rounds  barriers  bytes sent  estimate  of the bound
	//   broadcast               Syncless             1         0     7340032     394µs          23 %
	//   clockwise_ring          Syncless            14         0     1835008     243µs          37 %
	//   anticlockwise_ring      Syncless            14         0     1835008     243µs          37 %
	//   bidirectional_ring_pair Syncless            14         0     1835008     243µs          37 %
	//   meet_in_middle_ring     Syncless             8         0     1835008     237µs          38 %
	//   quad_directional_ring   Syncless            14         0     1835008     186µs          49 %
	//   direct                  Syncless             2         0     1835008     100µs          90 %
	//   recursive_doubling      Syncless             3         0     3145728     353µs          26 %
	//   halving_doubling        Syncless             6         0     1835008     196µs          46 %
	//   circulant               Syncless             6         0     1835008     196µs          46 %
	//   binomial_tree           Syncless             6         0     3145728     706µs          13 %
	//   knomial_4_tree          Syncless             4         0     4194304     966µs           9 %
	//   double_binary_tree      Syncless            40         0     2097152     408µs          22 %
	//   torus_2d                Syncless             8         0     1835008     175µs          52 %
	//   torus_3d                Syncless             6         0     1835011     159µs          57 %
	//   hierarchical_8          Syncless             2         0     1835008     100µs          90 %
	//   swing                   Syncless             6         0     1835008     235µs          38 %
	//   swing_2d                Syncless             6         0     1835008     137µs          66 %
	//   direct                  Syncful              1         2     1835008    67.5µs             -
	// * direct                  Hybrid               4         4     1835008     139µs             -
}
