// Package mpi carries rounds over MPI, on whatever fabric the MPI library drives. It is there with the build tag mpi,
// which needs cgo and an MPI library: Open MPI and MPICH are tried. Without the tag [Join] is an error.
//
//	go build -tags mpi ./examples/digits && mpirun -np 4 ./digits
//
// The progress engine is that of package stream, so that fingerprints, credit, mismatches, circles, aborts and leaving
// are those of sockets:
//
//	communicator  tag      message
//	data          2 k      chunk: the length of the bulk behind it (8 bytes), then headers and short payloads
//	data          2 k + 1  pieces of a bulk, sent from the caller's memory, and received into it unless folded
//	control       the job  aborts, leaving, "I wait in this call", which k a lane has
//	of a group    round    the agreement on a call of MPI's own collectives, which go there too
//
// A lane has a k of its own for each pair of replicas. The lower replica of the pair chooses it when the lane is first
// used. A header comes before its payload and is compared before a byte of a long payload is received.
//
// # Progress
//
// MPI moves nothing unless it is asked to. A lane in a call asks: one C function posts what the round has given, tests
// all that is posted, and goes on testing for 10 µs. Then the lane looks at its context, at aborts and at what others
// have told. A goroutine of each job looks for control messages every 1 to 8 ms, so that an abort is seen by a
// replica that computes.
//
// Memory of Go is pinned while MPI has it. A call that fails takes back its receives, and waits until its sends are
// through: replicas that are aborted, or have left, receive what is still sent to them and drop it.
//
// # What is different from sockets
//
//   - A process that dies takes the job with it: mpirun ends all others. A *transport.LostError is of one that is
//     stopped, or whose host is gone, after Config.Silence. A call that is in the middle of a transfer with it does not
//     return before it goes on.
//   - MPI is initialized once in a process and finalized once, by [Finalize]. Finalize waits for all others.
//   - MPI itself decides who may join. There is no secret, no TLS and no checksum.
package mpi

import "time"

// Config says how a replica is connected.
type Config struct {
	// Blob is what the caller has to tell the other replicas, and Agree looks at what all have told, by rank. Its error
	// ends the joining; since all replicas see the same blobs, it is to be the same on all. Agree may be nil.
	Blob  []byte
	Agree func(blobs [][]byte) error

	// Silence is after how long a replica that says nothing counts as lost. 0 is DefaultSilence; less than 0 is never.
	Silence time.Duration

	// Last says that the process joins no other job: Close of the endpoint that Join returns finalizes MPI. See
	// Finalize.
	Last bool
}

// DefaultSilence is Config.Silence where that is 0.
const DefaultSilence = 10 * time.Second

// MaxBlob is the greatest length of Config.Blob.
const MaxBlob = 32 << 10
