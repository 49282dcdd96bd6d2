package cost_test

import (
	"fmt"
	"log"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// Eight IPUs on a ladder: what the second link of every bundle is worth.
func ExamplePrice() {
	ladder, err := topology.New(topology.Config{Shape: topology.OpenLadder, Replicas: []int{8}})
	if err != nil {
		log.Fatal(err)
	}
	members := []int{0, 1, 2, 3, 4, 5, 6, 7}
	rings, err := ladder.Rings(topology.Auto, members)
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range []methods.Method{methods.ClockwiseRing, methods.BidirectionalRingPair,
		methods.QuadDirectionalRing} {
		s, err := methods.Build(methods.Spec{Method: m, Collective: schedule.AllReduce, Size: 8, Ring: rings.First,
			Second: rings.Second})
		if err != nil {
			log.Fatal(err)
		}
		e, err := cost.Price(s, members, ladder, 64<<20)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%-24v %2d rounds, %d bytes sent, %v\n", m, e.Rounds, e.SentBytes, e.Time)
	}
	// Output:
	// clockwise_ring           14 rounds, 117440512 bytes sent, 7.354032ms
	// bidirectional_ring_pair  14 rounds, 117440512 bytes sent, 3.684016ms
	// quad_directional_ring    14 rounds, 117440512 bytes sent, 1.849008ms
}

// An all-reduce of 1 GiB over 65,536 replicas on a torus, from a description of the messages: what a ring loses by its
// many rounds.
func ExampleModel_PriceTraffic() {
	dims := []int{256, 256}
	torus, err := cost.Torus(dims, cost.Link{BytesPerSecond: 25e9, Latency: time.Microsecond})
	if err != nil {
		log.Fatal(err)
	}
	members := make([]int, torus.Replicas())
	for i := range members {
		members[i] = i
	}
	ring, err := methods.Spec{Method: methods.ClockwiseRing, Size: len(members), Ring: members}.Traffic()
	if err != nil {
		log.Fatal(err)
	}
	swing, err := methods.SwingTraffic(dims, true)
	if err != nil {
		log.Fatal(err)
	}
	for _, t := range []*schedule.Traffic{ring, swing} {
		e, err := cost.Model{Network: torus}.PriceTraffic(t, members, 1<<30)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Rounds, "rounds,", e.Time.Round(time.Millisecond))
	}
	// Output:
	// 131070 rounds, 348ms
	// 32 rounds, 26ms
}

// Two hosts of two behind a switch each, from a text: what an overhead of a microsecond at each end of a message adds.
func ExampleParseGraph() {
	network, err := cost.ParseGraph([]byte(`
		replicas 4
		switches 2             # nodes 4 and 5
		link 0 4 25e9 500ns
		link 1 4 25e9 500ns
		link 2 5 25e9 500ns
		link 3 5 25e9 500ns
		link 4 5 25e9 2us 2    # two cables between the switches
	`))
	if err != nil {
		log.Fatal(err)
	}
	members := []int{0, 1, 2, 3}
	s, err := methods.Build(methods.Spec{Method: methods.RecursiveDoubling, Collective: schedule.AllReduce, Size: 4})
	if err != nil {
		log.Fatal(err)
	}
	for _, overhead := range []time.Duration{0, time.Microsecond} {
		e, err := cost.Model{Network: network, Overhead: overhead}.Price(s, members, 1000)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(e.Rounds, "rounds,", e.Time)
	}
	// Output:
	// 2 rounds, 4.08µs
	// 2 rounds, 8.08µs
}
