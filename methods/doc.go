// Package methods says how replicas talk: it turns a collective, a method, a group size and ring orders into a
// schedule. [Register] adds a method of a program's own, which is a [Generator] of schedules; a [Prover] proves them.
//
// Everything here, but for the names of methods that programs add, is a pure function of its arguments. The package
// never sees a byte, a dtype or a transport, and takes ring orders as given (package topology knows them).
// [Spec.Program] is what one rank does; [Build] collects the programs of all ranks, for the checker and the drawings.
//
//	method                   chunks of an all-reduce over k ranks   rounds           sent by a rank, in n/k
//	broadcast                1                                      1                k(k-1)
//	direct                   k                                      2                2(k-1)
//	clockwise_ring           k                                      2(k-1)           2(k-1)
//	anticlockwise_ring       k                                      2(k-1)           2(k-1)
//	bidirectional_ring_pair  2k                                     2(k-1)           2(k-1)
//	meet_in_middle_ring      k                                      2 floor(k/2)     2(k-1)
//	quad_directional_ring    4k                                     2(k-1)           2(k-1)
//	recursive_doubling       1                                      log2 k           k log2 k
//
// For recursive_doubling k is a power of two here; else log2 k is rounded down, two rounds are added, and ranks with an
// extra one beside them send k pieces more.
//
// A reduce-scatter or an all-gather is one half of that: half the rounds (broadcast and direct: 1; recursive_doubling:
// as many), k-1 pieces. An all-to-all on a one-way ring forwards k(k-1)/2 blocks in k-1 rounds; a broadcast down it in
// m pieces takes (k-1)+(m-1).
//
// A reduce is a broadcast backwards, and a gather a scatter backwards. On rings a scatter passes the parts on, the
// furthest first; by recursive_doubling they go down a binomial tree. Otherwise each part goes straight to its rank.
//
// All ring methods are one piece of code, lanes: a direction round a ring, how far it reaches, and which fragments it
// carries. With Spec.RankOrder each element is reduced in the order of the ranks; broadcast and direct do that anyway,
// and the rings and recursive_doubling become a chain.
//
// [Spec.Traffic] describes the messages of a method without its steps, for prices. [Gallery] lists methods that do some
// collectives, for some numbers of ranks: halving and doubling, trees, tori, hierarchies and Swing.
package methods
