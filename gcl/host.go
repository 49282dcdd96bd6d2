package gcl

import (
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// This file holds what is true of replicas that are goroutines of one process, and of no other transport.

// hostTuning is what methods.Auto goes by where replicas of one process send messages, and every pair is linked as
// well as neighbours are. The numbers are those at which gclperf -implementation Syncless -method broadcast,direct
// shows the methods to be equal on two cores: 8 KiB of group size x bytes for an all-reduce over 2 to 16 replicas,
// about 4 MiB for a broadcast.
var hostTuning = methods.Tuning{MaxBroadcastBytes: 8 << 10, MaxBroadcastFromRootBytes: 4 << 20, Direct: true}

// hostLatencyBytes is what a link between replicas in one process carries in the latency of one round, about 1 us at 8
// GB/s, for methods.Spec.Pipelined.
const hostLatencyBytes = 8 << 10

// hostLink is what gcl takes a link between replicas in one process to be: see hostLatencyBytes, which is their
// product.
var hostLink = topology.Speed{BytesPerSecond: 8e9, Latency: time.Microsecond}
