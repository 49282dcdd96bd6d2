package cost

import (
	"fmt"

	"gogcl.dev/topology"
)

// network is a machine with the traffic of one round.
type network struct {
	machine topology.Topology
	ports   bool // links are ports: see the package comment

	links      [][]int // by replica: those that it has a link to, ascending. Made when a message needs a way
	parents    [][]int // by replica: the tree of shortest ways from it, as each replica's predecessor. The same
	tracks     map[track]int
	load       []float64 // by number of track: seconds
	messages   []message
	ways, hops []int // scratch: the tracks and the replicas of one way
}

// track is what has a capacity of its own: an end of a port (the other end is -1), or a half of a bundle, in one
// direction.
type track struct {
	from, to int
	kind     topology.Kind
	half     int
}

// message is one that is under way.
type message struct {
	latency float64 // seconds
	tracks  []int
}

func newNetwork(t topology.Topology) *network {
	return &network{
		machine: t, ports: t.Shape() == topology.Clique,
		parents: make([][]int, t.Replicas()),
		tracks:  map[track]int{},
	}
}

// clear ends the round.
func (n *network) clear() {
	clear(n.load)
	n.messages = n.messages[:0]
	n.ways = n.ways[:0]
}

// send puts a message from one replica to another on its way.
func (n *network) send(from, to int, bytes float64) error {
	if err := n.route(from, to); err != nil {
		return err
	}
	first, latency := len(n.ways), 0.0
	for i, b := range n.hops[1:] {
		a := n.hops[i]
		link := n.machine.ReplicaLink(a, b)
		speed := n.machine.Speed(link.Kind)
		latency += speed.Latency.Seconds()
		count := link.Count
		if n.ports {
			n.ways = append(n.ways, n.number(track{a, -1, link.Kind, 0}), n.number(track{-1, b, link.Kind, 0}))
		} else {
			way := n.number(track{a, b, link.Kind, 0})
			if other := n.number(track{a, b, link.Kind, 1}); link.Count > 1 && n.load[other] < n.load[way] {
				way = other
			}
			n.ways = append(n.ways, way)
			count = max(count/2, 1)
		}
		busy := bytes / (speed.BytesPerSecond * float64(count))
		for _, w := range n.ways[len(n.ways)-n.perHop():] {
			n.load[w] += busy
		}
	}
	n.messages = append(n.messages, message{latency, n.ways[first:len(n.ways):len(n.ways)]})
	return nil
}

// perHop is how many tracks a hop takes.
func (n *network) perHop() int {
	if n.ports {
		return 2
	}
	return 1
}

// number is the place of a track in load.
func (n *network) number(t track) int {
	i, ok := n.tracks[t]
	if !ok {
		i = len(n.load)
		n.tracks[t] = i
		n.load = append(n.load, 0)
	}
	return i
}

// seconds is how long the round takes.
func (n *network) seconds() float64 {
	longest := 0.0
	for _, m := range n.messages {
		busy := 0.0
		for _, t := range m.tracks {
			busy = max(busy, n.load[t])
		}
		longest = max(longest, m.latency+busy)
	}
	return longest
}

// route sets hops to the replicas that a message passes, both ends included.
func (n *network) route(from, to int) error {
	if n.machine.ReplicaLink(from, to).Kind != topology.NoLink {
		n.hops = append(n.hops[:0], from, to)
		return nil
	}
	if n.parents[from] == nil {
		n.parents[from] = n.tree(from)
	}
	n.hops = n.hops[:0]
	for at := to; at != from; at = n.parents[from][at] {
		if at < 0 {
			return fmt.Errorf("cost: no way leads from replica %d to replica %d", from, to)
		}
		n.hops = append(n.hops, at)
	}
	n.hops = append(n.hops, from)
	for i, j := 0, len(n.hops)-1; i < j; i, j = i+1, j-1 {
		n.hops[i], n.hops[j] = n.hops[j], n.hops[i]
	}
	return nil
}

// tree is a breadth-first search from a replica: the predecessor of each on a shortest way, -1 where none leads.
func (n *network) tree(root int) []int {
	if n.links == nil {
		n.links = make([][]int, n.machine.Replicas())
		for a := range n.links {
			for b := range n.links {
				if n.machine.ReplicaLink(a, b).Kind != topology.NoLink {
					n.links[a] = append(n.links[a], b)
				}
			}
		}
	}
	parent := make([]int, len(n.links))
	for i := range parent {
		parent[i] = -1
	}
	queue := []int{root}
	for len(queue) > 0 {
		a := queue[0]
		queue = queue[1:]
		for _, b := range n.links[a] {
			if parent[b] < 0 && b != root {
				parent[b] = a
				queue = append(queue, b)
			}
		}
	}
	return parent
}
