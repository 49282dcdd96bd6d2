package main

import "gogcl.dev/methods/schedule"

// The collectives by name.
const (
	allReduce     = collective(schedule.AllReduce)
	reduceScatter = collective(schedule.ReduceScatter)
	allGather     = collective(schedule.AllGather)
	allToAll      = collective(schedule.AllToAll)
	broadcast     = collective(schedule.Broadcast)
	reduce        = collective(schedule.Reduce)
	gather        = collective(schedule.Gather)
	scatter       = collective(schedule.Scatter)
)

func numCollectives() collective { return collective(len(collectiveNames())) }
