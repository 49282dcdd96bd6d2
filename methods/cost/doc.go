// Package cost prices a schedule on a network: how many rounds it takes, how many bytes the busiest rank sends, and how
// long that takes on links that are used by nobody else.
//
// It is a model, to compare methods by, not a clock.
//
//	what         takes
//	a round      as long as the slowest of its messages, and then the busiest processor
//	a message    the latency of every link of its way + the longest that a cable on it is busy
//	a cable      the sum of what crosses it in the round, in one direction / its speed
//	a processor  an overhead for every message that it sends or receives + the time of its folds
//
// A round begins when all messages of the one before have arrived. Processors take no time in [Price]; [Model] has
// their numbers.
//
// A message is passed on while it arrives, so that bytes count once however long the way is. A link is one cable or
// several equal ones. A message takes one of them, that with least to carry so far, in the order of the ranks.
//
// [Model.PriceTraffic] prices a [schedule.Traffic], which describes the messages of all ranks at once, without steps:
// 65,536 ranks take less than a second where rounds are few, or alike (BenchmarkPriceTraffic). Rounds that are alike
// are priced once.
//
// # Networks
//
// A [Network] has numbered links, each in one direction, and says which of them a message takes. Anything that does is
// one.
//
//	made by       links                                      a message takes
//	[Machine]     those of a topology: below                 a shortest way
//	[Torus]       to the neighbours in each dimension        the shorter way round, one dimension after the other
//	[FatTree]     from each replica or switch to the next    the way over the first switch that is above both ends
//	[ParseGraph]  those of a file                            a shortest way
//
// [ParseNetwork] makes those of the first three of a name, such as torus:8x8x8 or fattree:16x8x4.
//
// A shortest way is the direct link, and where there is none one with the fewest links, through replicas, members or
// not, and switches; of several, that through the nodes with the lowest numbers.
//
// A link of a topology depends on the shape of the machine:
//
//   - On a clique it is a port: all that a replica sends in a round leaves by one, and all that it receives comes by
//     another, one pair of ports for each kind of link. That every pair is linked does not make a replica send faster.
//   - On a ladder it is a bundle of two cables, each of them half of the bundle's links. A ring keeps to one link of
//     every bundle, or to one column, and its mirror image has the other (see topology.Rings). A one-way ring thus
//     leaves half of every bundle idle, and quad_directional_ring uses all of it.
//
// With 8 replicas on an open ladder, n bytes, L the latency and S the speed of one link:
//
//	all-reduce               rounds   time
//	clockwise_ring           14       14 (L + n/8S)
//	bidirectional_ring_pair  14       14 (L + n/16S)
//	quad_directional_ring    14       14 (L + n/32S)
package cost
