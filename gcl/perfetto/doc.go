// Package perfetto writes what collectives did to a file that Perfetto (https://ui.perfetto.dev) and chrome://tracing
// open.
//
//	var timeline perfetto.Timeline
//	err := gcl.RunOrJoin(ctx, 4, body, gcl.WithOptions(gcl.Options{Trace: timeline.Trace()}))
//	err = errors.Join(err, timeline.WriteFile("trace.json"))
//
// # What a file shows
//
//	in the file                       stands for
//	process, its number is the id     a replica, "replica 3 on HOST"
//	thread of it                      a connection of the replica: 0, and one for each Dup
//	slice                             a call, from its turn to its end
//	slice inside                      a round of the call; by Hybrid, of a phase
//	arrow                             a segment of a message, from the sending round to the receiving one
//	mark                              a call that was refused, or never got its turn
//
// Collectives on peer memory send nothing, so they have no arrows, and neither have those within a replica.
//
// # One file for each process
//
// A [Timeline] knows the replicas of its own process. In a job of processes each writes a file, whose name [FileName]
// makes, and [Join] makes one of them all:
//
//	replica 0   trace-0.json \
//	replica 1   trace-1.json  > Join > trace.json    one axis of time, arrows between the replicas
//	replica 2   trace-2.json /
//
// Both ends of an arrow have an id, which each side computes from what both know: connection, group, number of the
// call, phase, round, sender, receiver and the number of the segment. So the files need nothing of each other.
//
// # Clocks
//
// A Timeline looks at the wall clock once, when its Trace is made, and from then on at the monotonic clock. A file has
// times since that look, and the look itself, by which Join lays the files side by side.
//
//	replicas                     how well their times agree
//	of one process               they have one clock
//	of processes of one host     to less than a microsecond, if nobody sets the clock between their starts
//	of several hosts             as well as the hosts' wall clocks do: NTP often leaves a millisecond
//
// An arrow leaves when the send is about to begin, and ends with the round that receives. So an arrow that goes back in
// time is no message from the future: it says by how much, at least, two hosts' clocks differ.
package perfetto
