// Package gcl is collective communication between replicas: all-reduce, reduce-scatter, all-gather, all-to-all,
// broadcast, reduce, gather and scatter, over groups, by GCL's methods, on any transport.
//
//	err := gcl.Run(ctx, 8, func(ctx context.Context, c *gcl.Comm) error {
//		grads := step(c.Rank())
//		return gcl.AllReduceInPlace(ctx, c, grads, gcl.Mean)
//	})
//
// # Start here
//
//   - [Run] makes replicas that are goroutines of this process. [RunOrJoin] makes them, or joins a job of processes, by
//     how the program was started.
//   - A [Comm] is a replica's handle on a group of replicas. [Comm.Rank] is its place in the group.
//   - [AllReduce] is a collective: it returns a new slice. [AllReduceTo] writes to one that the caller has, and
//     [AllReduceInPlace] overwrites the input. The other collectives have the same forms, as far as they make sense.
//   - A [Batch] is a call that is made in every step, on one operand or on hundreds of all types.
//
// # Collectives
//
// With G ranks, n elements of input at each, and rank r. The last column counts the elements that a rank sends where
// the method is direct and goes by messages:
//
//	function         result at rank r                               sends
//	AllReduce        op over ranks of data[j], for all j            2n(G-1)/G
//	ReduceScatter    the same for j in [r*c, (r+1)*c), c=ceil(n/G)  n(G-1)/G
//	AllGather        data of rank 0, 1, ..., G-1                    n(G-1)
//	AllToAll         part r of the data of rank 0, 1, ..., G-1      n(G-1)/G
//	Broadcast        data of the root                               up to 2n(G-1)/G, at the root
//	Reduce           at the root the result of AllReduce            up to n, at another rank than the root
//	Gather           at the root the result of AllGather            n, at another rank than the root
//	Scatter          part r of the data of the root                 n(G-1)/G, at the root
//
// In a group of one, every collective is a copy. Each of them has these forms, as far as they make sense:
//
//	form                   what it works on, and where the result goes
//	AllReduce              one slice, to a new one
//	AllReduceTo            to a destination. It allocates nothing in steady state
//	AllReduceInPlace       over the input, likewise
//	AllReduceMany          several slices of one type, which share messages
//	AllReduceTensors       several tensors, of any types
//	AllGatherV             parts of different lengths, given as counts: docs/design/vforms.md
//	AllReduceWithinReplica rows on the IPUs of one replica: docs/design/within-replica.md
//	AllGatherMapped        an array that lies on several IPUs of each replica
//	Comm.Do                a tensor whose type is known only when the program runs
//	Comm.Batch             slices, tensors and parts by counts, put together once for many calls
//
// [Batch] says how: a program puts operands together by [Append], [AppendAll], [AppendV] and methods for tensors, and
// carries them out in every step. They are checked and described once. Every operand is treated as if it were alone,
// and may be empty. A destination shares memory with no operand but its own input.
//
// Beside the collectives:
//
//	Send, Recv, SendRecv   a slice goes from one rank to another; the other ranks have no part
//	Comm.Barrier           waits for all members
//	Comm.Start             queues a function that makes calls, and returns at once
//	NewOperator            an operator of the program's own, which every reduction takes
//	WithMethod             a method of the program's own: docs/design/methods.md
//	Execute                a collective of the program's own, by its schedule
//	Rejoin                 goes on without the replicas that are gone, and with newcomers
//	Comm.Commit            makes a step that is done by all replicas or by none
//
// [Options] say how calls go. [ParseOptions] makes them of GCL's keys and values, and the environment variable
// GCL_OPTIONS overrides what the program says (docs/design/options.md). Package values has collectives on Go values of
// any type, and package ddp reduces gradients while others are computed.
//
// # Replicas
//
// [Run] makes replicas that are goroutines of this process, [RunProcess] and [Join] one replica of a job of processes,
// and [RunOrJoin] either, by how the program was started (docs/design/processes.md). [New] makes a Comm of an endpoint
// of any transport. [Comm.Group] gives the Comm of a part of the replicas.
//
// # Rules for a caller
//
//   - All members of a group make the same calls in the same order, with the same length, dtype, operator, root and
//     options. If they do not, that is an error on all of them, [ErrMismatch], and never a hang. A member that has
//     returned from a call with a root, by counts or of [Execute] before the others came to it gets the error from its
//     next call, or from [Comm.Close], which waits up to a second for that. A member whose call had [Local], which
//     compares nothing, may get none.
//   - The promise is for each connection by itself. Replicas that use two in opposite orders wait until their context
//     ends: see [Comm.Dup].
//   - The first error of a collective on any replica aborts the communicator on all. Only a call with bad arguments
//     leaves it usable, and it counts as a call: the peers whose call was good find the mismatch.
//   - Buffers belong to the library during a call, and are the caller's again when it has returned, whatever it
//     returned. Results that are returned are new memory, the caller's own.
//   - Errors are [ErrMismatch], [ErrAborted], [ErrClosed] and [*PeerError], for errors.Is and errors.As. Any other is
//     about the arguments (a length, an overlap, a root, an operator that does not take the type, a nil context), or
//     about a method of the program's own whose schedule does not prove: nothing was sent.
//
// # Who was where
//
// [Comm.Named] names what a call is for. [Dump] prints, for the error of a collective, what every replica of the
// process was doing: a flight recorder keeps the last 1,024 calls of each connection. [Comm.Dump] does so at any time.
// The error of a call whose context ends says which members had not come to it, and what each of them was doing. A
// [Trace] is told of calls, methods, rounds and transfers as they happen (docs/design/tracing.md).
//
// # Bits
//
// With the same inputs, group, method, implementation and options the result has the same bits on every replica and
// every run. With Options.Reproducible it has the same bits with every method, on every transport
// (docs/design/determinism.md). Of the method native that is for the transport's engine to say (docs/design/mpi.md).
//
// # Further
//
// Pages named docs/*.md are in the repository of this module. A schedule (package [gogcl.dev/methods]) meets bytes in
// gcl/internal/carry, whose doc.go has the words for parts of buffers, with drawings. The one algorithm there is direct
// on peer memory, which needs no schedule (docs/design/peer-memory.md). docs/design/architecture.md is the map, and
// docs/from-nccl.md and its like have the names of other libraries beside those here.
package gcl
