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

// IsMessage reports whether a collective in a transport.Call is a message or a call that moves one or two.
func IsMessage(collective uint8) bool { return collective >= Message && collective <= SendRecv }

// The Seq of a message has the mark, then the two replicas, then its number: messages from one replica to another, in
// one group and on one connection, count from 1.
const (
	messageMark  = 1 << 62
	replicaBits  = 14 // as many replicas as a job may have
	messageBits  = 34
	replicaMask  = 1<<replicaBits - 1
	messageSlots = 1<<messageBits - 1
)

// MessageSeq is the Seq of the message from one replica to another that has a number.
func MessageSeq(from, to int, number uint64) uint64 {
	return messageMark | uint64(from)<<(replicaBits+messageBits) | uint64(to)<<messageBits | number&messageSlots
}

// MessageOf takes the Seq of a message apart.
func MessageOf(seq uint64) (from, to int, number uint64) {
	from, to = int(seq>>(replicaBits+messageBits)&replicaMask), int(seq>>messageBits&replicaMask)
	return from, to, seq & messageSlots
}

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
	switch {
	case seq&phaseMark != 0:
	case seq&messageMark != 0:
		return seq & messageSlots, 0
	default:
		return seq, 0
	}
	return seq &^ phaseMark >> phaseBits, seq & (1<<phaseBits - 1)
}

// BarrierRound marks the messages of the barrier before a round.
const BarrierRound = 1 << 31

// WithinReplica marks a collective within the replica, in the Collective of what the flight recorder is given.
// Count is then the number of IPUs, and Seq counts such collectives of the connection.
const WithinReplica = 0x80
