// Package carry carries out calls.
//
//	job.Job  ──▶  Caller.Perform  ──▶  one of six ways
//	               asks route         Local     nothing to send
//	                                  Small     onepass: what everyone publishes on boards
//	                                  Memory    onepass: one pass over the members' memory
//	                                  Rounds    rounds.MemoryPlan: a schedule, round by round, on the members' memory
//	                                  Messages  rounds.Plan: the same schedule by messages
//	                                  Engine    byEngine: a collective of the transport's own, one for each operand
//	               or, by Hybrid      phases    several jobs, each with a route of its own
//
// Its rooms are the packages below it. Each knows those before it only: opened, rounds, job, onepass, phases, carry.
// Memory and Rounds compare the members' buffers with what the call wants before they go by them: see opened.
//
// A Carrier is what one connection of a replica has for that; a Caller, how the calls of one Comm go; a Group, among
// whom. Arguments have been checked, turns taken and calls numbered before a job comes here. The package knows no Comm,
// no options and no public operator.
//
// # Words
//
// The parts of buffers:
//
//	operand      a tensor or a slice: an input and an output of the rank's own
//	shard        the part of an operand that belongs to one rank, as of a reduce-scatter's output
//	block        what one rank has for another in an all-to-all
//	unit         of an operand in one pass: a whole buffer (all-reduce), a shard (reduce-scatter), a block (all-to-all)
//	piece        what one member works on at a time in one pass, of all members' buffers
//	chunk        what a schedule moves, by number: chunks.Split says where one begins
//	segment      what goes at a time of one message: Options.MaxBytesPerTile bounds it
//	window       the segments of one message that go in one Exchange
//	part         the shard of a rank, or the block of two, where these differ in length: see pack.Parts
//
//	one pass over an all-reduce of two operands by two members
//	          ┌─────────── unit ──────────────┐┌─── unit ───┐
//	operands  │ a0  a1  a2  a3  a4  a5  a6  a7││ b0  b1  b2 │
//	pieces    ├─── 0 ────┼─── 1 ────┼─── 2 ───┴┴─┼─── 3 ────┤   whole cache lines, whoever carries them out
//
//	rounds of a schedule in two chunks
//	          ┌─── chunk 0 ───┬─── chunk 1 ───┐
//	operand a │ a0  a1  a2  a3│ a4  a5  a6  a7│
//	segments  ├─ 0 ──┼─ 1 ──┼2┼─ 0 ──┼─ 1 ──┼2┤                  of one message for each chunk
//
//	packed, so that several operands go in one message for each chunk: see pack.Layout
//	          ┌─────── chunk 0 ──────┬─────── chunk 1 ──────┐
//	packing   │ a0  a1  a2  a3 │ b0 ·│ a4  a5  a6  a7 │ b1 b2│
//	          └─ fragment of a ┴ of b┴─ fragment of a ┴ of b┘
//
//	a strided message of chunks 1 and 3
//	          ┌─ 0 ─┬─ 1 ─┬─ 2 ─┬─ 3 ─┐
//	operand   │     │ a b │     │ c d │
//	parcel          │ a b │ c d │                                in scratch memory, at the sender and the receiver
//
//	fragment     the part of one operand in one chunk of a packing
//	stretch      what lies together of one type in one chunk of a packing
//	extent       an operand as a layout sees it: type and length
//	slot         scratch memory of a schedule, by number
//	placement    where chunks and slots lie in the buffers of one run
//	parcel       a strided message on its way: its runs of chunks side by side in scratch memory
//	chain        a receive of a strided message, or the links of a fold of such
//	strip        a piece of a chain on peer memory, where it is read from where it lies
//	run          one execution of a plan on one operand, or on a packing
//	shipment     the operands of a job on their way into a packing and out of it
package carry
