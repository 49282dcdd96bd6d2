package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

// hosts is a machine of hosts that hold so many replicas each.
func hosts(t testing.TB, replicas ...int) topology.Topology {
	t.Helper()
	m, err := topology.New(topology.Config{Replicas: replicas})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// dealtOut is a machine of hosts to which replicas are dealt out: the domain of each.
func dealtOut(t testing.TB, domains ...int) topology.Topology {
	t.Helper()
	m, err := topology.New(topology.Config{Domains: domains})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// perHost counts the members on each host that has any.
func perHost(m topology.Topology, members []int) []int {
	counts := map[int]int{}
	for _, r := range members {
		counts[m.Domain(r)]++
	}
	var out []int
	for d := range m.Domains() {
		if counts[d] > 0 {
			out = append(out, counts[d])
		}
	}
	return out
}

func even(counts []int) bool { return slices.Min(counts) == slices.Max(counts) }

// hybridMachines are the hosts that the tests below put replicas on. On some they are dealt out.
func hybridMachines(t testing.TB) (machines []topology.Topology) {
	for _, m := range [][]int{{2, 2}, {4, 4}, {2, 2, 2}, {3, 3}, {1, 1, 1, 1}, {4}, {3, 1}, {1, 2, 3}, {1}} {
		machines = append(machines, hosts(t, m...))
	}
	for _, m := range [][]int{{0, 1, 0, 1}, {0, 1, 2, 0, 1, 2}, {0, 1, 1, 0, 2, 2}, {0, 0, 1, 1, 0, 1},
		{0, 1, 2, 3, 3, 2, 1, 0}, {0, 1, 0, 0}} {
		machines = append(machines, dealtOut(t, m...))
	}
	return machines
}

// domainsOf are the domains of a machine's replicas.
func domainsOf(m topology.Topology) (domains []int) {
	for r := range m.Replicas() {
		domains = append(domains, m.Domain(r))
	}
	return domains
}

// TestHybrid tries every collective in every group of every machine, with peer memory and without, against the naive
// implementation: on float32, and on one of four other types, in turn. Where hosts hold unequal numbers of a group's
// members, the group is refused.
func TestHybrid(t *testing.T) {
	tried := 0
	for _, m := range hybridMachines(t) {
		n := m.Replicas()
		for _, memory := range []bool{true, false} {
			for i, p := range distinct(partitions(n)) {
				if underRace && (i+n)%3 != 0 {
					continue
				}
				t.Run(fmt.Sprintf("domains=%v/memory=%v/group=%v", domainsOf(m), memory, p.group), func(t *testing.T) {
					endpoints, _ := witnesses(t, n, memory)
					size := len(p.members(0))
					try := hybridTry[float32](size)
					another := []func(int) func(context.Context, *gcl.Comm) error{
						hybridTry[tensor.BFloat16], hybridTry[int64], hybridTry[uint8], hybridTry[bool],
					}[(i+n)%4](size)
					replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
						members := p.members(c.Replica())
						c, err := inHybrid(c, p.group, gcl.Options{Implementation: gcl.Hybrid})
						if !even(perHost(m, members)) {
							var option *gcl.OptionError
							if !errors.As(err, &option) || option.Option != "Implementation" ||
								option.Value != "Hybrid" {
								return fmt.Errorf("%v: %v, want an *OptionError", members, err)
							}
							return nil
						}
						if err != nil {
							return err
						}
						err = try(ctx, c)
						if memory && !underRace {
							err = errors.Join(err, another(ctx, c))
						}
						return errors.Join(err, c.Barrier(ctx))
					}, gcl.WithTopology(m), gcl.WithEndpoints(endpoints))
					tried++
				})
			}
		}
	}
	t.Logf("%d machines with a group", tried)
}

// distinct leaves out those that divide replicas as an earlier one does.
func distinct(all []partition) []partition {
	seen := map[[2]int]bool{}
	return slices.DeleteFunc(all, func(p partition) bool {
		key := [2]int{p.size, p.stride}
		if p.size == 1 {
			key[1] = 1
		}
		again := seen[key]
		seen[key] = true
		return again
	})
}

// inHybrid is c in a group with options. The group comes first: not every group allows all options.
func inHybrid(c *gcl.Comm, g commgroup.Group, o gcl.Options) (*gcl.Comm, error) {
	c, err := c.Group(g)
	if err != nil {
		return nil, err
	}
	return c.With(o)
}

// hybridMethods are given to Hybrid, one after the other, which may use different ones inside and across.
var hybridMethods = []methods.Method{methods.Auto, methods.ClockwiseRing, methods.Direct, methods.RecursiveDoubling,
	methods.MeetInMiddleRing}

// hybridCase is the data of all ranks of a group, of one length.
type hybridCase[T tensor.Element] struct {
	reductions []reduceCase[T]
	placed     moveCase[T]
}

// hybridCases are those that TestHybrid tries in groups of n: every operator on every length.
func hybridCases[T tensor.Element](n int) (out []hybridCase[T]) {
	for _, size := range []int{0, 1, n - 1, n, n + 1, 2*n + 1, 97, 12 * n, 4099} {
		x := hybridCase[T]{placed: newMoveCase(inputs[T](gcl.Local, n, size))}
		for _, op := range operators[T]() {
			x.reductions = append(x.reductions, newReduceCase(op, inputs[T](op, n, size)))
		}
		out = append(out, x)
	}
	return out
}

// hybridTry is tryHybrid in groups of n.
func hybridTry[T tensor.Element](n int) func(context.Context, *gcl.Comm) error {
	cases := hybridCases[T](n)
	return func(ctx context.Context, c *gcl.Comm) error { return tryHybrid(ctx, c, cases) }
}

// tryHybrid tries all forms of all collectives, by all members and by leaders.
func tryHybrid[T tensor.Element](ctx context.Context, c *gcl.Comm, cases []hybridCase[T]) error {
	for i, x := range cases {
		c, err := c.With(gcl.Options{Implementation: gcl.Hybrid, Method: hybridMethods[i%len(hybridMethods)],
			Reproducible: i%4 == 3})
		if err != nil {
			return err
		}
		size := len(x.placed.in[0])
		for i, r := range x.reductions {
			if err := r.try(ctx, gcl.CrossBy(c, i%2 == 0)); err != nil {
				return fmt.Errorf("%v: %v: size=%d: leaders: %v: %w", c.Options(), r.op, size, i%2 == 0, err)
			}
		}
		for _, leaders := range []bool{false, true} {
			if err := x.placed.try(ctx, gcl.CrossBy(c, leaders)); err != nil {
				return fmt.Errorf("%v: size=%d: leaders: %v: %w", c.Options(), size, leaders, err)
			}
		}
	}
	return nil
}

// Every root of a broadcast, whichever host and place it has.
func TestHybridBroadcastRoots(t *testing.T) {
	for _, machine := range []topology.Topology{hosts(t, 2, 2), hosts(t, 3, 3), hosts(t, 2, 2, 2),
		dealtOut(t, 0, 1, 2, 2, 0, 1)} {
		replicas(t, machine.Replicas(), func(ctx context.Context, c *gcl.Comm) error {
			for i, size := range []int{1, 5000, 1, 5000} {
				c := gcl.CrossBy(c, i < 2)
				for root := range c.Size() {
					data := make([]int32, size)
					for i := range data {
						data[i] = int32(1000*c.Rank() + i)
					}
					want := make([]int32, size)
					for i := range want {
						want[i] = int32(1000*root + i)
					}
					out, err := gcl.Broadcast(ctx, c, data, root)
					if err := errors.Join(err, check("broadcast", out, want)); err != nil {
						return fmt.Errorf("root %d: %w", root, err)
					}
				}
			}
			return nil
		}, gcl.WithTopology(machine), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
	}
}

// hybridPath counts, on one replica, which way it took to whom.
type hybridPath struct {
	near
	met  [][]int // members of meetings
	sent map[int]int64
	got  map[int]bool // peers of messages received
}

func (p *hybridPath) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	for _, t := range batch {
		if t.Kind == transport.Send {
			p.sent[t.Peer] += int64(len(t.Buf))
		} else {
			p.got[t.Peer] = true
		}
	}
	return p.near.Exchange(ctx, call, batch)
}

func (p *hybridPath) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	p.met = append(p.met, slices.Clone(members))
	return p.near.Share(ctx, call, members, mine, rounds, w)
}

func (p *hybridPath) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	p.met = append(p.met, slices.Clone(members))
	return p.near.Gather(ctx, call, members, mine, size, c)
}

func (p *hybridPath) Broadcast(ctx context.Context, call transport.Call, members []int, root int, buf []byte) error {
	p.met = append(p.met, slices.Clone(members))
	return p.near.Broadcast(ctx, call, members, root, buf)
}

// TestHybridPath: memory is met only inside a host, messages go only to the replica's own place on other hosts, and no
// more bytes cross than must: by leaders from place 0 alone, or from the root's.
func TestHybridPath(t *testing.T) {
	const n, hostSize, elements = 8, 4, 64 // float32, in the larger buffer
	const bytes = 4 * elements
	f := func(n int) []float32 { return make([]float32, n) }
	only := func(place int, bytes int64) func(int) int64 {
		return func(at int) int64 {
			if at != place {
				return 0
			}
			return bytes
		}
	}
	all := func(bytes int64) func(int) int64 { return func(int) int64 { return bytes } }
	allReduce := func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c, f(elements), gcl.Add)
	}
	reduceScatter := func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.ReduceScatter(ctx, c, f(elements), gcl.Add)
		return err
	}
	allGather := func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllGather(ctx, c, f(elements/n))
		return err
	}
	broadcast := func(ctx context.Context, c *gcl.Comm) error {
		return gcl.BroadcastInPlace(ctx, c, f(elements), rootOfPath)
	}
	for _, x := range []struct {
		name    string
		leaders bool
		call    func(ctx context.Context, c *gcl.Comm) error
		sent    func(place int) int64 // across; of a broadcast in the root's domain
		met     int                   // in rank 0's domain
	}{
		{"all-reduce", false, allReduce, all(bytes / hostSize), 2},
		{"all-reduce", true, allReduce, only(0, bytes), 2},
		{"reduce-scatter", false, reduceScatter, all(bytes / n), 2},
		{"reduce-scatter", true, reduceScatter, only(0, bytes/2), 2},
		{"all-gather", false, allGather, all(bytes / n), 2},
		{"all-gather", true, allGather, only(0, bytes/2), 2},
		{"all-to-all", false, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllToAllInPlace(ctx, c, f(elements))
		}, all(bytes / 2), 2},
		{"broadcast", false, broadcast, all(bytes / hostSize), 1},
		{"broadcast", true, broadcast, only(rootOfPath%hostSize, bytes), 1},
	} {
		for _, m := range []topology.Topology{hosts(t, hostSize, hostSize), dealtOut(t, 0, 1, 1, 0, 0, 0, 1, 1)} {
			t.Run(fmt.Sprintf("%s/leaders=%v/domains=%v", x.name, x.leaders, domainsOf(m)), func(t *testing.T) {
				plain, _ := witnesses(t, n, true)
				paths, endpoints := make([]*hybridPath, n), make([]transport.Endpoint, n)
				for r, e := range plain {
					paths[r] = &hybridPath{near: e.(near), sent: map[int]int64{}, got: map[int]bool{}}
					endpoints[r] = paths[r]
				}
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					return x.call(ctx, gcl.CrossBy(c, x.leaders))
				}, gcl.WithTopology(m), gcl.WithEndpoints(endpoints),
					gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid, Method: methods.Direct}))
				var held [2][]int
				for r := range n {
					held[m.Domain(r)] = append(held[m.Domain(r)], r)
				}
				for r, p := range paths {
					domain := m.Domain(r)
					mates, place := held[domain], slices.Index(held[domain], r)
					opposite, sent, met := held[1-domain][place], x.sent(place), x.met
					if x.name == "broadcast" && domain != m.Domain(rootOfPath) {
						sent = 0
					} else if x.name == "broadcast" && !x.leaders {
						met++
					}
					if len(p.met) != met {
						t.Errorf("replica %d: %d meetings, want %d", r, len(p.met), met)
					}
					for _, members := range p.met {
						if !slices.Equal(members, mates) {
							t.Errorf("replica %d meets %v, want %v", r, members, mates)
						}
					}
					for peer, bytes := range p.sent {
						if peer != opposite || bytes != sent {
							t.Errorf("replica %d sends %d bytes to %d, want %d to %d", r, bytes, peer, sent, opposite)
						}
					}
					if sent > 0 && p.sent[opposite] == 0 {
						t.Errorf("replica %d sends nothing to %d", r, opposite)
					}
					for peer := range p.got {
						if peer != opposite {
							t.Errorf("replica %d receives from %d", r, peer)
						}
					}
				}
			})
		}
	}
}

// rootOfPath is at place 2 of the second domain of both machines of TestHybridPath.
const rootOfPath = 6

// A group inside one domain has no phase across, one with a member in each none inside.
func TestHybridDegenerates(t *testing.T) {
	for _, x := range []struct {
		hosts []int
		met   bool
	}{{[]int{4}, true}, {[]int{1, 1, 1, 1}, false}} {
		plain, _ := witnesses(t, 4, true)
		paths, endpoints := make([]*hybridPath, 4), make([]transport.Endpoint, 4)
		for r, e := range plain {
			paths[r] = &hybridPath{near: e.(near), sent: map[int]int64{}, got: map[int]bool{}}
			endpoints[r] = paths[r]
		}
		replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 40), gcl.Add)
		}, gcl.WithTopology(hosts(t, x.hosts...)), gcl.WithEndpoints(endpoints),
			gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
		for r, p := range paths {
			if (len(p.met) == 1) != x.met || (len(p.sent) == 0) != x.met {
				t.Errorf("hosts %v: replica %d meets %v and sends to %v", x.hosts, r, p.met, p.sent)
			}
		}
	}
}

// TestHybridDealtOut: Hybrid goes where the members of a link domain do not follow each other, and in the groups where
// they do. Links are checked wherever members are.
func TestHybridDealtOut(t *testing.T) {
	hybrid, pairs := gcl.Options{Implementation: gcl.Hybrid}, commgroup.Group{Type: commgroup.Consecutive, Size: 2}
	opposite := commgroup.Group{Type: commgroup.Orthogonal, Size: 2}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			options gcl.Options
			group   commgroup.Group
			want    string
		}{
			{hybrid, commgroup.Group{}, ""},
			{hybrid, pairs, ""},
			{hybrid, opposite, ""},
			{gcl.Options{Link: gcl.GWLink}, commgroup.Group{}, "replicas 0 and 2 are both in domain 0"},
			{gcl.Options{Link: gcl.IPULink}, commgroup.Group{}, "replica 0 is in domain 0 and replica 1 in domain 1"},
			{gcl.Options{Link: gcl.GWLink}, pairs, ""},
			{gcl.Options{Link: gcl.IPULink}, opposite, ""},
		} {
			g, err := inHybrid(c, x.group, x.options)
			if x.want != "" {
				if err == nil || !strings.Contains(err.Error(), x.want) {
					return fmt.Errorf("%+v: %v, want %q", x, err, x.want)
				}
				continue
			}
			if err != nil {
				return fmt.Errorf("%+v: %w", x, err)
			}
			sum, err := gcl.AllReduce(ctx, g, []int32{1 << c.Replica()}, gcl.Add)
			want := int32(0)
			for _, member := range g.Members() {
				want |= 1 << member
			}
			if err := errors.Join(err, check("sum", sum, []int32{want})); err != nil {
				return fmt.Errorf("%+v: %w", x, err)
			}
		}
		return nil
	}, gcl.WithTopology(dealtOut(t, 0, 1, 0, 1)))
}

// Domains that hold unequal numbers of members are refused before anything is sent, with all of them named, and c goes
// on.
func TestHybridUneven(t *testing.T) {
	const want = "gcl: option Implementation=Hybrid: every link domain must hold equally many members of the group, " +
		"which has replicas 0, 1, 2 in link domain 0, replica 3 in link domain 1"
	m := hosts(t, 3, 1)
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		out, err := c.With(gcl.Options{Implementation: gcl.Hybrid})
		if out != nil || err == nil || err.Error() != want {
			return fmt.Errorf("With: %v, %v, want %s", out, err, want)
		}
		pairs, err := inHybrid(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1},
			gcl.Options{Implementation: gcl.Hybrid})
		if err != nil {
			return err
		}
		if out, err = pairs.Group(commgroup.Group{}); out != nil || err == nil || err.Error() != want {
			return fmt.Errorf("Group: %v, %v, want %s", out, err, want)
		}
		return c.Barrier(ctx)
	}, gcl.WithTopology(m))
	err := gcl.Run(watched(t), 4, func(context.Context, *gcl.Comm) error { return errors.New("runs") },
		gcl.WithTopology(m), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Run: %v, want %s", err, want)
	}
}

// With Reproducible the bits are the left fold in rank order, which phases would not give.
func TestHybridReproducible(t *testing.T) {
	in := [][]float32{{1e8}, {1}, {-1e8}, {1}}
	want := []float32{((1e8 + 1) - 1e8) + 1} // in float32
	want[0] = float32(float32(float32(in[0][0]+in[1][0])+in[2][0]) + in[3][0])
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		phased, err := gcl.AllReduce(ctx, c, in[c.Rank()], gcl.Add)
		if err := errors.Join(err,
			check("the sum in phases", phased,
				[]float32{float32(in[0][0]+in[1][0]) + float32(in[2][0]+in[3][0])})); err != nil {
			return err
		}
		for _, m := range testMethods {
			c := withOptions(c, gcl.Options{Implementation: gcl.Hybrid, Method: m, Reproducible: true})
			got, err := gcl.AllReduce(ctx, c, in[c.Rank()], gcl.Add)
			shard, err2 := gcl.ReduceScatter(ctx, c, in[c.Rank()], gcl.Add)
			if c.Rank() > 0 {
				shard = want
			}
			if err := errors.Join(err, err2, check("all-reduce", got, want),
				check("reduce-scatter", shard, want)); err != nil {
				return fmt.Errorf("method=%v: %w", m, err)
			}
		}
		return nil
	}, gcl.WithTopology(hosts(t, 2, 2)), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
}

// Nobody is through a barrier before everybody has come to it.
func TestHybridBarrier(t *testing.T) {
	for _, machine := range []topology.Topology{hosts(t, 2, 2), hosts(t, 3, 3), hosts(t, 2, 2, 2),
		dealtOut(t, 0, 1, 1, 0)} {
		for _, memory := range []bool{true, false} {
			n := machine.Replicas()
			endpoints, _ := witnesses(t, n, memory)
			var come atomic.Int64
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for i := range 60 {
					c := withOptions(c, gcl.Options{Implementation: gcl.Hybrid,
						Method: hybridMethods[i%len(hybridMethods)], Reproducible: i%2 == 0})
					c = gcl.CrossBy(c, i%4 < 2)
					if i%n == c.Rank() {
						for range 100 { // so that others would be early
							runtime.Gosched()
						}
					}
					come.Add(1)
					if err := c.Barrier(ctx); err != nil {
						return err
					}
					if have := come.Load(); have < int64((i+1)*n) {
						return fmt.Errorf("barrier %d: %d of %d have come", i, have-int64(i*n), n)
					}
				}
				return nil
			}, gcl.WithTopology(machine), gcl.WithEndpoints(endpoints))
		}
	}
}

// Calls on several tensors are not carried out in phases, and have the same results.
func TestHybridMany(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		small, large := []int32{1, int32(c.Rank())}, make([]int32, 5000)
		large[4999] = 7
		got, err := gcl.AllReduceMany(ctx, c, [][]int32{small, large}, gcl.Add)
		if err != nil {
			return err
		}
		want := make([]int32, 5000)
		want[4999] = 28
		return errors.Join(check("small", got[0], []int32{4, 6}), check("large", got[1], want))
	}, gcl.WithTopology(hosts(t, 2, 2)), gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid}))
}
