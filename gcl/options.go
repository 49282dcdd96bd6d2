package gcl

import (
	"fmt"

	"gogcl.dev/methods"
)

// Options say how collectives are carried out. The zero value is a good choice. Every replica of a group must use the same.
type Options struct {
	// Method is how replicas talk. Auto chooses by collective, group size and bytes.
	Method methods.Method

	// Implementation is how the steps of a method are carried out.
	Implementation Implementation

	// Reproducible makes every reduction the left fold of the inputs in rank order, with 16-bit floats kept in float32 until the end:
	// the result's bits then depend on nothing but the inputs and their order. Rings and recursive_doubling pay for it with a chain
	// of ranks; 16-bit data travels as float32, except by direct on peer memory.
	Reproducible bool

	// IPUsPerRank is how many of a replica's IPUs make up one rank of the collectives within a replica, which are the only
	// ones that it concerns; 0 is 1. See ReduceScatterWithinReplica.
	IPUsPerRank int
}

// check returns an *OptionError for a value that is out of range.
func (o Options) check() error {
	if _, err := o.Method.MarshalText(); err != nil {
		return &OptionError{Option: "Method", Value: fmt.Sprint(uint8(o.Method)), Reason: "not a method"}
	}
	if _, err := o.Implementation.MarshalText(); err != nil {
		return &OptionError{Option: "Implementation", Value: fmt.Sprint(uint8(o.Implementation)), Reason: "not an implementation"}
	}
	if o.IPUsPerRank < 0 {
		return &OptionError{Option: "IPUsPerRank", Value: fmt.Sprint(o.IPUsPerRank), Reason: "want 1 or more, or 0 for 1"}
	}
	return nil
}

// hostTuning is what methods.Auto goes by where replicas of one process send messages, and every pair is linked as well as neighbours
// are. The numbers are those at which gclperf -implementation Syncless -method broadcast,direct shows the methods to be equal on
// two cores: 8 KiB of group size x bytes for an all-reduce over 2 to 16 replicas, about 4 MiB for a broadcast.
var hostTuning = methods.Tuning{MaxBroadcastBytes: 8 << 10, MaxBroadcastFromRootBytes: 4 << 20, Direct: true}

// hostLatencyBytes is what a link between replicas in one process carries in the latency of one round, about 1 us at 8 GB/s, for methods.PipelinePieces.
const hostLatencyBytes = 8 << 10
