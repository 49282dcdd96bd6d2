// Command gclsched proves, draws, prices, runs and converts schedules.
//
//	gclsched check FILE                                          is it right?
//	gclsched draw FILE                                           who sends to whom, as text
//	gclsched draw -svg ring.svg -method clockwise_ring -n 8      the same as a picture
//	gclsched price -bytes 4K,64M -network open-ladder:8 FILE     what it costs
//	gclsched price -method all -n 8 -overhead 300ns              which method is best
//	gclsched auto -network torus:8x8x8                           what auto takes on a network
//	gclsched bench -bytes 64K,1M FILE                            how long it takes, beside what auto takes
//	gclsched convert -o ring.xml ring.txt                        text to XML and back
//
// A schedule comes from a file, or from a method by name:
//
//	FILE                   the text that schedule.Schedule.String draws, or the XML of msccl-tools
//	-method NAME           a method of package methods, or of its gallery (docs/design/methods.md), such as pat:
//	                       -method clockwise_ring -collective all-reduce -n 8
//	-method all            for price: all methods of the library, the best one first at each size
//
// The form of a file shows in its first letter: XML begins with "<".
//
//	command   prints                                                     flags of its own
//	check     the proof's report: rounds, messages, chunks sent, waste   -strict
//	draw      the shape, or the table that says everything               -picture, -svg
//	price     a line for each size: rounds, bytes sent, time, bound      -bytes, -overhead, -csv
//	auto      a line for each network, collective and size               -network, -bytes, -overhead, -csv
//	bench     a line for each size: time of a call, and of one by auto   -bytes, -time
//	convert   the schedule as text or XML                                -o, -to
//
// -network is where the ranks sit, a clique of all of them unless given: a name, such as torus:8x8x8, fattree:16x8x4,
// clique:4+4 or open-ladder:8 (go doc gogcl.dev/methods/cost.ParseNetwork), or a file of links (ParseGraph). Rings of
// -method go round a clique or a ladder, and price takes it for the links. With -method -n is the number of its
// replicas unless given.
// The second line that price prints names the network. It has alpha and beta of the messages between rank 0 and the
// others, which are the latency of a message's way and the time of a byte on the slowest link of it, and the overhead:
// -overhead is what a message takes of its sender's processor, and once more of its receiver's.
//
// The last column is how much of what the network allows a schedule reaches: the time that no method is faster than, by
// the worst cut of the network (go doc gogcl.dev/methods/cost.Model.Bound), as a part of the schedule's. 100 % is all.
// -csv has that time too.
//
// With -method all price has a line for each method at each size, with how many times as long as the best it takes. A
// pipeline has the price of the best of 1, 2, 4, ... and 64 pieces. Methods that do not do the collective among so many
// ranks are named below, with the reason. -csv has no line of these.
//
// auto takes no schedule. It prints which method gcl's auto takes by price where a program gives gcl.WithNetwork, with
// its time, and the best of all methods, each priced to the end, with the ratio of the times: docs/design/auto.md has
// the table. A pipeline has the number of its pieces behind a slash. Ring orders are those of gcl: on machines those of
// their topology, on other networks the replicas in turn.
//
// A schedule that moves data for nothing is right: check reports that as waste, and with -strict refuses it.
//
// bench has each rank be a goroutine, with float32s that Add combines, and compares the results of both ways. Times are
// medians of blocks of calls, in turn, each with a Barrier at its end. A collective of a program's own has no second
// way: its time stands alone, and sizes are those of the longest buffer, as they are for price.
//
//	exit code   0    all is well
//	            1    the schedule does not prove, with the counterexample (convert to text does not ask for that, and
//	                 draw marks the cell that is wrong, with exit code 0); ranks combine in different orders, with two of them (check and bench); it wastes, with
//	                 the first finding (check -strict); a file cannot be read or written
//	            2    the command line is wrong
//	            130  Ctrl-C
//	            143  SIGTERM
package main
