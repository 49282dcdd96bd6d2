// Package schedule describes a collective as data and proves it.
//
// A [Schedule] holds a [Program] for each rank: rounds of steps that send, receive, receive and reduce, or copy
// numbered chunks of three buffers. It knows nothing of bytes, dtypes or transports; chunk boundaries come at run time
// from package chunks. [Check] carries a schedule out on symbols and says whether every result holds every contribution
// it must, exactly once. [Schedule.String] draws it:
//
//	all-gather, 3 ranks, 3 chunks, 2 rounds
//	round | rank 0 | rank 1 | rank 2
//	------+--------+--------+-------
//	    0 | I0>1   | I1>2   | I2>0
//	      | O2<2   | O0<0   | O1<1
//	      | then   | then   | then
//	      | O0=I0  | O1=I1  | O2=I2
//	    1 | O2>1   | O0>2   | O1>0
//	      | O1<2   | O2<0   | O0<1
//
// I, O and S are Input, Output and Scratch: I0>1 sends chunk 0 of the Input to rank 1, O2<2 receives chunk 2 of the
// Output from rank 2, O1=I1+<2 is the reduction of the own chunk with what arrives from rank 2, O1+<2 goes on with a
// fold, S4[2] is scratch slot 4 holding chunk 2, and S4[5 of 2-] chunk 5 in a slot that begins with chunk 2. O1:4x3 is
// a strided span: 3 chunks, each 4 after the one before. O1-2:4x5 is 5 chunks in such runs as chunks 1 and 2. What
// stands below "then" happens once the moves are done. The first line ends with "root 2" if the root is not rank 0,
// with "apart" for Schedule.Apart and "again" for Schedule.Again. An empty round with which a program ends has a
// hyphen. [Parse] reads this form.
//
// A collective of a program's own is a [CustomContract]: which chunks each rank's buffers hold, and who contributes to
// which. Its drawing has them above the rounds. Chunk 0 of 0-2 is chunk 0 with the contributions of ranks 0 to 2, and a
// line "sizes 1 2x3" below the first says that chunks have sizes of 1, 2, 2 and 2:
//
//	custom scan, 3 ranks, 1 chunk, 2 rounds, combines
//	round | rank 0 | rank 1   | rank 2
//	------+--------+----------+---------
//	   in | 0      | 0        | 0
//	  out | 0 of 0 | 0 of 0-1 | 0 of 0-2
//	    0 | I0>1   | O0=I0+<0 |
//	      | then   |          |
//	      | O0=I0  |          |
//	    1 |        | O0>2     | O0=I0+<1
//
// [Schedule.Shape] draws who sends to whom, a line from each sender to each receiver, and [Schedule.WriteSVG] draws the
// same with arrows:
//
//	all-gather, 3 ranks, 3 chunks, 2 rounds
//	round   0       1
//	rank 0 ─●───▲─ ─●───▲─
//	        │   │   │   │
//	rank 1 ─▼─●─│─ ─▼─●─│─
//	          │ │     │ │
//	rank 2 ───▼─●─ ───▼─●─
//
// The marks on the row of a rank:
//
//	●    the rank sends
//	▲ ▼  the rank receives
//	⊕    the rank receives, and what arrives is combined with other data in this round
//	×    send and receive do not match: Check refuses the schedule
//	│    the line passes the rank
//	!    on either side of a cell: Check refuses the schedule there, and says why below
//
// A line with a receiver at both ends and no sender is an exchange: each end sends and receives. A line carries the
// number of chunks in the row "chunks" above it, or the number behind its sender or its upper end; without a number it
// carries one.
//
// [Traffic] describes the messages of a schedule for all ranks at once, without steps. It is for prices of groups whose
// schedules would have billions of steps.
//
// # Rules
//
// The Input is never written. A step may read only what is there. The chunks of a message have the same sizes on both
// sides. See [Round] for what may be in flight together.
//
// A schedule that moves data for nothing is right. [Examine] counts that: chunks that come to a rank again, and values
// that are overwritten, or left in Scratch, before anyone has read them. [Report.CheckWaste] makes it an error. A
// Report also has the rounds, the messages, the chunks that each rank sends, and the least that any schedule of the
// collective can do with.
package schedule
