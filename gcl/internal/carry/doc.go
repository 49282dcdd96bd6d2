// Package carry carries out calls: the only place where a schedule meets bytes.
//
//	Job  ──▶  Way.Perform  ──▶  one of five ways
//	           asks route         Local     nothing to send
//	                              Small     shared.small, packed.small: what everyone publishes on boards
//	                              Memory    shared.run: one pass over the members' memory
//	                              Rounds    stepped: a schedule, round by round, on the members' memory
//	                              Messages  plan: the same schedule by messages
//	           or, by Hybrid      phases    several jobs, each with a route of its own
//
// A Carrier is what one connection of a replica has for that; a Way, how the calls of one Comm go; a Group, among whom.
// Arguments have been checked, turns taken and calls numbered before a job comes here. The package knows no Comm, no
// options and no public operator.
//
// # Words
//
// The parts of buffers, from the largest to the smallest:
//
//	tensor       an operand: an input and an output of the rank's own
//	unit         of one operand in one pass: a whole buffer (all-reduce), a shard (reduce-scatter), a block (all-to-all)
//	chunk        what a schedule moves, by number: chunks.Split says where one begins
//	segment      what goes at a time of one message: Options.MaxBytesPerTile bounds it
//	piece        what one member works on at a time in one pass over peer memory
//
//	one pass over an all-reduce of two tensors by three members
//	          ┌─────────── unit 0 ────────────┐┌── unit 0 ──┐
//	tensors   │ a0  a1  a2  a3  a4  a5  a6  a7││ b0  b1  b2 │
//	pieces    ├─── 0 ────┼─── 1 ────┼─── 2 ───┴┴─┼─── 3 ────┤   whole cache lines, whoever carries them out
//
//	rounds of a schedule in two chunks
//	          ┌─── chunk 0 ───┬─── chunk 1 ───┐
//	tensor a  │ a0  a1  a2  a3│ a4  a5  a6  a7│
//	segments  ├─ 0 ──┼─ 1 ──┼2┼─ 0 ──┼─ 1 ──┼2┤   of one message each
//
//	packed, so that both go in one message a chunk: see the drawing of pack.Layout
//	          ┌──── chunk 0 ─────────┬──── chunk 1 ─────────┐
//	packing   │ a0  a1  a2  a3 │b0 ·│ a4  a5  a6  a7 │b1 b2│
//	          └─ stretch ──────┘└ stretch: of one type
//
//	fragment     the part of one tensor in one chunk of a packing
//	stretch      what lies together of one type in one chunk of a packing
//	extent       a tensor as a layout sees it: type and length
//	slot         scratch memory of a schedule, by number
//	placement    where chunks and slots lie in the buffers of one run
//	run          one execution of a plan on one tensor, or on a packing
//	shipment     the operands of a job on their way into a packing and out of it
package carry
