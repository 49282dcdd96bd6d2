// Package measure is what gclperf and gcltune have in common: the flags that say what is measured, the buffers with
// their values, calls that are timed and checked, and jobs of processes.
//
//	flags -> Settings       what is measured, by which ways, over what
//	Job                     one replica of it in this process, or all, or processes that are started
//	Runner                  times calls on an Operand, and checks them against a Pattern
//
// Sizes are nccl-tests': bytes of the larger of a replica's two buffers, rounded up to whole elements for each replica.
// Times are those of the slowest replica.
//
// Beside the two commands, bench/peers/picture and examples/charlm use what starts processes and what says where a
// measurement was made.
package measure
