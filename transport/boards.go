package transport

import "context"

// Combiner reduces small messages for all members at once.
type Combiner interface {
	// Combine computes the result of all, which are in the order of the members, into dst, of the same length. It runs
	// on the goroutine of one member.
	Combine(dst []byte, all [][]byte)
}

// Boards is what an Endpoint may offer beside Exchange for small messages: members publish a copy for the others to
// read. Its rules about calls, members and errors are those of PeerMemory, but that no buffer is laid open: nothing
// returns ErrNotShared. Package gcl uses boards beside peer memory, for the groups that have both.
type Boards interface {
	Endpoint

	// Reaches reports whether these members can read each other's boards. All of them get the same answer, at all
	// times; of an endpoint that offers PeerMemory too it is the answer for both.
	Reaches(members []int) bool

	// SmallLimit is the greatest size that Gather and Broadcast take.
	SmallLimit() int

	// Gather is for messages of at most SmallLimit bytes: it publishes a copy of mine, of size bytes or none, and
	// returns when all members have done so, after one barrier. all has size bytes of each member in their order,
	// unspecified for those that published nothing. With a Combiner, the endpoint may have one member combine them for
	// all: then combined is the result and all is nil for those who passed one. A Combiner that panics aborts the
	// endpoint. Both results are only to be read, and good until the next call on the endpoint.
	Gather(ctx context.Context, call Call, members []int, mine []byte, size int, c Combiner) (all [][]byte,
		combined []byte, err error)

	// Broadcast copies buf of the member with index root into the others' buf, which is as long, at most SmallLimit
	// bytes. The root does not wait until the others have it, but for a bounded number of broadcasts. So a member that
	// is in another call, or leaves, may show at the root no sooner than at a later call on boards or peer memory, or
	// at Close, in a *MismatchError, an *UnmatchedError or a *ClosedError. A member that waits in another call of the
	// group gets a *MismatchError, whether the root has closed since or not.
	Broadcast(ctx context.Context, call Call, members []int, root int, buf []byte) error
}
