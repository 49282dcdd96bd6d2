package main

import "gogcl.dev/methods/schedule"

// kind is a kind of call.
type kind int

const (
	allReduce kind = iota
	reduceScatter
	allGather
	allToAll
	broadcast
	reduce
	gather
	scatter
	reduceScatterV
	allGatherV
	allToAllV
	gatherV
	scatterV
	mappedScatter
	mappedGather
	execute
	barrier
	numKinds
)

var kindNames = [...]string{
	"AllReduce", "ReduceScatter", "AllGather", "AllToAll", "Broadcast", "Reduce", "Gather", "Scatter",
	"ReduceScatterV", "AllGatherV", "AllToAllV", "GatherV", "ScatterV", "ReduceScatterMapped", "AllGatherMapped", "Execute", "Barrier",
}

func (k kind) String() string { return kindNames[k] }

func (k kind) byCounts() bool { return k >= reduceScatterV && k <= scatterV }

// hasMany reports whether gcl has functions for several operands. Other kinds go by a Batch.
func (k kind) hasMany() bool { return k == allReduce || k == reduceScatter || k == allGather }

func (k kind) combines() bool {
	return k == allReduce || k == reduceScatter || k == reduce || k == reduceScatterV || k == mappedScatter
}

func (k kind) rooted() bool {
	return k == broadcast || k == reduce || k == gather || k == scatter || k == gatherV || k == scatterV
}

func (k kind) collective() schedule.Collective {
	switch k {
	case allReduce:
		return schedule.AllReduce
	case reduceScatter, reduceScatterV, mappedScatter:
		return schedule.ReduceScatter
	case allGather, allGatherV, mappedGather:
		return schedule.AllGather
	case allToAll, allToAllV:
		return schedule.AllToAll
	case broadcast:
		return schedule.Broadcast
	case reduce:
		return schedule.Reduce
	case gather, gatherV:
		return schedule.Gather
	case scatter, scatterV:
		return schedule.Scatter
	}
	return schedule.Barrier
}
