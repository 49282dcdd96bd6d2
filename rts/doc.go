// Package rts splits the variables of a program over its replicas, so that each keeps a part of them: replicated tensor
// sharding, known elsewhere as ZeRO or FSDP.
//
// A variable of n elements over R replicas is kept as R shards of c = ceil(n/R) elements, zeros past n, each in a
// remote buffer of its replica. A replica gathers the whole when it computes with it and gives it up after; gradients
// are reduced straight into shards, and an optimiser works on shards only:
//
//	             replica 0        replica 1        ...
//	remote       shard 0          shard 1               parameters and state of the optimiser
//	               │ load            │
//	               └───── gather ────┘
//	forward      full  ─▶ ...     full  ─▶ ...          given up after use
//	backward     gradient         gradient
//	               ┌ reduce to shard ┐
//	update       shard 0          shard 1               load state, step, store
//
// A [Sharding] says over which replicas, and has the three operations: Gather, Shard and ReduceToShard. A [Variable] is
// kept in a buffer and loaded and stored by the program, or loaded before it and stored after it by itself. A [Trainer]
// builds a whole training step of a model that is given layer by layer, with variables gathered and reduced in
// buckets, ahead of their use if wanted. What all this takes of memory, [Memory] counts.
//
// Where each replica is a process (see [ir.WithJob]), each process has its shards only. Variable.Read is then a
// collective that all processes call. [collective.Job] connects the processes for package checkpoint.
package rts
