package gcl

import (
	"cmp"
	"math"

	"gogcl.dev/methods"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// tunings has what methods.Auto goes by for each class of link. A transport that says nothing of its links is taken for
// one in this process: nothing speaks for other numbers, and a test's own endpoints mostly are.
var tunings = [...]func() methods.Tuning{
	transport.UnknownLink: methods.MemoryLinks,
	transport.MemoryLink:  methods.MemoryLinks,
	transport.EngineLink:  methods.EngineLinks,
	transport.SocketLink:  methods.SocketLinks,
	transport.NetworkLink: methods.NetworkLinks,
}

// tuning is what methods.Auto goes by where replicas send messages.
func (c *Comm) tuning() methods.Tuning {
	class := c.group.link.Class
	if int(class) >= len(tunings) {
		class = transport.UnknownLink
	}
	t := tunings[class]()
	if limit := c.options.MaxBroadcastSize; limit != 0 {
		t.MaxBroadcastBytes, t.BroadcastFirst = int64(limit), true // NoBroadcast is negative too
	}
	switch {
	case c.options.Tuning != nil:
		t.Rules = c.options.Tuning
	case class != transport.NetworkLink: // the tables were measured on one host
		t.Rules = defaultRules(c.group.link.Machine, c.group.link.Transport)
	}
	return t
}

// defaultRules finds the table of a machine and a transport. Tests of other things go without.
var defaultRules = methods.RulesOn

// linkAmong is the worst that the links between members have, field by field. It is what the replicas of the transport
// agreed on, and so the same at all members. What is not known is as in one process.
func linkAmong(e transport.Endpoint, members []int) transport.Link {
	var worst transport.Link
	if linked, ok := e.(transport.Linked); ok {
		eachLink(linked, members, func(l transport.Link) { worst = worse(worst, l) })
	}
	assumed := inproc.Link()
	if worst.Latency <= 0 {
		worst.Latency = assumed.Latency
	}
	if worst.Barrier <= 0 {
		worst.Barrier = assumed.Barrier
	}
	if worst.BytesPerSecond == 0 {
		worst.BytesPerSecond = assumed.BytesPerSecond
	}
	if worst.CopyBytesPerSecond == 0 {
		worst.CopyBytesPerSecond = assumed.CopyBytesPerSecond
	}
	return worst
}

// eachLink calls f with all links between members that can differ, of which there is one for each pair of hosts and
// each host: see transport.Linked.
func eachLink(e transport.Linked, members []int, f func(transport.Link)) {
	var firsts []int           // by host: its first member, among those seen so far
	seen := map[int]hostSeen{} // by number
	last := hostSeen{}
	for i, m := range members {
		host := e.Host(m)
		h := last
		if i == 0 || host != last.host {
			h = seen[host]
		}
		switch {
		case h.members == 0:
			for _, other := range firsts {
				f(e.Link(other, m))
			}
			firsts = append(firsts, m)
			h = hostSeen{host: host, first: m}
		case h.members == 1:
			f(e.Link(h.first, m))
		}
		h.members++
		if h.members <= 2 {
			seen[host] = h
		}
		last = h
	}
}

// hostSeen is a host with members of a group.
type hostSeen struct {
	host, first int
	members     int // seen so far; beyond 2 it need not be right
}

// worse is the worse of two links, field by field. What is unknown of one, or impossible, is as of the other.
func worse(a, b transport.Link) transport.Link {
	return transport.Link{
		Class:              max(a.Class, b.Class),
		Transport:          shared(a, b, a.Transport, b.Transport),
		Why:                cmp.Or(a.Why, b.Why),
		Machine:            shared(a, b, a.Machine, b.Machine),
		Latency:            max(a.Latency, b.Latency),
		Barrier:            max(a.Barrier, b.Barrier),
		BytesPerSecond:     slower(a.BytesPerSecond, b.BytesPerSecond),
		CopyBytesPerSecond: slower(a.CopyBytesPerSecond, b.CopyBytesPerSecond),
	}
}

// shared is a name of the worse of two links. Of two of one class it is the name that both have, or "".
func shared(a, b transport.Link, ofA, ofB string) string {
	switch {
	case a.Class > b.Class:
		return ofA
	case a.Class < b.Class || ofA == ofB:
		return ofB
	}
	return ""
}

// slower is the lower of two speeds, or 0 if both are unknown or impossible.
func slower(a, b float64) float64 {
	possible := func(x float64) bool { return x > 0 && !math.IsInf(x, 1) }
	switch {
	case !possible(a) && !possible(b):
		return 0
	case !possible(a) || possible(b) && b < a:
		return b
	}
	return a
}

// latencyBytes is what a link carries in the latency of one round, for methods.Spec.Pipelined. It is the nearest power
// of two, by ratio: latencies are known no better.
func latencyBytes(l transport.Link) int64 {
	const most = 1 << 50 // so that it is an int64
	carried, bytes := min(l.Latency.Seconds()*l.BytesPerSecond, most), int64(1)
	for float64(bytes)*math.Sqrt2 < carried {
		bytes *= 2
	}
	return bytes
}

// byHost is the topology where none was given: cliques, one for each host of the transport, with links as slow as the
// slowest within a host, and as the slowest between hosts.
func byHost(e transport.Endpoint) (topology.Topology, error) {
	linked, _ := e.(transport.Linked)
	numbers := map[int]int{} // of domains, by host
	domains := make([]int, e.Size())
	var hosts [][]int // replicas by domain
	for r := range domains {
		host := 0
		if linked != nil {
			host = linked.Host(r)
		}
		domain, known := numbers[host]
		if !known {
			domain = len(hosts)
			numbers[host], hosts = domain, append(hosts, nil)
		}
		domains[r], hosts[domain] = domain, append(hosts[domain], r)
	}
	var inside transport.Link
	var firsts []int
	for _, members := range hosts {
		firsts = append(firsts, members[0])
		if len(members) > 1 {
			inside = worse(inside, linkAmong(e, members))
		}
	}
	between := linkAmong(e, firsts)
	return topology.New(topology.Config{Domains: domains, Speeds: topology.Speeds{
		HostLink: topology.Speed{BytesPerSecond: inside.BytesPerSecond, Latency: inside.Latency},
		GWLink:   topology.Speed{BytesPerSecond: between.BytesPerSecond, Latency: between.Latency},
	}})
}
