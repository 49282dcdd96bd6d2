package cost

import (
	"encoding/binary"
	"hash"
	"hash/fnv"
	"math"
)

// Digest sums up the network and the processors, so that processes see whether theirs differ: equal models have equal
// digests, and others almost surely have others. Of a network that this package has made it covers all links and where
// they lead. Of a program's own it covers all links, and the ways between all replicas up to 128 of them. Among more it
// covers some of the ways, at least one from each replica and one to each. Of a model without a network, or with more
// replicas or links than Check takes, it covers the processors alone. The digests of two versions of this package may
// differ.
func (m Model) Digest() uint64 {
	d := digest{fnv.New64a()}
	d.add(int(m.Overhead))
	d.float(m.FoldBytesPerSecond)
	if checkNetwork(m.Network) != nil {
		return d.Sum64()
	}
	d.add(m.Network.Replicas(), m.Network.Links())
	switch n := within(m.Network).(type) {
	case *torus:
		d.add(1, len(n.dims))
		d.add(n.dims...)
		d.links(n.links)
	case *fatTree:
		d.add(2, len(n.levels))
		for _, l := range n.levels {
			d.add(l.Children)
			d.link(l.Link)
		}
	case *ports:
		d.add(3)
		d.add(n.domains...)
		d.links(n.links[:])
	case *graph:
		d.graph(n)
	case Graph:
		d.graph(n.graph)
	default:
		d.add(5)
		for number := range n.Links() {
			d.link(n.Link(number))
		}
		d.ways(n)
	}
	return d.Sum64()
}

// digest is one in the making.
type digest struct{ hash.Hash64 }

func (d digest) add(numbers ...int) {
	for _, n := range numbers {
		d.bits(uint64(n))
	}
}

func (d digest) float(x float64) { d.bits(math.Float64bits(x)) }

func (d digest) bits(n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = d.Write(b[:]) // never fails
}

func (d digest) link(l Link) {
	d.float(l.BytesPerSecond)
	d.add(int(l.Latency), max(l.Cables, 1))
}

func (d digest) links(all []Link) {
	for _, l := range all {
		d.link(l)
	}
}

func (d digest) graph(g *graph) {
	d.add(4)
	if g == nil {
		return
	}
	d.add(len(g.edges))
	for from, edges := range g.edges {
		d.add(from, len(edges))
		for _, e := range edges { // their order decides which of two ways a message takes
			d.add(int(e.to))
			d.link(g.links[e.link])
		}
	}
}

// mostWays is about how many ways of a program's own network a digest covers, if that is one for each replica.
const mostWays = 1 << 14

// ways covers ways from each replica to some that are equally far away, by number, for all: so as many lead to each.
func (d digest) ways(n Network) {
	replicas := n.Replicas()
	var links []int
	way := func(from, to int) {
		var err error
		if links, err = n.Route(links[:0], from, to); err != nil {
			links = append(links[:0], -1)
		}
		d.add(len(links))
		d.add(links...)
	}
	some := max(mostWays/max(replicas, 1), 1)
	for i := range min(some, replicas-1) {
		away := i + 1
		if some < replicas-1 {
			away = scattered(i)%(replicas-1) | 1 // odd, so that ends are not always at one place below equal switches
		}
		for from := range replicas {
			way(from, (from+away)%replicas)
		}
	}
}

// scattered is a number that looks random, and is always the same: a step of splitmix64.
func scattered(i int) int {
	x := (uint64(i) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return int((x ^ x>>31) >> 1)
}
