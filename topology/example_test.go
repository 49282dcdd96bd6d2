package topology_test

import (
	"fmt"

	"gogcl.dev/topology"
)

func Example() {
	ladder, err := topology.New(topology.Config{
		Shape:          topology.OpenLadder,
		Replicas:       []int{4, 4}, // two ladders, joined by GW-Links
		IPUsPerReplica: 2,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(ladder)
	members := []int{0, 1, 2, 3, 4, 5, 6, 7}
	rings, err := ladder.Rings(topology.Auto, members)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rings.Name, rings.First)
	for _, peer := range []int{1, 2, 4} {
		link := ladder.ReplicaLink(0, peer)
		fmt.Printf("0 to %d: %d of %v\n", peer, link.Count, link.Kind)
	}
	// Output:
	// open ladder of 4+4 replicas, 2 IPUs each
	// ring-on-line [0 2 3 1 5 7 6 4]
	// 0 to 1: 4 of ipu-link
	// 0 to 2: 0 of no link
	// 0 to 4: 4 of gw-link
}

func ExampleTopology_Rings() {
	host, err := topology.New(topology.Config{Replicas: []int{6}})
	if err != nil {
		fmt.Println(err)
		return
	}
	rings, err := host.Rings(topology.Auto, []int{0, 1, 2, 3, 4, 5})
	fmt.Println(rings.First, rings.Second, rings.Disjoint, err)
	_, err = host.Rings(topology.RungRing4, []int{0, 1})
	fmt.Println(err)
	// Output:
	// [0 1 2 3 4 5] [0 4 1 3 5 2] true <nil>
	// topology: ring rung-ring-4 is for replicas of 4 IPUs, these have 1
}

func ExampleParseRing() {
	_, err := topology.ParseRing("moebius")
	fmt.Println(err)
	// Output: topology: unknown ring "moebius", the closest is auto; want one of auto, rung-ring-2, rung-ring-4, rung-ring-8, ring-on-line, peripheral-ring
}
