package transport

import (
	"context"
	"errors"
)

// Memory is what a replica lays open to its peers during Share. The two lists are laid open as the buffers in them are:
// nobody changes them before Share returns.
type Memory struct {
	In, Out, Scratch []byte
	Ins, Outs        [][]byte // where a call works on several buffers at once
}

// ErrNotShared says that a buffer of some member cannot be laid open to the others. Share alone returns it, as it is,
// to all members. Nothing was touched, and the endpoint stays usable: the call may go by messages, as another call of
// the same group and number.
var ErrNotShared = errors.New("a member's buffers cannot be laid open to the others")

// ArgumentError says that the arguments of a call of PeerMemory or Boards break the rules, whatever the peers do.
// Nothing was published, and the endpoint stays usable.
type ArgumentError struct {
	Reason string
}

func (e *ArgumentError) Error() string { return "bad arguments: " + e.Reason }

// Worker carries out a piece of what the members of a Share do together.
type Worker interface {
	// Piece carries out piece i of a round on the memory of all, which is in the order of the members. It runs on the
	// goroutine of one member. The pieces of a round run at the same time, so no two may touch the same bytes unless
	// all of them only read. A piece of more than some ten microseconds looks at Endpoint.Err, and at the context that
	// its member has given Share, between parts of that length, and returns early when there is an error.
	//
	// The lists and lengths in all are the same in all pieces that a member carries out of a Share. They are what the
	// members say, and one in another process may say anything: a Worker compares them with what the call wants. If it
	// finds a difference, or for another reason cannot do the piece, it calls Endpoint.Abort and returns. Then Share
	// fails at all members.
	Piece(all []Memory, round, i int)
}

// PeerMemory is what an Endpoint may offer beside Exchange when replicas reach each other's memory: the members of a
// group meet, lay their buffers open, read and write each other's in rounds, and part.
//
//	member 0         member 1
//	Share ─────┬───── Share         everyone's call is compared, nothing has been touched
//	 piece 0   │    piece 1         round 0: reads and writes
//	 ──────────┼───────────         a barrier
//	 piece 0   │    piece 1         round 1
//	 ──────────┼───────────         a barrier: the buffers are their owners' again
//
// All members make the same calls in the same order. One call at a time on an Endpoint, Exchange and Boards included.
// An error aborts the endpoint everywhere, and is returned when no peer can touch the caller's memory any more (but see
// ArgumentError, ErrNotShared and ErrBusy). members are replica ids in the order of their ranks, the caller among them;
// a group, by its number in the call, has the same members each time, and the slice is not changed. In steady state
// nothing is allocated.
type PeerMemory interface {
	Endpoint

	// Reaches reports whether these members, as in Share, can Share. All of them get the same answer, at all times.
	Reaches(members []int) bool

	// Share lays mine open and has the work done: rounds[t] pieces in round t, a barrier, the next round. It returns
	// when all pieces of all rounds are done. In a call of one round a piece is carried out by any one member, by its
	// own Worker: whichever is free; a member that has no processor need not take part. In a call of several rounds
	// piece i is that of the member with index i, and there are at most as many as members. A round of no pieces takes
	// no barrier: rounds of n and 0 are one round in which piece i is that of member i. All members give the same
	// rounds, which the caller sees to: they are not compared. The slice is only read, until Share returns.
	//
	// Replicas that are in another call get a *MismatchError before anything is read, or a *DeadlockError when they
	// wait for each other in different groups. A Worker that panics aborts the endpoint.
	Share(ctx context.Context, call Call, members []int, mine Memory, rounds []int, w Worker) error
}

// Opener is what an Endpoint may offer beside PeerMemory: pages of the program become memory that peers reach. Share
// then lays open buffers that lie in open pages, each within the pages of one OpenPages, and no others: it returns
// ErrNotShared for them. A buffer of no bytes can always be laid open. Without an Opener an endpoint lays any memory
// open.
//
//	object of Go's heap   ├──────────────────────────────────────┤
//	pages                       ├─────────┼─────────┤                OpenPages
//	buffers                        ├──────────┤                      can be laid open
//	                         ├──────┤             ├─────┤            cannot
//
// Pages are those of the replica: an endpoint and its Dups lay open what any of them has opened. Both methods may be
// called at any time, on any goroutine.
type Opener interface {
	Endpoint

	// OpenPages has pages lie where the other replicas reach them. They begin with a page (of os.Getpagesize bytes),
	// are whole pages of one object of Go's heap, and none of them is open. They stay at their addresses, the caller's
	// to read and write, and are zeros afterwards. Close leaves them as they are. Errors: pages that are no such pages,
	// an endpoint that is closed, memory that the system does not give. Then none is open, and what was in them may be
	// lost.
	OpenPages(pages []byte) error

	// ShutPages undoes OpenPages, of the same pages, on the same endpoint or another lane of it, also after Close: they
	// are ordinary memory again, and what was in them is lost. No call uses them.
	ShutPages(pages []byte)
}
