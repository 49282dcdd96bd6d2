// Package segment shares memory between the processes of a host. It knows no replicas' protocols and no sockets: who
// uses it passes descriptors on, and says who rings whom.
//
// Each process has one segment, a file in memory (memfd) that has no name. The others map it whole. The file is sparse:
// it takes as much memory as has been touched. It is sealed against growing and shrinking before anybody else has it:
// no process can take away pages that another one reads. When the last process has ended nothing is left of it.
//
//	offset      bytes
//	0           4 Ki     header: magic, version, rank, length of the segment, of a ring, of the pages
//	4 Ki        512 Ki   directory: entries of a key and an offset
//	1 Mi                 blocks, whole pages of 4 KiB
//	2 Mi * n    Pages    pages of the program
//
// # Blocks
//
// Only the owner of a segment allocates in it. It enters a block in its directory under a key, the offset first and the
// key last, and the others look the key up. So there is no lock between processes, and none that a death leaves locked.
//
// # Rings
//
// A ring carries bytes from its owner, the [Sender], to one other process, the [Receiver]. It is a block:
//
//	0           wrote, ended, wants   words of the sender
//	64          read, done            words of the receiver
//	4 Ki        the bytes, a power of two
//
// Each side keeps its own index for itself and never reads it back. It compares the other side's with its own at each
// look: an index that makes no sense is an error. A receiver that will not look at the ring again says so by done,
// which is then the ring's key. Until then the owner keeps the block.
//
// # Pages of the program
//
// A program has the others reach memory of Go's heap: [Segment.OpenPages] maps a part of the file, which holds zeros,
// over pages that the heap has handed out. To the program and to Go's runtime they are the same pages as before.
//
//	this process: heap       its file              another process: the file, mapped
//
//	 ├──────────┤            ├─────────┤           ├─────────┤
//	 │ object   │            │ blocks  │           │ blocks  │
//	 │  pages ──┼── mapped ──┤         │           │         │
//	 │          │    over    │ pages   ├───────────┤ pages   │
//	 ├──────────┤            ├─────────┤           ├─────────┤
//
// [Segment.Offset] says where in the file a slice lies, and [Peer.Bytes] finds it there. Before the heap uses an
// object's memory again it must be private once more: a finalizer of the object calls [Segment.ShutPages].
// docs/design/alloc.md says why Go's runtime does not mind.
//
// # What is not trusted
//
// Any process of the job may overwrite a segment at any time. Numbers that are read from it are compared with its
// bounds at each look, so the worst that comes of it is wrong bytes, an error, or a wait for bytes that never come.
package segment
