// Package inproc connects replicas that are goroutines of one process.
//
//	eps, err := inproc.New(8) // one transport.Endpoint for each replica
//
// Nothing is copied on the way: the sender offers its own memory, and the receiver copies it to where it belongs, or
// folds it straight into there, on its own goroutine. There are no others, no message is queued, and in steady state
// nothing is allocated.
//
// # A message
//
// For each ordered pair of replicas of a lane there is a mailbox of slots, one for each tag, made when first needed.
//
//	          sender: post                receiver: claim
//	          (call, address, length)     (compare-and-swap)
//	┌──────┐ ─────────────────────▶ ┌────────┐ ─────────────▶ ┌─────────┐
//	│ free │                        │ posted │                │ claimed │ call and length are compared, then
//	└──────┘ ◀───────────────────── └────────┘                └─────────┘ the bytes are read, block by block
//	 ▲        sender: withdraw                                  │     │
//	 │        (compare-and-swap)                                │     │ receiver, after an abort
//	 └──────────────────────────────────────────────────────────┘     ▼
//	          receiver: all bytes have been read              ┌─────────┐
//	                                                          │ refused │ for good
//	                                                          └─────────┘
//
// An Exchange posts all its sends, then takes what arrives until it has all its receives, then waits until its own
// slots are free.
//
// # Rules about memory
//
//   - What a slot says, and the memory it names, belongs to the sender when the slot is free or refused, to whoever
//     moves it next when it is posted, and to the receiver when it is claimed. All moves are atomic.
//   - A receive buffer is written by its own replica alone, from within Exchange.
//   - An Exchange that fails aborts the network first, then withdraws what is posted, then waits for what is claimed to
//     be given back. A claimer looks for an abort before each block, 64 KiB or less, so that wait is short unless a
//     Fold is long.
//   - So when Exchange returns, for whatever reason, no slot names its buffers.
//   - A chain of folds claims as many of its next links as have arrived, and applies all of them to one block of 16 KiB
//     before it goes on to the next.
//
// # Waiting
//
// Where there is a processor for every replica (GOMAXPROCS, and no more than the machine has), an endpoint that has
// nothing to do looks again for some microseconds, for as long as that has been paying. Then it yields a few times,
// then it parks, having said in endpoint.waiting what for. Whoever makes that come true swaps the field back and sends
// one token. Nothing else is woken, nothing polls, and no timer runs for a wait that is short.
//
// At a meeting on peer memory endpoints look for longer, up to some 50 us, unless other programs want the processors:
// see package crowd.
//
// Waits of more than a millisecond or so are seen by a timer that all endpoints share. It wakes the endpoint, which
// then enters a register of the blocked, where those who disagree about the call, or wait for each other in a circle,
// find each other: see register. It stays there, parked, without any timer, for as long as it takes.
//
// An endpoint that enters looks at its own batch, and on from there along those that it waits for: where one replica is
// late, that is each transfer of each batch about twice, however many replicas there are. The looking is paid for: it
// takes no more than a twentieth of the time that all wait together, nor more than two fifths of a processor, or the
// timer wakes fewer at a time, in turn. So a circle is found at the latest when each of its replicas has had its turn:
// within milliseconds among tens of replicas, within a second or so among a thousand that all have messages for all.
//
// # Going on
//
// The endpoints that New returns are a [transport.Rejoiner], and so are those that Rejoin returns. A replica is gone
// when it has closed its first endpoint, or its context has ended in Rejoin. Once all others have called Rejoin, a new
// network is made for them, which shares nothing with the one before; that is let go when all have closed it. The
// process knows who is gone, so any number may go on. Errors of Rejoin are a *transport.ClosedError, the context's
// cause, and transport.ErrLeftBehind for a replica that has given up and calls again.
//
// # Meetings
//
// The endpoints also offer [transport.PeerMemory] and [transport.Boards]; how they work, and the one queue that there
// is, in docs/design/peer-memory.md.
package inproc
