package phases

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
)

// Way is who crosses between domains.
type Way uint8

// The ways.
const (
	ByAll     Way = iota // all members of a domain, each with a part of the data
	ByLeaders            // one of each domain, with all of its data
	ways
)

// String returns words for the way: "all members" or "leaders".
func (w Way) String() string { return [...]string{ByAll: "all members", ByLeaders: "leaders"}[w] }

// Other is the other way.
func (w Way) Other() Way { return ByLeaders - w }

// phasing is how a collective goes in phases, the one way.
type phasing struct {
	perform func(p *Call, ctx context.Context) error
	priced  func(g *Grid, n int) []Phase // of a call on n elements in the larger buffer
}

// Phase is what package price knows of a phase, or of several alike. The root of one with a root is at the place, or in
// the domain, of the call's, which of a call without one is rank 0.
type Phase struct {
	Across     bool // domains; else inside
	Collective schedule.Collective
	Elements   int // in the larger buffer
	Times      int
}

// phasingOf is the table of phases. A collective without a row does not go in phases, and one without a phasing does
// not go that way. The table is no variable, since the phases are calls that look into it.
func phasingOf(c schedule.Collective, w Way) phasing {
	rows := [...][ways]phasing{
		schedule.AllReduce: {
			ByAll:     {(*Call).allReduce, allReducePhases},
			ByLeaders: {(*Call).leadAllReduce, leadAllReducePhases},
		},
		schedule.ReduceScatter: {
			ByAll:     {(*Call).reduceScatter, reduceScatterPhases},
			ByLeaders: {(*Call).leadReduceScatter, leadReduceScatterPhases},
		},
		schedule.AllGather: {
			ByAll:     {(*Call).allGather, allGatherPhases},
			ByLeaders: {(*Call).leadAllGather, leadAllGatherPhases},
		},
		schedule.AllToAll: {ByAll: {(*Call).allToAll, allToAllPhases}},
		schedule.Broadcast: {
			ByAll:     {(*Call).broadcast, broadcastPhases},
			ByLeaders: {(*Call).leadBroadcast, leadBroadcastPhases},
		},
		schedule.Barrier: { // an all-reduce of nothing
			ByAll:     {(*Call).allReduce, allReducePhases},
			ByLeaders: {(*Call).leadAllReduce, leadAllReducePhases},
		},
	}
	if int(c) < len(rows) {
		return rows[c][w]
	}
	return phasing{}
}

// Usual is the way of a collective where no price decides, and whether there is another.
func Usual(c schedule.Collective) (w Way, another bool) {
	if c == schedule.Broadcast {
		w = ByLeaders // in fewer phases
	}
	return w, phasingOf(c, w.Other()).perform != nil
}

// Of are the phases of a call on n elements in the larger buffer that goes a way, that across first; nil: there are
// none.
func (g *Grid) Of(c schedule.Collective, w Way, n int) []Phase {
	if priced := phasingOf(c, w).priced; priced != nil {
		return priced(g, n)
	}
	return nil
}

func allReducePhases(g *Grid, n int) []Phase {
	shard := chunks.PerRank(n, g.Each)
	return []Phase{
		{true, schedule.AllReduce, shard, 1},
		{false, schedule.ReduceScatter, n, 1},
		{false, schedule.AllGather, shard * g.Each, 1},
	}
}

func leadAllReducePhases(_ *Grid, n int) []Phase {
	return []Phase{
		{true, schedule.AllReduce, n, 1},
		{false, schedule.Reduce, n, 1},
		{false, schedule.Broadcast, n, 1},
	}
}

func reduceScatterPhases(g *Grid, n int) []Phase {
	shard, times := chunks.PerRank(n, g.Domains*g.Each), 1
	for d := 1; d < g.Domains && g.Rank(d, 0)*shard < n; d++ {
		times++
	}
	return []Phase{
		{true, schedule.ReduceScatter, shard * g.Domains, 1},
		{false, schedule.ReduceScatter, shard * g.Each, times},
	}
}

func leadReduceScatterPhases(g *Grid, n int) []Phase {
	shard := chunks.PerRank(n, g.Domains*g.Each)
	return []Phase{
		{true, schedule.ReduceScatter, shard * g.Each * g.Domains, 1},
		{false, schedule.Reduce, n, 1},
		{false, schedule.Scatter, shard * g.Each, 1},
	}
}

func allGatherPhases(g *Grid, n int) []Phase {
	return []Phase{
		{true, schedule.AllGather, n / g.Each, 1},
		{false, schedule.AllGather, n / g.Domains, g.Domains},
	}
}

func leadAllGatherPhases(g *Grid, n int) []Phase {
	return []Phase{
		{true, schedule.AllGather, n, 1},
		{false, schedule.Gather, n / g.Domains, 1},
		{false, schedule.Broadcast, n, 1},
	}
}

func allToAllPhases(g *Grid, n int) []Phase {
	return []Phase{
		{true, schedule.AllToAll, n, 1},
		{false, schedule.AllToAll, n / g.Domains, g.Domains},
	}
}

func broadcastPhases(g *Grid, n int) []Phase {
	shard := chunks.PerRank(n, g.Each)
	return []Phase{
		{true, schedule.Broadcast, shard, 1},
		{false, schedule.Scatter, shard * g.Each, 1},
		{false, schedule.AllGather, shard * g.Each, 1},
	}
}

func leadBroadcastPhases(_ *Grid, n int) []Phase {
	return []Phase{{true, schedule.Broadcast, n, 1}, {false, schedule.Broadcast, n, 1}}
}

// Collectives has a bit for each collective that goes in phases: see route.Setting.Phased.
func Collectives() (bits uint32) {
	for _, c := range append(schedule.Collectives(), schedule.Barrier) {
		if phasingOf(c, ByAll).perform != nil {
			bits |= 1 << c
		}
	}
	return bits
}
