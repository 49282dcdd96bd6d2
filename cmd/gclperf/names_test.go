package main

import "gogcl.dev/methods/schedule"

// The collectives by name.
const (
	allReduce     = collective(schedule.AllReduce)
	reduceScatter = collective(schedule.ReduceScatter)
	allGather     = collective(schedule.AllGather)
	allToAll      = collective(schedule.AllToAll)
	broadcast     = collective(schedule.Broadcast)
)

func numCollectives() collective { return collective(len(collectiveNames())) }
