// Package stream carries out rounds of messages over streams of bytes: the progress engine of the transports whose
// replicas are processes. It knows no sockets. A transport gives it a [Host], which carries short control messages and
// makes links, and a [Link] for each pair of replicas and lane.
//
//	Node                       one replica: who has aborted, who has left
//	 ├─ Lane                   a transport.Endpoint: the rounds
//	 │   ├─ Link to replica 1  bytes, in both directions
//	 │   └─ Link to replica 2
//	 └─ Lane (by Dup)
//	 Host                      control messages to each replica, beside all links
//
// # A message
//
//	┌─────────┬───────────────┬─────────┬───────────┐
//	│ header  │ payload       │ padding │ trailer   │   the trailer, with a checksum of the payload, where asked for
//	│ 64 bytes│ length bytes  │ to 64 n │ 64 bytes  │
//	└─────────┴───────────────┴─────────┴───────────┘
//
// The header holds the Call, the tag and the length, which are compared with a receive of the batch before a byte of
// the payload is written. A fold takes the payload where the link shows it; a plain receive has it moved into its Buf.
// An Exchange that does not fail ends with every stream at the border of a message, but for a part of a header with
// credit: the rest goes before the next message.
//
// Sends are buffered: an Exchange ends when the links have taken its messages. A header also says how many messages of
// the other direction have been read, and a header alone does where nothing is sent: the sender looks for it once
// transport.MaxUnread messages are unread, of which a lane has no more. Where it finds a message there that it does not
// read yet it asks to be told by control messages. Short messages of a batch to one replica are one write.
//
// # Folds of several messages
//
// A message may be folded as far as the one before it in the chain. When nothing else moves, messages whose turn has
// not come are put aside, since what a peer waits for may be behind them in the stream.
//
// # Who disagrees
//
// A receive compares its message. For the rest a lane keeps its last calls. Before it parks, and when it is closed, it
// looks at messages that nobody here reads: one of a call that has been made already, or in whose place another was
// made, is a mismatch. A lane that has long been parked tells those for whom it waits in which call that is, and they
// look in the same way. A replica that leaves tells its last calls. Replicas that wait in a circle, in calls of
// different groups, find that by probes, which go from each to those for whom it waits.
//
// # Waiting
//
// A lane that waits looks at its links, and gives the processor to others every few looks. After Config.Spin it parks.
// A look that took long shows that others want the processor: for a while the lane gives it away after each look, and
// parks sooner. Where the replicas of a process outnumber its processors, others are its goroutines, after each look.
// Where links lie in memory, a [Looker] looks in the lane's place, and decides when the lane parks.
//
// A lane that waits for bytes asks the replica over the Host how many it has sent. A link over which nothing comes of
// them for Config.Silence is lost, and so is one that has ended while the replica answers.
//
// # The end
//
// An abort is a control message with the error. Each replica passes it on to all, once: else a replica could hear that
// another has left over an abort before it hears of the abort, and take the leaving for the cause.
//
// A replica that leaves says so, and how many messages it has sent; a connection that ends without a word is a
// *transport.LostError, which aborts.
package stream
