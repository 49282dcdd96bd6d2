// Package topology says where replicas sit, which of them are linked, how fast, and which ring to send round.
//
// A [Topology] is a machine: replicas of one or more IPUs each, gathered in link domains. It comes in three shapes. In
// a clique (one host, one switch) every pair is linked. In a ladder two columns of IPUs are linked up the sides (rails)
// and across (rungs), and the ends are open or joined, top to bottom. Domains are joined by GW-Links. They are ranges
// of replica ids, or on cliques whatever [Config].Domains says. [Topology.Rings] gives, for the members of a group and
// a ring by GCL's name, the order in which a ring visits them. The package knows nothing of methods, data or time: it
// holds speeds as numbers for others to reckon with.
//
// The open ladder of eight IPUs, even ids on the left, odd ids on the right. Every line is a bundle of two parallel
// links:
//
//	6 ═══ 7
//	║     ║
//	4 ═══ 5
//	║     ║
//	2 ═══ 3
//	║     ║
//	0 ═══ 1
//
// Replica r of m IPUs has IPUs r*m to r*m+m-1: with two each, a replica is a rung.
//
//	name             IPUs per replica   order of 8 replicas   needs
//	peripheral-ring  1                  0 2 4 6 7 5 3 1
//	ring-on-line     2                  0 2 4 6 7 5 3 1
//	rung-ring-2      2                  0 1 2 3 4 5 6 7       joined ends
//	rung-ring-4      4                  0 1 2 3 4 5 6 7       joined ends
//	rung-ring-8      8                  0 1 2 3 4 5 6 7       joined ends
//	auto             any                the one that fits; on a clique 0 1 2 3 ...
//
// # Rules
//
//   - Replica ids and IPU ids count through all domains. Ranks are places in a group: a ring is a permutation of ranks.
//   - A ring exists for any members. It is worth its name, every hop a direct link, where [Topology.Rings] says so.
//   - Two rings for the quad-directional method share no physical link where [Rings.Disjoint] says so.
//     docs/design/rings.md tells why that is impossible for fewer than five members of a clique.
//   - A question about a replica, an IPU or a domain that does not exist is answered with no link, -1 or an empty
//     range.
package topology
