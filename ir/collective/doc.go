// Package collective has the collectives of package gcl as operations of programs of package ir.
//
// A [Comm] says among which replicas, and with which options; its zero value is all replicas. Its methods add
// operations to the graph of their input:
//
//	pairs := collective.Comm{Group: commgroup.Group{Type: commgroup.Consecutive, Size: 2}}
//	total := pairs.AllReduce(x, gcl.Add)
//
//	operation           a replica's input            its output, in a group of G
//	AllReduce           any shape                    the same shape, the same bits on all
//	ReduceScatter       (n)                          (c), c = ceil(n/G): its part, zeros past n
//	AllGather           shape S                      (G, S...), by rank
//	AllToAll            (G, S...)                    the same shape: out[j] is in[rank] of rank j
//	Broadcast           any shape                    the root's
//	AllGatherConcat     (d, S...)                    (G*d, S...)
//	ReduceScatterShards any shape of n elements      (c)
//	AllGatherShards     any shape of c elements      any given shape of n elements: the padding is gone
//
// What ends in Many does the same for each of several tensors, in one set of messages.
//
// Every replica of a session has a connection of its own to the others, in process, by [UseTransport] or by the job of
// [WithComm], which all collectives of the program share, and they run in the order in which they were built. Those of
// a graph that runs beside the replica have a second one, and do not wait for the first. An output's name is also that
// of the collective in gcl's errors and traces. In the branches of an If replicas may go different ways as long as the
// collectives of each group are the same; where they are not the run fails.
//
// # Gradients
//
// Each replica has a loss of its own, and what is differentiated is the sum of the losses, so that what a replica has
// sent to others gets a gradient from all of them. With [ir.IdenticalLosses] all replicas have computed the same loss,
// of which there is one: where a collective gives all of them the same, each has the whole gradient of that already,
// and nothing is summed. y is the output, dx and dy are the gradients of input and output.
//
//	operation                dx                                          with IdenticalLosses
//	all-reduce Add           all-reduce Add of dy                        dy
//	all-reduce Mean          all-reduce Mean of dy                       dy / G
//	all-reduce SquareAdd     2x * all-reduce Add of dy                   2x * dy
//	all-reduce Min, Max      all-reduce Add of dy where this is the      dy there, zeros elsewhere
//	                         first rank whose x is y, zeros elsewhere
//	all-reduce Local         dy                                          dy
//	reduce-scatter           as all-reduce, with all-gather for          the same, but Local: all-gather of dy
//	                         all-reduce Add; Local: dy in its place
//	                         among zeros
//	all-gather               reduce-scatter Add of dy                    own part of dy
//	all-to-all               all-to-all of dy                            the same
//	broadcast                all-reduce Add of dy at the root,           dy at the root, zeros elsewhere
//	                         zeros elsewhere
//
// Mul has no gradient, since that would divide by the inputs; LogicalAnd and LogicalOr are of bool and have none. Nor
// has what is in place.
//
// The right column is that of PopXL. It counts the inputs of all replicas as different tensors. What a collective has
// made equal on all of them, each of them uses, and the losses are equal, so each has its whole gradient. Where a
// program uses such a tensor in another way on each replica (a weight with the replica's own data), each has only a
// part of its gradient, and the program adds these up itself, by AllReduce of the gradient.
package collective
