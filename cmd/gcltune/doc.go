// Command gcltune measures rules by which auto chooses a method, and says how good its choices are.
//
//	go run ./cmd/gcltune -transport tcp -table tcp.txt     measures, and writes a table of rules (docs/design/tuning.md)
//	go run ./cmd/gcltune -transport tcp -samples a.jsonl   measures, and writes all times
//	go run ./cmd/gcltune -from a.jsonl,b.jsonl -table t    makes a table of them: of several machines what gains on each
//	go run ./cmd/gcltune -transport tcp                    compares auto with each method and implementation
//	GCL_OPTIONS='{"tuning": "tcp.txt"}' go run ./cmd/gcltune -transport tcp
//
// It starts a job for each number of replicas in -n (2,3,4,6,8,12,16 if not given), one after the other: goroutines of
// one process, or processes over -transport tcp, unix, shm or mpi. A point is a collective, a number of replicas and a
// size (nccl-tests', as gclperf has it). Each of -passes passes (3) measures all ways at each point: every method that
// does the collective, among goroutines with messages and stepping together, and of methods with one schedule the
// first. Over shm it is with messages, by auto too: buffers of gcl.Alloc go in one pass over peer memory whatever the
// rules for messages are, and such a table is for calls on other buffers. A way has five batches of calls, which take
// -time together (10ms), three where a call takes longer, and one where it takes ten times as long. The ways take turns
// batch by batch, so that what comes and goes on the machine meets all of them. The time of a way is the median of its
// batches, and the times that are compared are medians of the passes. One call of each way is checked, and a wrong
// element ends the run.
//
//	a way that takes                                                     is
//	twice as long as the fastest in the first pass, which takes 1 ms     left out of the second
//	half as long again as the fastest in every pass                      left out of the third and later ones
//	three times as long as the fastest, and a millisecond or more        timed once
//	three times as long at the size before, of a size from 256 KiB on    left out at this size
//
// It ends when -limit (10m) is over, or a few calls later: the passes that are missing then are left out. A number of
// replicas has a share of the time that grows with it, of what the smaller ones have left. If not every point has been
// measured once it is an error. The files of -table and -samples are written when all has been measured, whole or not
// at all.
//
// Without both it prints a line for each point when its number of replicas is done: auto, the best way, their ratio,
// and how far the runs of auto are apart (A/A). The best way is the one that was the fastest in the odd passes, and the
// times are those of the even ones: the fastest of twenty was lucky too. In the end it prints, for each number of
// replicas and for all, at how many points auto is within A/A or 5 % of the best, and the geometric mean of the ratios.
//
// Before anything is measured the system is asked for the buffers of the largest size, as by gclperf. The exit code is
// 0, or 1 when a value was wrong or a collective or a process failed, 2 when the flags are wrong or ask for more memory
// than the system gives, 130 after Ctrl-C and 143 after SIGTERM.
package main
