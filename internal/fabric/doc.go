// Package fabric is a network in memory, for tests of whole jobs within a bubble of testing/synctest: its connections
// wait on channels only, so the bubble's clock runs. It does harm by a seed.
//
//	Fabric ── Process (host, address)  is a netstack.Stack: what a process listens at and dials
//	            │
//	            └── conn ◀── two queues of bytes, with the times of their arrival ──▶ conn
//
// A connection is a stream socket as the kernel has it: what is written waits in a queue of bounded length, Close ends
// both directions, CloseWrite one of them, and whoever writes to a closed end finds ECONNRESET. Bytes that were written
// before a Close arrive: package tcp sees to that over real sockets, and has tests of it.
//
// All chances of a connection are drawn from the seed, its two ends and its number, so they are the same in each run
// though goroutines take turns as they like.
package fabric
