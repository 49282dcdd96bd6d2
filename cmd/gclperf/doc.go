// Command gclperf measures collectives and prints the table that users of nccl-tests know.
//
//	go run ./cmd/gclperf -collective allreduce -n 8
//	go run ./cmd/gclperf -collective all -n 2 -method auto,direct,clockwise_ring -min 8 -max 64MiB -svg perf.svg
//	go run ./cmd/gclperf -b 8 -e 64M -f 8
//	go run ./cmd/gclperf -collective allreduce -n 8 -json
//	go run ./cmd/gclperf -n 8 -out all.csv
//	gclperf -transport tcp -n 4
//	gclperf -transport tcp,unix,inproc -n 4
//	mpirun -np 4 gclperf
//
// Sizes are nccl-tests': bytes of the larger of a replica's two buffers, rounded up to whole elements for each replica.
//
//	collective      count (elements)      size                 bus bandwidth = size/time x
//	allreduce       of the buffer         count                2(n-1)/n
//	reducescatter   of a result           n x count            (n-1)/n
//	allgather       of an input           n x count            (n-1)/n
//	alltoall        for each replica      n x count            (n-1)/n
//	broadcast       of the buffer         count                1
//	reduce          of the buffer         count                1
//	gather          of an input           n x count            (n-1)/n
//	scatter         of a result           n x count            (n-1)/n
//
// Calls are issued back to back in batches, all replicas starting a batch together. The time of a batch is that of the
// slowest replica, divided by its calls; p50, p90 and p99 are over the batches, and the time in the table is p50.
// (nccl-tests prints the mean: on a machine that is busy with other things too, the median says more.) With -sync every
// call is preceded by a barrier and timed by itself. With -batch calls are made by a gcl.Batch, which has been put
// together before, in place of calls of gcl.Comm.Do; the table says "by a Batch".
//
// A call whose input nobody has written since the last one finds it in caches, in which a program has left other
// things. With -dirty calls are timed once more, before each of which every replica rewrites its input with other
// values. Such a call is timed by itself after a barrier, as with -sync, and without the rewriting. The table then has
// their median, dirty, in place of algbw; -sync -dirty times both in the same way. Fields of -json and -csv have it as
// dirty_p50_us, -1 without -dirty.
//
// The data differs by replica and index, and is such that every partial result is exact in the element type, so that
// results are compared bit for bit. One call before the timed ones and one after them are checked at every size.
// #wrong counts elements, over all replicas. With -c 3 it is three calls before and three after; with -c 0 nothing is
// checked, and #wrong is N/A, in -json and -csv -1. The timed calls of an in-place reduction work on zeros, since real
// data would grow with each.
//
// Heap allocations are counted around eighths of the timed calls; allocs is the median of these, for a call, summed up
// over all replicas.
//
// With -metrics calls are counted by package gcl/metrics while they are measured: with it and without it by turns, the
// difference is what counting costs.
//
// Processors are counted in the same parts, by the system, for all replicas together: those that wait for a message and
// look for it count, and those that sleep do not. With -cpu the table has their time, cpu, in place of busbw. Fields of
// -json and -csv have it as cpu_us, -1 where the system does not say.
//
// Of -transport sim the table has bound in place of busbw: how many percent of what the network allows
// (cost.Model.Bound) the time is. Fields of -json and -csv have the part as of_bound, -1 where no network is known.
//
// One more call, before the timed ones, finds out how the data goes: by messages, over peer memory, or by boards on
// which small data is published. It is a line below the table, and the field path. Over shm it says whether the
// replicas shared their buffers, which are from gcl.Alloc: not with GCL_OPTIONS={"sharedAlloc":false}.
//
// The table has the columns of nccl-tests in their order, and is 120 characters wide at most. redop is spelled as -op
// takes it. With -v a comment below each row has p90, p99 and allocations, in the columns of the row.
//
// # Flags of nccl-tests
//
//	-b -e -i -f          -min -max -step -factor
//	-d -o -r -g          -dtype -op -root -n
//	-w                   warm-up calls; two are made at least, since they say how long a call takes
//	-c                   checked calls before the timed ones, and as many after them
//	-n                   replicas here, and -iters is nccl-tests' -n
//
// Words are GCL's, ADD and float32, and those of nccl-tests: sum, prod, min, max and avg; half, float and double. The
// table has GCL's. -d and -o take several with commas, or all: then the operators and types that go together are
// measured in turn, and a collective that does not reduce once for each type. Other flags and words of nccl-tests, such
// as -t, -z and mulsum, are errors that say what comes nearest.
//
// # Where it was measured
//
// Lines of -json and -csv end with fields that say where and how they were measured: version, date, machine, cores,
// gomaxprocs, settings, and load. The table has them above and below. load is how many cores other programs kept busy
// during the measurement, by the times in /proc/stat without those of gclperf's own processes on the host of replica 0;
// what the hypervisor took counts as others'. It is -1 where there is no such file. Linux counts in ticks of 10 ms, so
// the load of a measurement of a few ticks is a rough number.
//
// -out appends the measurements to a file too, so that one file can have several runs, of several machines: all.csv,
// all.jsonl (an object on each line) or all.txt (the table). It refuses a file whose columns are others. What -out and
// -svg cannot write is noticed before anything is measured.
//
// A measurement that takes longer than a second is named on standard error while it lasts, if that is a terminal.
//
// # Processes
//
//	started by           -transport        replicas                               -n
//	hand                 inproc, not given goroutines of this process             2 if not given
//	hand                 tcp, unix, shm    processes that gclperf starts          2 if not given
//	hand                 mpi               processes that mpirun starts           2 if not given
//	hand                 sim               goroutines of this process             the -network's
//	gclrun, mpirun, ...  any but these two this process is one replica of a job   the job's; another one is an error
//	hand                 several, commas   one of these after the other           2 if not given
//	gclrun, mpirun, ...  not given         the same, over the job's transport     the job's
//
// gclperf starts its processes as gclrun does, on this host, with its own arguments. Replica 0 prints the table; the
// others print on standard error if at all. When a process dies gclperf names it. The others end by the errors that
// they get, and those that do not within 5 s are killed. On Linux all are killed when gclperf itself is.
//
// Of several transports, such as -transport tcp,unix,inproc, each has tables of its own. Tables below say at each size
// how many times as fast a call is as over the first one, and over which it is fastest. A transport that fails, or
// gives wrong values between processes, is the last one. -json, -csv and -out file.csv have the measurements alone.
//
// All statistics mean the same as among goroutines: times are those of the slowest replica, and allocations those of
// all. Each process keeps its own until the timed calls are over. Collectives on another lane then put them together;
// the barrier before each batch is on that lane too.
//
// # Methods that do some collectives only
//
// -method takes the names of the gallery (docs/design/methods.md), and that of a method which the program has
// registered (methods.Register): in a clone, a file beside those of this command that does so. A collective that the
// method does not do is not measured, and a line on standard error says why; where nothing is left to measure the exit
// code is 1.
//
// # Options, memory, exit code
//
// The environment variable GCL_OPTIONS (docs/design/options.md) overrides -method, -implementation and -reproducible,
// and sets what there is no flag for. The table says so, and has the method and implementation that were measured; -svg
// draws only those that were asked for.
//
// Before anything is measured the system is asked for the buffers of the largest size, two for each replica on this
// host, and has them back at once. If it refuses, the error is the system's, with exit code 2:
//
//	gclperf: two buffers of 200 GiB for each of 2 replicas on this host: mmap: cannot allocate memory; want ...
//
// Linux refuses what is more than its memory and swap, or than "ulimit -v". It does not refuse what others use at
// present, nor what a container may not have: a process that uses too much is ended then. A shell says "Killed", and
// where replicas are processes gclperf says which one was ended by signal 9. Scratch memory of the methods is not asked
// for.
//
// The exit code is 0, or 1 when a value was wrong or a collective or a process failed, 2 when the flags are wrong or
// ask for more memory than the system gives, 130 after Ctrl-C and 143 after SIGTERM.
package main
