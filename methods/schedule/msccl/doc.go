// Package msccl reads and writes collective algorithms as XML, in the form that msccl-tools emits and the runtimes
// MSCCL and RCCL load.
//
//	<algo name="pair" proto="Simple" nchannels="1" nchunksperloop="2" ngpus="2" coll="allreduce" inplace="1">
//	  <gpu id="0" i_chunks="2" o_chunks="0" s_chunks="0">
//	    <tb id="0" send="1" recv="1" chan="0">
//	      <step s="0" type="s"   srcbuf="i" srcoff="1" dstbuf="i" dstoff="1" cnt="1" depid="-1" deps="-1" hasdep="0"/>
//	      <step s="1" type="rrc" srcbuf="i" srcoff="0" dstbuf="i" dstoff="0" cnt="1" depid="-1" deps="-1" hasdep="0"/>
//	      ...
//
// A gpu is a rank. Its thread blocks (tb) run beside each other. Each carries out its steps in order, sends to at most
// one peer and receives from at most one, over a channel. A step with depid and deps waits until step deps of thread
// block depid of its gpu is done; hasdep says that some step waits for this one.
//
//	type   what it does                                              uses
//	s      send                                                      src
//	r      dst = received                                            dst
//	rcs    dst = received, and send that                             dst
//	rrc    dst = src op received                                     src dst
//	rrs    send src op received                                      src
//	rrcs   dst = src op received, and send that                      src dst
//	cpy    dst = src                                                 src dst
//	re     dst = dst op src                                          src dst
//	nop    nothing; it is there for a second dependency of the next step
//
// src and dst are places of the gpu itself: a buffer (i, o or s: input, output, scratch), the first chunk, and cnt
// chunks. A step ignores the place that it does not use; msccl-tools puts that of the peer there.
//
// All chunks of the format have one length. The larger of a rank's buffers has nchunksperloop of them, which are the
// chunks of the [schedule.Schedule]. Where one buffer is the larger (allgather, reduce_scatter) chunk c of the smaller
// one is chunk rank*m+c of the schedule.
//
//	coll             of a schedule
//	allreduce        all-reduce
//	reduce_scatter   reduce-scatter
//	allgather        all-gather
//	alltoall         all-to-all
//
// # Reading
//
// [Read] makes rounds of the steps. The i-th send from a gpu to another over a channel meets the i-th receive there. In
// the format a send is over once its data is buffered; in a schedule it is over when its receive is. So both go into
// the round of the receive. Data that the sender overwrites before that is copied to scratch first. A step goes into
// the earliest round that the data allows: after what it reads was written, and after what it overwrites was read.
// Receives that fold into one place are one fold of a round where their data is there.
//
// With inplace="1" the input and the output are one memory. Then, and wherever a file overwrites its input, what is
// written lies in the Output, or in Scratch if the Output has no room for it. With outofplace="1" too, the file is read
// as one out of place. [schedule.Check] proves what Read returns for both cases, as it does for every schedule.
//
// [Write] is the way back. A schedule that goes there and back does the same, in rounds that may be fewer.
package msccl
