// Package transport is the seam between the collectives and whatever carries their bytes.
//
// A transport moves one round at a time. The caller hands [Endpoint.Exchange] every send and every receive of the
// round; the transport makes progress on all of them at once and returns when all are done. Bytes that arrive for a
// reduction go straight from where they arrived to the caller's fold, block by block: a transport copies nothing
// that it can hand over.
//
//	replica 0                                   replica 1
//	Exchange(ctx, call, [                       Exchange(ctx, call, [
//	    {Send     to 1    tag 0  buf A}  ─────▶     {RecvFold from 0  tag 0  buf X, with Y}   X = Y op A
//	    {Recv     from 1  tag 0  buf B}  ◀─────     {Send     to 0    tag 0  buf Z}           B = Z
//	])                                          ])
//
// But for [Native], a transport knows neither dtypes nor methods nor groups. Peers are replica ids, buffers are bytes,
// and what the bytes mean travels with them as an opaque fingerprint, the [Call], which both sides compare before a
// byte of the payload is written.
//
// # Rules for a caller
//
//   - One Exchange at a time on an Endpoint. [Endpoint.Dup] opens an independent lane.
//   - A send may complete only when its receive does, or sooner: never rely on buffering, nor on its absence.
//   - Within one round, the transfers to one peer carry tags 0, 1, 2, ... and so do the transfers from it. In a batch
//     they may stand in any order; no tag comes twice, which a transport checks ([Checker]). Rounds one after the other
//     may have the same Call, Round included: what a replica sends in one has been taken before it begins the next.
//   - No buffer of a batch overlaps another unless both are sent, or both belong to one fold.
//
// # Rules for a transport
//
//   - Exchange returns, for whatever reason, only when no peer can touch its buffers any more.
//   - An Exchange that fails after it has started aborts the endpoint on every replica, because half a round cannot
//     be repaired. Only a call that is refused before anything is posted (*BatchError, ErrBusy) leaves it usable.
//   - In steady state Exchange allocates nothing and starts no goroutine.
//   - Errors are facts: who, where, in which calls, in the fields of the types of this package. Their texts are for
//     those who test a transport. Package gcl makes the texts for users from the fields. An error that puts words
//     around one of these keeps its own text. Across processes their types and fields arrive, and the texts of other
//     causes.
//
// # Buffered sends
//
// A transport may take a send into memory of its own, as sockets do. The sender's Exchange then ends before the
// receiver has come, and a receiver that is in another call, or has closed, may show at the sender no sooner than at a
// later call on any lane, or at Close. Two rules keep every mismatch findable:
//
//   - At most [MaxUnread] messages from one replica to another, on one lane, are unread. A sender waits for room.
//   - A message of a call that its receiver has completed without reading it is a *MismatchError at the receiver's next
//     wait or Close. One whose receiver has closed is a *ClosedError at the sender's next transfer with it, or Close.
//
// # What an endpoint may offer beside
//
// Found by a type assertion:
//
//	PeerMemory   members of a group read and write each other's buffers, in rounds
//	Opener       which memory of the program that is
//	Boards       members of a group publish small messages for each other to read
//	Shared       endpoints in one process find each other's users
//	Reporter     after an abort each replica tells the others what it was doing
//	Settler      before a replica leaves it hears that others have made a call which did not wait for them
//	Rejoiner     replicas go on in a new endpoint without those that are gone, and with newcomers
//	Linked       which replicas share a host, and what connects each pair
//	Native       collectives that the transport's engine has of its own, as MPI does
//
// Package transporttest holds the suite that every transport passes.
package transport
