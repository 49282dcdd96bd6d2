package phases

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/methods/schedule"
)

// phasing is how a collective goes in phases.
type phasing struct {
	perform func(p *Call, ctx context.Context) error
	priced  func(n, domains, each int) []Phase // of a call on n elements in the larger buffer
}

// Phase is what package price knows of a phase, or of several alike.
type Phase struct {
	Across     bool // domains; else inside
	Collective schedule.Collective
	Elements   int // in the larger buffer
	Times      int
}

// phasingOf is the table of phases. A collective without a row does not go in phases. The table is no variable, since
// the phases are calls that look into it.
func phasingOf(c schedule.Collective) phasing {
	rows := [...]phasing{
		schedule.AllReduce:     {(*Call).allReduce, allReducePhases},
		schedule.ReduceScatter: {(*Call).reduceScatter, reduceScatterPhases},
		schedule.AllGather:     {(*Call).allGather, allGatherPhases},
		schedule.AllToAll:      {(*Call).allToAll, allToAllPhases},
		schedule.Broadcast:     {(*Call).broadcast, broadcastPhases},
		schedule.Barrier:       {(*Call).allReduce, allReducePhases}, // of nothing
	}
	if int(c) < len(rows) {
		return rows[c]
	}
	return phasing{}
}

// Of are the phases of a call on n elements in the larger buffer, that across first; nil: there are none.
func (g Grid) Of(c schedule.Collective, n int) []Phase {
	if priced := phasingOf(c).priced; priced != nil {
		return priced(n, g.Domains, g.Each)
	}
	return nil
}

func allReducePhases(n, _, each int) []Phase {
	shard := chunks.PerRank(n, each)
	return []Phase{
		{true, schedule.AllReduce, shard, 1},
		{false, schedule.ReduceScatter, n, 1},
		{false, schedule.AllGather, shard * each, 1},
	}
}

func reduceScatterPhases(n, domains, each int) []Phase {
	shard, times := chunks.PerRank(n, domains*each), 1
	if n > 0 {
		times = (n + shard*each - 1) / (shard * each)
	}
	return []Phase{
		{true, schedule.ReduceScatter, shard * domains, 1},
		{false, schedule.ReduceScatter, shard * each, times},
	}
}

func allGatherPhases(n, domains, each int) []Phase {
	return []Phase{
		{true, schedule.AllGather, n / each, 1},
		{false, schedule.AllGather, n / domains, domains},
	}
}

func allToAllPhases(n, domains, _ int) []Phase {
	return []Phase{
		{true, schedule.AllToAll, n, 1},
		{false, schedule.AllToAll, n / domains, domains},
	}
}

func broadcastPhases(n, _, _ int) []Phase {
	return []Phase{{true, schedule.Broadcast, n, 1}, {false, schedule.Broadcast, n, 1}}
}

// Collectives has a bit for each collective that goes in phases: see route.Setting.Phased.
func Collectives() (bits uint32) {
	for _, c := range append(schedule.Collectives(), schedule.Barrier) {
		if phasingOf(c).perform != nil {
			bits |= 1 << c
		}
	}
	return bits
}
