package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
)

var linkNames = []string{"auto-link", "ipu-link", "gw-link"}

func TestLinkNames(t *testing.T) {
	for i, l := range []gcl.Link{gcl.AutoLink, gcl.IPULink, gcl.GWLink} {
		text, err := l.MarshalText()
		if err != nil || string(text) != linkNames[i] || l.String() != linkNames[i] {
			t.Errorf("%d: %q, %q, %v, want %s", i, text, l, err, linkNames[i])
		}
		if parsed, err := gcl.ParseLink(linkNames[i]); err != nil || parsed != l {
			t.Errorf("%s: %v, %v", linkNames[i], parsed, err)
		}
	}
	if text, err := gcl.Link(3).MarshalText(); err == nil || !strings.Contains(err.Error(), "Link(3)") {
		t.Errorf("Link(3): %q, %v", text, err)
	}
}

// FuzzParseLink: what parses is one of the names and prints as it was; what does not leaves the receiver alone and
// lists the names.
func FuzzParseLink(f *testing.F) {
	for _, name := range append(slices.Clone(linkNames), "",
		"auto", "IPU-link", "gw-link ", "gw_link", "Link(3)", "ipu-link\x00") {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l, err := gcl.ParseLink(text)
		if known := slices.Contains(linkNames, text); known != (err == nil) {
			t.Fatalf("%q: %v", text, err)
		}
		got := gcl.GWLink
		err2 := got.UnmarshalText([]byte(text))
		if err == nil {
			if l.String() != text || err2 != nil || got != l {
				t.Errorf("%q: %v; UnmarshalText: %v, %v", text, l, got, err2)
			}
			return
		}
		if err2 == nil || got != gcl.GWLink || l != 0 {
			t.Errorf("%q: UnmarshalText: %v, %v; ParseLink: %v", text, got, err2, l)
		}
		for _, name := range linkNames {
			if !strings.Contains(err.Error(), name) {
				t.Errorf("%q: %q does not list %s", text, err, name)
			}
		}
	})
}

// TestLink: which groups each link allows, with the replicas named where it does not.
func TestLink(t *testing.T) {
	all, pairs := commgroup.Group{}, commgroup.Group{Type: commgroup.Consecutive, Size: 2}
	opposite, alone := commgroup.Group{Type: commgroup.Orthogonal, Size: 2},
		commgroup.Group{Type: commgroup.Consecutive, Size: 1}
	for _, x := range []struct {
		hosts []int
		group commgroup.Group
		link  gcl.Link
		want  string // the error on replica 3; none if empty
	}{
		{[]int{2, 2}, all, gcl.AutoLink, ""},
		{[]int{2, 2}, all, gcl.IPULink, "gcl: option Link=ipu-link: the group must lie inside one link domain, but replica 1 is in domain 0 and replica 2 in domain 1"},
		{[]int{2, 2}, all, gcl.GWLink, "gcl: option Link=gw-link: the members of the group must lie in different link domains, but replicas 0 and 1 are both in domain 0"},
		{[]int{2, 2}, pairs, gcl.IPULink, ""},
		{[]int{2, 2}, pairs, gcl.GWLink, "gcl: option Link=gw-link: the members of the group must lie in different link domains, but replicas 2 and 3 are both in domain 1"},
		{[]int{2, 2}, opposite, gcl.GWLink, ""},
		{[]int{2, 2}, opposite, gcl.IPULink, "gcl: option Link=ipu-link: the group must lie inside one link domain, but replica 1 is in domain 0 and replica 3 in domain 1"},
		{[]int{2, 2}, alone, gcl.IPULink, ""},
		{[]int{2, 2}, alone, gcl.GWLink, ""},
		{[]int{4}, all, gcl.IPULink, ""},
		{[]int{1, 1, 1, 1}, all, gcl.GWLink, ""},
		{[]int{1, 3}, pairs, gcl.IPULink, ""}, // on replica 3; not so on 0 and 1
	} {
		t.Run(fmt.Sprintf("hosts=%v/group=%v/link=%v", x.hosts, x.group, x.link), func(t *testing.T) {
			replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
				if c.Replica() < 3 {
					return nil
				}
				o := gcl.Options{Link: x.link}
				_, with := grouped(c, x.group).With(o)
				_, group := withOptions(grouped(c, x.group), gcl.Options{}).Group(x.group)
				if x.link == gcl.AutoLink || x.want == "" {
					return errors.Join(with, group)
				}
				var option *gcl.OptionError
				if !errors.As(with, &option) || with.Error() != x.want {
					return fmt.Errorf("With: %v, want %s", with, x.want)
				}
				return group
			}, gcl.WithTopology(hosts(t, x.hosts...)))
		})
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error { // the option first, then the group
		c, err := inHybrid(c, pairs, gcl.Options{Link: gcl.IPULink})
		if err != nil {
			return err
		}
		var option *gcl.OptionError
		if out, err := c.Group(all); out != nil || !errors.As(err, &option) || option.Option != "Link" {
			return fmt.Errorf("Group: %v, %v", out, err)
		}
		sum, err := gcl.AllReduce(ctx, c, []int32{1}, gcl.Add)
		return errors.Join(err, check("sum", sum, []int32{2}))
	}, gcl.WithTopology(hosts(t, 2, 2)))
}

// sentTo connects n replicas without peer memory and writes down to whom each one sends, but for barriers.
func sentTo(t testing.TB, n int) (peers []map[int]bool, endpoints []transport.Endpoint) {
	var mu sync.Mutex
	endpoints = make([]transport.Endpoint, n)
	plain, _ := witnesses(t, n, false)
	for r, e := range plain {
		peers = append(peers, map[int]bool{})
		endpoints[r] = &tap{e, func(call transport.Call, batch []transport.Transfer) {
			mu.Lock()
			defer mu.Unlock()
			for _, x := range batch {
				if x.Kind == transport.Send && call.Round < 1<<31 {
					peers[r][x.Peer] = true
				}
			}
		}}
	}
	return peers, endpoints
}

// The ring that is asked for is the one that messages go round.
func TestTopologyOption(t *testing.T) {
	for _, x := range []struct {
		domains []int
		ring    topology.RingName
		want    []int
	}{
		{make([]int, 8), topology.Auto, []int{0, 1, 2, 3, 4, 5, 6, 7}}, // on a clique
		{make([]int, 8), topology.PeripheralRing, []int{0, 2, 4, 6, 7, 5, 3, 1}},
		{[]int{0, 1, 0, 1, 0, 1, 0, 1}, topology.Auto, []int{0, 2, 4, 6, 1, 3, 5, 7}},
	} {
		machine, err := topology.New(topology.Config{Domains: x.domains})
		if err != nil {
			t.Fatal(err)
		}
		peers, endpoints := sentTo(t, 8)
		replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
			c, err := c.With(gcl.Options{Method: methods.ClockwiseRing, Topology: x.ring})
			if err != nil {
				return err
			}
			sum, err := gcl.AllReduce(ctx, c, []int32{1, 2, 3}, gcl.Add)
			return errors.Join(err, check("sum", sum, []int32{8, 16, 24}))
		}, gcl.WithEndpoints(endpoints), gcl.WithTopology(machine))
		for i, r := range x.want {
			if next := x.want[(i+1)%8]; len(peers[r]) != 1 || !peers[r][next] {
				t.Errorf("%v: replica %d sends to %v, want %d only", x.ring, r, peers[r], next)
			}
		}
	}
}

// The rings of the groups of Hybrid's phases go by the name too.
func TestTopologyOptionOfHybrid(t *testing.T) {
	peers, endpoints := sentTo(t, 8)
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		_, err := gcl.AllGather(ctx, c, []int32{1})
		return err
	}, gcl.WithEndpoints(endpoints), gcl.WithTopology(hosts(t, 4, 4)),
		gcl.WithOptions(gcl.Options{Implementation: gcl.Hybrid, Method: methods.ClockwiseRing,
			Topology: topology.PeripheralRing}))
	for r, next := range []int{2, 0, 3, 1, 6, 4, 7, 5} {
		if across := (r + 4) % 8; len(peers[r]) != 2 || !peers[r][next] || !peers[r][across] {
			t.Errorf("replica %d sends to %v, want %d inside and %d across", r, peers[r], next, across)
		}
	}
}

// A name that does not fit the machine is refused, in With and in Run.
func TestTopologyOptionErrors(t *testing.T) {
	o := gcl.Options{Topology: topology.RungRing2}
	refused := func(err error) error {
		var option *gcl.OptionError
		if !errors.As(err, &option) || option.Option != "Topology" || option.Value != "rung-ring-2" ||
			!strings.Contains(option.Reason, "rung-ring-2") {
			return fmt.Errorf("%v, want an *OptionError about rung-ring-2", err)
		}
		return nil
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		out, err := c.With(o)
		if out != nil {
			return errors.New("a Comm in spite of the error")
		}
		return errors.Join(refused(err), goodCall(ctx, c))
	})
	if err := refused(gcl.Run(t.Context(), 4, func(context.Context, *gcl.Comm) error {
		return nil
	}, gcl.WithOptions(o))); err != nil {
		t.Error(err)
	}
	fits, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{4}, IPUsPerReplica: 2})
	if err != nil {
		t.Fatal(err)
	}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		ring, err := c.With(o)
		if err != nil {
			return err
		}
		pair, err := ring.Group(commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
		if err != nil {
			return err
		}
		return errors.Join(goodCall(ctx, ring), goodCall(ctx, pair))
	}, gcl.WithTopology(fits))
}

// Comms of one group count their calls together whatever their ring, and replicas with different rings disagree.
func TestTopologyOptionCounts(t *testing.T) {
	ring := gcl.Options{Method: methods.ClockwiseRing, Topology: topology.PeripheralRing}
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		for i := range 100 {
			by := withOptions(c, gcl.Options{Method: methods.ClockwiseRing})
			if i%3 > 0 {
				by = withOptions(c, ring)
			}
			sum, err := gcl.AllReduce(ctx, by, []int32{int32(i)}, gcl.Add)
			if err := errors.Join(err, check("sum", sum, []int32{int32(4 * i)})); err != nil {
				return err
			}
		}
		return nil
	})
	for r, err := range failures(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		o := ring
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if c.Replica() == 2 {
			o.Topology = topology.Auto
		}
		return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]int32, 5), gcl.Add)
	}) {
		if !errors.Is(err, gcl.ErrMismatch) || !strings.Contains(err.Error(), "all-reduce #2") ||
			strings.Contains(err.Error(), "#1") || !strings.Contains(err.Error(), "topology") {
			t.Errorf("replica %d: %v", r, err)
		}
	}
}
