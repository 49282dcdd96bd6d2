// Package meeting is what replicas do over memory that all of them reach: they meet at barriers, publish small messages
// on boards, and work on each other's buffers in pieces. It carries out [transport.Boards] and [transport.PeerMemory]
// for whoever the members are.
//
//	Host    what a transport does for one member: it waits, wakes others, ends calls, knows who has left
//	Visit   one member's own view of a meeting, with the algorithms
//	Table   what the members share
//	Seat    a member's place at the table, which only the member writes
//	Hall    what all members write
//	Place   the memory of a member that makes its own seat, where members do: in a segment, say
//
//	            Table of three members
//	┌────────┐ ┌────────┐ ┌────────┐   ┌────────────────────────────┐
//	│ Seat 0 │ │ Seat 1 │ │ Seat 2 │   │ Hall                       │
//	│ notices│ │ notices│ │ notices│   │ who has arrived, pieces    │
//	│ boards │ │ boards │ │ boards │   │ what the last has combined │
//	│ queue  │ │ queue  │ │ queue  │   └────────────────────────────┘
//	└────────┘ └────────┘ └────────┘
//
// Nothing here waits, and nothing here knows where buffers lie: the Host does. A Seat and a Hall are plain bytes in
// which words that others look at are atomic, and there is no pointer to a member's own memory in them.
//
// # Barriers
//
// The barriers of a meeting have numbers, counted by each member for itself. Where every member can have a processor,
// each looks at all the others' seats; else the last to arrive looks for all, and the others wait for its word. The
// first barrier of a Gather or Share compares the calls. Nobody writes a notice or a board that another may still read:
// there are two of each, for operations in turn, and its owner has met the reader at the operation in between.
//
// # Inside
//
// A member that may touch the others' buffers is inside. It says so before it looks for an abort; who aborts looks for
// members inside afterwards. So one of the two sees the other, and a failed call ends when nobody is inside any more.
//
// # Members that make their own seats
//
// A member finds the others' places when they have made them, and waits for that once. What lies there may be written
// over by any process. So a wait is for one number and no greater one, what is read leads to nothing outside, and where
// a wait is long Check compares all that shows with what members may have written. Memory that a member cannot lay open
// is told at the first barrier of a Share, so all leave it alike.
package meeting
