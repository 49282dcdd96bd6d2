package transport

import "context"

// Memory is what a replica lays open to its peers between Meet and Part. The two lists are laid open as the buffers in
// them are: nobody changes them before Part.
type Memory struct {
	In, Out, Scratch []byte
	Ins, Outs        [][]byte // where a call works on several buffers at once
}

// ArgumentError says that the arguments of a call of PeerMemory break the rules, whatever the peers do. Nothing was
// published, and the endpoint stays usable.
type ArgumentError struct {
	Reason string
}

func (e *ArgumentError) Error() string { return "peer memory: " + e.Reason }

// Combiner reduces small messages for all members at once.
type Combiner interface {
	// Combine computes the result of all, which are in the order of the members, into dst, of the same length. It runs
	// on the goroutine of one member.
	Combine(dst []byte, all [][]byte)
}

// Worker carries out a piece of what the members of a meeting do together.
type Worker interface {
	// Piece carries out piece i, of some ten microseconds, on the memory of all, which is in the order of the members.
	// It runs on the goroutine of any one member; pieces run at the same time, so no two may touch the same bytes
	// unless all of them only read.
	Piece(all []Memory, i int)
}

// PeerMemory is what an Endpoint may offer beside Exchange when its replicas share an address space: the members of a
// group meet at a barrier, lay their buffers open, read and write each other's, and part at another.
//
//	replica 0        replica 1
//	Meet ──────┬───── Meet          everyone's call is compared, nothing has been touched
//	  reads and writes              each replica's share, in pieces; Err between them
//	Sync ──────┼───── Sync          as often as there are rounds
//	Part ──────┴───── Part          the buffers are their owners' again
//
// All members make the same calls in the same order. One call at a time on an Endpoint, Exchange included. An error
// aborts the endpoint everywhere, and is returned when no peer can touch the caller's memory any more (but see
// ArgumentError and ErrBusy). After an error the caller does not touch the peers' memory either. members are replica
// ids in the order of their ranks, the caller among them; a group, by its number in the call, has the same members each
// time, and the slice is not changed. In steady state nothing is allocated.
type PeerMemory interface {
	Endpoint

	// Meet lays mine open and returns when all members have met, with the memory of each, in their order; it is good
	// until Part. Replicas that are in another call get a *MismatchError before anything is read, or a *DeadlockError
	// when they wait for each other in different groups. After Meet has succeeded, the caller must call Part, whatever
	// happens, and until then must not call Close.
	Meet(ctx context.Context, call Call, members []int, mine Memory) ([]Memory, error)

	// Err says why the caller should hasten to Part: the endpoint is aborted. It is cheap; call it between pieces of
	// some ten microseconds.
	Err() error

	// Sync returns when all members have called it.
	Sync(ctx context.Context) error

	// Part returns when all members have called it.
	Part(ctx context.Context) error

	// Share is a Meet, pieces 0 to pieces-1 of work, and a Part: each piece is carried out by one member, by its own
	// Worker. Which one is the endpoint's affair; a member that has no processor need not take part. It returns when
	// all pieces are done. All members give the same number of pieces.
	Share(ctx context.Context, call Call, members []int, mine Memory, pieces int, w Worker) error

	// Gather is for messages of at most SmallLimit bytes: it publishes a copy of mine, of size bytes or none, and
	// returns when all members have done so, after one barrier and without Part. all has size bytes of each member in
	// their order, unspecified for those that published nothing. With a Combiner, the endpoint may have one member
	// combine them for all: then combined is the result and all is nil for those who passed one. A Combiner that panics
	// aborts the endpoint. Both results are only to be read, and good until the next call on the endpoint.
	Gather(ctx context.Context, call Call, members []int, mine []byte, size int, c Combiner) (all [][]byte, combined []byte, err error)

	// Broadcast copies buf of the member with index root into the others' buf, which is as long, at most SmallLimit
	// bytes. The root does not wait until the others have it, but for a bounded number of broadcasts. So a member that
	// is in another call, or leaves, may show at the root no sooner than at a later call on peer memory, or at Close,
	// in a *MismatchError, an *UnmatchedError or a *ClosedError. A member that waits in another call of the group gets
	// a *MismatchError, whether the root has closed since or not.
	Broadcast(ctx context.Context, call Call, members []int, root int, buf []byte) error

	// SmallLimit is the greatest size that Gather and Broadcast take.
	SmallLimit() int
}
