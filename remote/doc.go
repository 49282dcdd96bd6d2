// Package remote keeps tensors outside the memory that replicas calculate in.
//
// A remote buffer is a row of slots, its entries, for tensors of one dtype and shape. A program that has more
// variables, or more intermediate results, than it wants to hold loads an entry when it needs it and stores what has
// become of it:
//
//	                 buffer "w", entries of float32 (2, 3)
//
//	replica 0   |  entry 0  |  entry 1  |  entry 2  |      a store changes the
//	replica 1   |  entry 0  |  entry 1  |  entry 2  |      entry of one replica
//	                             |  ^
//	                        load v  | store
//	                       a tensor of the replica
//
// Every replica has entries of its own. Where each replica is a process (see ir.WithJob), each process has those of its
// replica. One that was never stored reads as zeros. Where entries are kept is up to a [Storage]: on the heap
// ([Memory]), or in files that hold more than the machine has memory and outlive the process ([Dir]). What variables
// begin with may be larger than memory too: [FirstValue] makes it shard by shard.
//
//	entries, err := remote.Dir("/data/run7").Open(remote.Spec{
//		Buffer: "w", Replica: 0, DType: tensor.F32, Shape: tensor.Shape{2, 3}, Entries: 3,
//	})
//	lost := entries.Lost() // what a crash of the last run has cost
//	err = entries.Load(1, x.Bytes())
//
// # A crash
//
// In a file each entry has a word, which says that it was never stored, is being stored, or is there and has this
// checksum. It is never zero, so that zeros on a disk that has lost something are not taken for an entry that was never
// stored:
//
//	         word                   bytes of the entry
//	         there, checksum of a   a a a a a a a a
//	step 1   being stored           a a a a a a a a
//	step 2   being stored           b b b b a a a a
//	step 3   there, checksum of b   b b b b b b b b
//
// Whoever is killed leaves the file as it was between two steps, because the kernel keeps what a process has written:
// the entry is the old one, the new one, or known to be lost. What a loss of power leaves has no order, and there the
// checksum decides. [Dir] says what holds.
package remote
