// Command gclperf measures collectives and prints the table that users of nccl-tests know.
//
//	go run ./cmd/gclperf -collective allreduce -n 8
//	go run ./cmd/gclperf -collective all -n 2 -method auto,direct,clockwise_ring -min 8 -max 64MiB -svg perf.svg
//	go run ./cmd/gclperf -collective allreduce -n 8 -json
//
// Sizes are nccl-tests': bytes of the larger of a replica's two buffers, rounded up to whole elements for each replica.
//
//	collective      count (elements)      size                 bus bandwidth = size/time x
//	allreduce       of the buffer         count                2(n-1)/n
//	reducescatter   of a result           n x count            (n-1)/n
//	allgather       of an input           n x count            (n-1)/n
//	alltoall        for each replica      n x count            (n-1)/n
//	broadcast       of the buffer         count                1
//	reduce          of the buffer         count                1
//	gather          of an input           n x count            (n-1)/n
//	scatter         of a result           n x count            (n-1)/n
//
// Calls are issued back to back in batches, all replicas starting a batch together. The time of a batch is that of the
// slowest replica, divided by its calls; p50, p90 and p99 are over the batches, and the time in the table is p50.
// (nccl-tests prints the mean: on a machine that is busy with other things too, the median says more.) With -sync every
// call is preceded by a barrier and timed by itself. With -batch calls are made by a gcl.Batch, which has been put
// together before, in place of calls of gcl.Comm.Do; the table says "by a Batch".
//
// The data differs by replica and index, and is such that every partial result is exact in the element type, so that
// results are compared bit for bit. One call before the timed ones and one after them are checked at every size.
// #wrong counts elements, over all replicas. The timed calls of an in-place reduction work on zeros, since real data
// would grow with each.
//
// The environment variable GCL_OPTIONS (docs/options.md) overrides -method, -implementation and -reproducible, and
// sets what there is no flag for. The table says so, and has the method and implementation that were measured; -svg
// draws only those that were asked for.
//
// Before anything is allocated, what the largest size takes (two buffers for each replica, and what the methods keep of
// scratch memory and copies) is compared with the memory that there is: on Linux MemAvailable and the limits of
// cgroups, elsewhere the address space. Too much is an error, with exit code 2.
//
// The exit code is 0, or 1 when a value was wrong or a collective failed, 2 when the flags are wrong or ask for more
// memory than there is, 130 after an interrupt.
package main
