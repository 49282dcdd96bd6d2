// Package cost prices a schedule on a topology: how many rounds it takes, how many bytes the busiest rank sends, and
// how long that takes on links that are used by nobody else.
//
// It is a model, to compare methods by, not a clock. It knows links, not processors: folding what arrives costs
// nothing, and every replica has a processor of its own.
//
//	what                      takes
//	a round                   as long as the slowest of its messages; the next begins when all have arrived
//	a message                 the latency of every hop of its way + the longest that a link on it is busy
//	a link, in one direction  the sum of what crosses it in the round / its speed
//
// The way of a message is the direct link, and where there is none a shortest path through other replicas, members or
// not; of several, that through the replicas with the lowest ids. A message is passed on while it arrives, so that
// bytes count once however long the way is.
//
// A link depends on the shape of the machine:
//
//   - On a clique it is a port: all that a replica sends in a round leaves by one, and all that it receives comes by
//     another, one pair of ports for each kind of link. That every pair is linked does not make a replica send faster.
//   - On a ladder it is half of a bundle. A ring keeps to one link of every bundle, or to one column, and its mirror
//     image has the other (see topology.Rings), so a message takes one half. Messages that cross a bundle together, in
//     one direction, are dealt to the half that has less. A one-way ring thus leaves half of every bundle idle, and
//     quad_directional_ring uses all of it.
//
// With 8 replicas on an open ladder, n bytes, L the latency and S the speed of one link:
//
//	all-reduce               rounds   time
//	clockwise_ring           14       14 (L + n/8S)
//	bidirectional_ring_pair  14       14 (L + n/16S)
//	quad_directional_ring    14       14 (L + n/32S)
package cost
