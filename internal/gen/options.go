package main

import (
	"fmt"
	"math/rand/v2"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// randomRules draws the text of a table of rules.
func randomRules(r *rand.Rand) string {
	var b strings.Builder
	for range 1 + r.IntN(6) {
		line := fmt.Sprintf("%v %s %s %v%s\n",
			pick(r, schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather, schedule.AllToAll,
				schedule.Broadcast, schedule.Reduce, schedule.Gather, schedule.Scatter),
			pick(r, "2", "3-5", "2-", "6-17", "1-", "4", "3-"),
			pick(r, "0", "0", "1", "64", "256", "1KiB", "16KiB"),
			methodPool()[r.IntN(len(methodPool())-autos)],
			pick(r, "", "", "/Syncless", "/Syncful"))
		if _, err := methods.ParseRules([]byte(b.String() + line)); err == nil {
			b.WriteString(line)
		}
	}
	return b.String()
}

// randomOptions draws options, and rules for the method Auto.
func randomOptions(r *rand.Rand, topo *topology.Config) (o gcl.Options, rules string) {
	o.Method = methodPool()[r.IntN(len(methodPool()))]
	o.Implementation = pick(r, gcl.AutoImplementation, gcl.AutoImplementation, gcl.Syncless, gcl.Syncful)
	if topo != nil && r.IntN(3) == 0 {
		o.Implementation = gcl.Hybrid
	}
	o.Reproducible = r.IntN(4) == 0
	o.StageFragments = r.IntN(4) == 0
	if r.IntN(4) == 0 {
		o.MaxBytesPerTile = pick(r, 1, 2, 5, 16, 100, 64000)
	}
	if r.IntN(8) == 0 {
		o.MaxBroadcastSize = pick(r, gcl.NoBroadcast, 1, 100, 3000, 1<<20)
	}
	if r.IntN(8) == 0 {
		o.CacheBytes = pick(r, 1, 4096, 1<<20)
	}
	if r.IntN(8) == 0 {
		o.Topology = pick(r, topology.PeripheralRing, topology.RingOnLine, topology.RungRing2, topology.RungRing4)
	}
	if o.Method == methods.Auto && r.IntN(2) == 0 {
		rules = randomRules(r)
	}
	return o, rules
}
