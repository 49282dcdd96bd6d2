// Package oracle says what collectives give. It is the second implementation that tests and gclperf's check compare
// with: it gathers the inputs of all ranks and folds them in rank order, an element at a time.
//
// It knows no method, no schedule, no transport and no kernel. Of methods/schedule it takes the names of the
// collectives only, so that a mistake there is not repeated here.
//
//	Inputs      data for all ranks: differs by rank and index, every partial result exact
//	Parts       from where each part of a rank's output comes: one row per collective
//	Reduce      the left fold in rank order, by dtype and operator
//	Outputs     Parts and Reduce together: the output of every rank
//	Check       compares to the bit, and says which element differs
//
// To add a collective, add its row to [Parts].
//
// Functions panic on arguments that make no sense, such as an operator on a dtype that it does not take: their callers
// are tests, and a program that has checked them.
package oracle
