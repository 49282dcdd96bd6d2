// Package rounds carries out schedules: the only place where a schedule meets bytes. A round is what a schedule has in
// flight together.
//
//	Programs   the programs of all ranks: what a method says
//	Plan       one rank's, with tags and members: round by round as messages
//	MemoryPlan the same schedule on the members' memory, as a Worker of a Share
//	Set        the plans of all ranks, which the replicas of a process share
//	Given      the plans of a schedule that a call comes with
//	Run        one execution on buffers: of an operand, or of a packing
//	Runner     one connection's end of the transport, with the memory that rounds need
//
// It knows no collective's operands, no operator and no route. The words for parts of buffers are in package carry.
package rounds
