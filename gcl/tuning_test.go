package gcl

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// linked is an endpoint that has messages, and says what a test wants of hosts and links.
type linked struct {
	transport.Endpoint
	*linkTable
}

// linkTable is what all endpoints of a transport say.
type linkTable struct {
	hosts           []int            // by replica
	inside, between []transport.Link // by host; by the sum of two hosts
	asked           int              // calls of Link
}

func (l *linkTable) Host(replica int) int {
	if replica < 0 || replica >= len(l.hosts) {
		return -1
	}
	return l.hosts[replica]
}

func (l *linkTable) Link(a, b int) transport.Link {
	l.asked++
	switch ha, hb := l.Host(a), l.Host(b); {
	case a == b || ha < 0 || hb < 0:
		return transport.Link{}
	case ha == hb:
		return l.inside[ha]
	default:
		return l.between[ha+hb]
	}
}

// TestLinkAmong: a group has the worst of the links between all pairs of its members, though few are looked at.
func TestLinkAmong(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	some := func() transport.Link {
		speeds := []float64{0, 1e9, 2e9, 3e9, -1, math.Inf(1), math.NaN()}
		return transport.Link{
			Class: transport.LinkClass(random.IntN(4)), Transport: []string{"a", "a", "b"}[random.IntN(3)],
			Machine: []string{"x", "x", "y"}[random.IntN(3)],
			Latency: time.Duration(random.IntN(5) - 1),
			Barrier: time.Duration(random.IntN(5) - 1), BytesPerSecond: speeds[random.IntN(len(speeds))],
			CopyBytesPerSecond: speeds[random.IntN(len(speeds))],
		}
	}
	for range 2000 {
		table, hosts := &linkTable{}, 1+random.IntN(4)
		next := 0
		for range 1 + random.IntN(9) {
			h := random.IntN(min(next+1, hosts))
			next = max(next, h+1)
			table.hosts = append(table.hosts, h)
		}
		for range hosts {
			table.inside, table.between = append(table.inside, some()), append(table.between, some(), some())
		}
		var members []int
		for m := range table.hosts {
			if random.IntN(3) > 0 {
				members = append(members, m)
			}
		}
		want := transport.Link{}
		for _, a := range members {
			for _, b := range members {
				if a != b {
					want = worstOf(want, table.Link(a, b))
				}
			}
		}
		assumed := inproc.Link()
		if want.Latency <= 0 {
			want.Latency = assumed.Latency
		}
		if want.Barrier <= 0 {
			want.Barrier = assumed.Barrier
		}
		if want.BytesPerSecond == 0 {
			want.BytesPerSecond = assumed.BytesPerSecond
		}
		if want.CopyBytesPerSecond == 0 {
			want.CopyBytesPerSecond = assumed.CopyBytesPerSecond
		}
		if have := linkAmong(linked{nil, table}, members); have != want {
			t.Fatalf("members %d on hosts %d: %+v, want %+v", members, table.hosts, have, want)
		}
	}
}

// worstOf is worse, written out.
func worstOf(a, b transport.Link) transport.Link {
	switch {
	case b.Class > a.Class:
		a.Class, a.Transport, a.Machine = b.Class, b.Transport, b.Machine
	case b.Class == a.Class && b.Transport != a.Transport:
		a.Transport = ""
	}
	if b.Class == a.Class && b.Machine != a.Machine {
		a.Machine = ""
	}
	if b.Latency > a.Latency {
		a.Latency = b.Latency
	}
	if b.Barrier > a.Barrier {
		a.Barrier = b.Barrier
	}
	for _, x := range []struct {
		to *float64
		of float64
	}{{&a.BytesPerSecond, b.BytesPerSecond}, {&a.CopyBytesPerSecond, b.CopyBytesPerSecond}} {
		if x.of > 0 && x.of < 1e300 && (*x.to == 0 || x.of < *x.to) {
			*x.to = x.of
		}
	}
	return a
}

// TestLinksAreLookedAtOnce: a large group is not looked at pair by pair.
func TestLinksAreLookedAtOnce(t *testing.T) {
	const n = 1024
	for _, x := range []struct{ hosts, want int }{{1, 1}, {2, 3}, {8, 8 + 8*7/2}} {
		for _, alternate := range []bool{false, true} {
			table := &linkTable{inside: make([]transport.Link, n), between: make([]transport.Link, 2*n)}
			members := make([]int, n)
			for i := range members {
				members[i] = i
				host := i * x.hosts / n
				if alternate {
					host = i % x.hosts
				}
				table.hosts = append(table.hosts, host)
			}
			linkAmong(linked{nil, table}, members)
			if table.asked != x.want {
				t.Errorf("%d members on %d hosts, in turn %v: %d links looked at, want %d", n, x.hosts, alternate,
					table.asked, x.want)
			}
		}
	}
}

// TestUnknownLinks: a transport that says nothing of links, or that they are of a class there is not, is taken for one
// in this process.
func TestUnknownLinks(t *testing.T) {
	strange := transport.Link{Class: 200}
	for name, e := range map[string]func(transport.Endpoint) transport.Endpoint{
		"not Linked": func(e transport.Endpoint) transport.Endpoint { return struct{ transport.Endpoint }{e} },
		"zero": func(e transport.Endpoint) transport.Endpoint {
			return linked{e, &linkTable{hosts: []int{-1, -1}}}
		},
		"strange": func(e transport.Endpoint) transport.Endpoint {
			return linked{e, &linkTable{hosts: []int{0, 0}, inside: []transport.Link{strange}}}
		},
	} {
		ends, err := inproc.New(2)
		if err != nil {
			t.Fatal(err)
		}
		for i := range ends {
			c, err := New(e(ends[i]))
			if err != nil {
				t.Fatal(err)
			}
			if c.caller.Setting.Tuning != methods.MemoryLinks() {
				t.Errorf("%s: %+v", name, c.caller.Setting.Tuning)
			}
			have := c.caller.Link
			have.Class, have.Transport, have.Machine = transport.MemoryLink, "inproc", inproc.Link().Machine
			if have != inproc.Link() || c.caller.LatencyBytes != 8<<10 {
				t.Errorf("%s: %+v, %d bytes in the latency of a round", name, c.caller.Link, c.caller.LatencyBytes)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestTableOfTheMachine: auto goes by the table of the machine and the transport that the links name, and by none where
// they name two.
func TestTableOfTheMachine(t *testing.T) {
	defer func(before func(machine, transport string) *methods.Rules) { defaultRules = before }(defaultRules)
	rules, err := methods.ParseRules([]byte("all-reduce 2- 0 clockwise_ring"))
	if err != nil {
		t.Fatal(err)
	}
	defaultRules = func(machine, transport string) *methods.Rules {
		if machine == "fast" && transport == "wire" {
			return rules
		}
		return nil
	}
	for second, want := range map[string]*methods.Rules{"fast": rules, "slow": nil} {
		ends, err := inproc.New(3)
		if err != nil {
			t.Fatal(err)
		}
		wire := transport.Link{Class: transport.SocketLink, Transport: "wire", Machine: "fast"}
		other := wire
		other.Machine = second
		table := &linkTable{hosts: []int{0, 0, 1}, inside: []transport.Link{wire, {}},
			between: []transport.Link{other, other}}
		for i := range ends {
			c, err := New(linked{ends[i], table})
			if err != nil {
				t.Fatal(err)
			}
			if have := c.caller.Setting.Tuning.Rules; have != want {
				t.Errorf("fast and %s: %v, want %v", second, have, want)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestLatencyBytes: powers of two, whatever the link.
func TestLatencyBytes(t *testing.T) {
	for _, x := range []struct {
		latency time.Duration
		speed   float64
		want    int64
	}{
		{time.Microsecond, 8e9, 8 << 10},
		{time.Nanosecond, 1, 1},
		{10 * time.Microsecond, 3e9, 32 << 10},
		{math.MaxInt64, math.MaxFloat64, 1 << 50},
	} {
		if have := latencyBytes(transport.Link{Latency: x.latency, BytesPerSecond: x.speed}); have != x.want {
			t.Errorf("%v at %v bytes/s: %d, want %d", x.latency, x.speed, have, x.want)
		}
	}
}

// twoHosts are eight replicas on the hosts given, or four on each of two, with sockets inside.
func twoHosts(t *testing.T, on ...int) ([]transport.Endpoint, *linkTable) {
	t.Helper()
	socket := transport.Link{Class: transport.SocketLink, Latency: 5 * time.Microsecond, BytesPerSecond: 3e9}
	network := transport.Link{Class: transport.NetworkLink, Latency: 30 * time.Microsecond, BytesPerSecond: 1e9}
	ends, err := inproc.New(8)
	if err != nil {
		t.Fatal(err)
	}
	if on == nil {
		on = []int{0, 0, 0, 0, 1, 1, 1, 1}
	}
	table := func() *linkTable {
		return &linkTable{hosts: on, inside: []transport.Link{socket, socket, socket},
			between: []transport.Link{{}, network, network, network}}
	}
	for i, e := range ends {
		ends[i] = linked{e, table()}
	}
	return ends, table()
}

// TestGroupsGoByTheirWorstLink: a group on one host goes by what is inside it though the job spans two, and all members
// of a group go by the same.
func TestGroupsGoByTheirWorstLink(t *testing.T) {
	for _, x := range []struct {
		group  commgroup.Group
		want   methods.Tuning
		class  transport.LinkClass
		around int64 // latency x speed
	}{
		{commgroup.Group{}, methods.NetworkLinks(), transport.NetworkLink, 32 << 10},
		{commgroup.Group{Type: commgroup.Consecutive, Size: 4}, methods.SocketLinks(), transport.SocketLink, 16 << 10},
		{commgroup.Group{Type: commgroup.Consecutive, Size: 2}, methods.SocketLinks(), transport.SocketLink, 16 << 10},
		{commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, methods.NetworkLinks(), transport.NetworkLink, 32 << 10},
		{commgroup.Group{Type: commgroup.Orthogonal, Size: 4}, methods.NetworkLinks(), transport.NetworkLink, 32 << 10},
	} {
		ends, _ := twoHosts(t)
		var mu sync.Mutex // guards seen
		seen := map[string]route.Setting{}
		err := Run(context.Background(), 8, func(ctx context.Context, c *Comm) error {
			c, err := c.Group(x.group)
			if err != nil {
				return err
			}
			k := &c.caller
			if k.Setting.Tuning != x.want || k.Link.Class != x.class || k.LatencyBytes != x.around {
				return fmt.Errorf("%+v, %+v, %d bytes in the latency of a round", k.Setting.Tuning, k.Link,
					c.caller.LatencyBytes)
			}
			mu.Lock()
			defer mu.Unlock()
			key := fmt.Sprint(c.Members())
			if first, known := seen[key]; known && first != c.caller.Setting {
				return fmt.Errorf("%+v on one member of %s, %+v on replica %d", first, key, k.Setting,
					c.Replica())
			}
			seen[key] = c.caller.Setting
			return nil
		}, WithEndpoints(ends))
		if err != nil {
			t.Errorf("%+v: %v", x.group, err)
		}
	}
}

// TestDefaultTopologyIsTheTransports: without WithTopology each host is a link domain, wherever its replicas are, with
// links as slow as the slowest of the transport inside hosts and between them, also by New.
func TestDefaultTopologyIsTheTransports(t *testing.T) {
	for _, x := range []struct {
		hosts []int
		want  string
		ring  []int
	}{
		{[]int{0, 0, 0, 0, 1, 1, 1, 1}, "clique of 4+4 replicas", []int{0, 1, 2, 3, 4, 5, 6, 7}},
		{[]int{0, 1, 0, 1, 0, 1, 2, 0}, "clique of 4+3+1 replicas, dealt out", []int{0, 2, 4, 7, 1, 3, 5, 6}},
		{[]int{2, 2, 2, 2, 2, -1, -1, -1}, "clique of 5+3 replicas", []int{0, 1, 2, 3, 4, 5, 6, 7}}, // wrong numbers
	} {
		look := func(c *Comm) error {
			_, table := twoHosts(t, x.hosts...)
			m := c.conn.topology
			if m.String() != x.want {
				return fmt.Errorf("%v, want %s", m, x.want)
			}
			for r, host := range x.hosts {
				if m.Domain(r) != m.Domain(slices.Index(x.hosts, host)) {
					return fmt.Errorf("replica %d is in domain %d", r, m.Domain(r))
				}
			}
			if got := c.group.Rings.First; !slices.Equal(got, x.ring) {
				return fmt.Errorf("the ring is %v, want %v", got, x.ring)
			}
			for kind, link := range map[topology.Kind]transport.Link{
				topology.HostLink: table.inside[0], topology.GWLink: table.between[1],
			} {
				got := m.Speed(kind)
				if x.hosts[0] == 0 && (got.Latency != link.Latency || got.BytesPerSecond != link.BytesPerSecond) {
					return fmt.Errorf("%v: %+v, want %+v", kind, got, link)
				}
			}
			return nil
		}
		ends, _ := twoHosts(t, x.hosts...)
		err := Run(context.Background(), 8, func(_ context.Context, c *Comm) error { return look(c) },
			WithEndpoints(ends))
		if err != nil {
			t.Error(err)
		}
		ends, _ = twoHosts(t, x.hosts...)
		for _, e := range ends {
			c, err := New(e)
			if err != nil {
				t.Fatal(err)
			}
			if err := look(c); err != nil {
				t.Error(err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
