package wire

import (
	"math"

	"gogcl.dev/methods/schedule"
)

// Barrier is the number of a barrier among the collectives in a transport.Call.
const Barrier = uint8(schedule.Barrier)

// Execute is the number of a call that comes with its schedule, of whatever collective that is. The Digest of its
// messages has that of the schedule.
const Execute = uint8(schedule.Custom)

// OwnMethod stands in the Method of a transport.Call for all methods of generators, whose numbers are good in one
// process only. The Digest of the call tells them apart, by their schedules.
const OwnMethod = 0xff

// OwnOperator marks, in the Operator of a transport.Call, an operator of a program's own, whose number is good in one
// process only: beside it stand seven bits of its hash. The Digest of the call has all of them.
const OwnOperator = 0x80

// RootNumber is how a transport.Call holds a root, also one that is about to be refused: as an int32.
func RootNumber(root int) uint32 { return uint32(int32(min(max(root, math.MinInt32), math.MaxInt32))) }

// ManyTensors marks, in the DType of a transport.Call, a collective on several tensors: beside it stands their type,
// or 0 for several types.
const ManyTensors = 0x80

// ByCounts marks, in the DType of a transport.Call, a collective whose parts have lengths by counts. Its Count is that
// of the larger buffer, but of an all-to-all, where each rank has its own, 0.
const ByCounts = 0x40

// DTypeMarks are the marks beside the type in the DType of a transport.Call.
const DTypeMarks = ManyTensors | ByCounts

// The numbers of calls that are no collectives, among the collectives in a transport.Call. Message is one message from
// one replica to another, as its two sides describe it, and in a call without a number any.
const (
	Message uint8 = Execute + 1 + iota
	Send
	Recv
	SendRecv
)

// Kind is a collective in a transport.Call, and Message for each of the calls that move one: the two sides of a message
// make different calls.
func Kind(collective uint8) uint8 {
	if IsMessage(collective) {
		return Message
	}
	return collective
}

// IsMessage reports whether a collective in a transport.Call is a message or a call that moves one or two.
func IsMessage(collective uint8) bool { return collective >= Message && collective <= SendRecv }

// PairID is what a transport.Call and the flight recorder have in place of a group for the messages of a group from one
// replica to another, which are counted by themselves.
func PairID(group uint64, from, to int) uint64 {
	return HashedGroup | FNV(group^FNVOffset, from, to)&^setGroup
}

// Peers is the Root of a transport.Call for a message from one replica to another.
func Peers(from, to int) uint32 { return uint32(from)<<16 | uint32(to)&0xffff }

// PeersOf is the inverse.
func PeersOf(root uint32) (from, to int) { return int(root >> 16), int(root & 0xffff) }

// The Seq of a phase has the mark, then the number of the whole call, then that of the phase, counted from 1. So it
// ascends with the calls, and within a call with its phases, as a transport's history of a group has it.
const (
	phaseMark = 1 << 63
	phaseBits = 16
)

// PhaseSeq is the Seq of a phase of the call that has a number. The calls of the phases are that of the whole but for
// Seq, Group and Method. So whatever replicas disagree on shows in each phase.
func PhaseSeq(number, phase uint64) uint64 { return phaseMark | number<<phaseBits | phase }

// PhaseOf takes a Seq apart. A call that is not a phase of another has phase 0.
func PhaseOf(seq uint64) (number, phase uint64) {
	if seq&phaseMark == 0 {
		return seq, 0
	}
	return seq &^ phaseMark >> phaseBits, seq & (1<<phaseBits - 1)
}

// BarrierRound marks the messages of the barrier before a round.
const BarrierRound = 1 << 31

// WithinReplica marks a collective within the replica, in the Collective of what the flight recorder is given.
// Count is then the number of IPUs, and Seq counts such collectives of the connection.
const WithinReplica = 0x80
