package main

import (
	"flag"
	"fmt"
	"io"
	"strings"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
)

// raw are the flags as given.
type raw struct {
	measure.Flags
	place, svg, floor, out                               string
	n, iters, warm, check                                int
	time                                                 time.Duration
	reproducible, sync, dirty, batch, json, csv, verbose bool
	cpu, metrics                                         bool
}

// flags declares the flags.
func flags(r *raw) *flag.FlagSet {
	f := flag.NewFlagSet("gclperf", flag.ContinueOnError)
	r.Declare(f, measure.Usual{Collective: "allreduce", Method: "auto", Max: "64MiB", Factor: 2, Several: true,
		Simulates: true})
	f.IntVar(&r.n, "n", 2, fmt.Sprintf("`replicas`, %d at most; under gclrun or mpirun it is theirs, and with sim the "+
		"network's", measure.MaxReplicas))
	f.BoolVar(&r.reproducible, "reproducible", false, "reduce in rank order, so that the bits do not depend on the "+
		"method")
	f.StringVar(&r.place, "place", "both", "where the result goes: oop (out of place), ip (in place) or both")
	f.IntVar(&r.iters, "iters", 0, "timed `calls` at each size, or a few more to fill a batch; 0: as many as -time "+
		"allows")
	f.DurationVar(&r.time, "time", 100*time.Millisecond, "timed calls last about so long at each size; a batch a "+
		"twentieth of it, but 1ms at least")
	f.IntVar(&r.warm, "w", 0, "warm-up `calls` before the timed ones; two are made at least, which say how long a call "+
		"takes; not given: as many as fit into 20ms")
	f.IntVar(&r.check, "c", 1, "checked `calls` before the timed ones, and as many after them; 0: results are not "+
		"checked")
	f.BoolVar(&r.batch, "batch", false, "calls by a gcl.Batch, which has been put together before, in place of calls "+
		"that are made one by one")
	f.BoolVar(&r.sync, "sync", false, "a barrier before each call, which is timed by itself, in place of batches of "+
		"calls back to back")
	f.BoolVar(&r.dirty, "dirty", false, "also time calls before each of which every replica has rewritten its input: each "+
		"by itself after a barrier, without the rewriting")
	f.BoolVar(&r.metrics, "metrics", false, "calls are counted by a metrics.Metrics, whose cost is in the times")
	f.BoolVar(&r.cpu, "cpu", false, "print the processor time of a call, by all replicas, in place of busbw")
	f.BoolVar(&r.verbose, "v", false, "below each row of the table print p90, p99 and allocations")
	f.BoolVar(&r.json, "json", false, "print an array of JSON objects")
	f.BoolVar(&r.csv, "csv", false, "print the fields of -json as CSV, line by line")
	f.StringVar(&r.out, "out", "", "also append what is measured to this `file`: name.csv, name.jsonl (an object on each "+
		"line) or name.txt (the table)")
	f.StringVar(&r.svg, "svg", "", "also draw time and bus bandwidth against size, a line for each method and "+
		"implementation, into this `file`")
	f.StringVar(&r.floor, "floor", "", "with -svg: draw the floor too, from this `file` in the CSV that "+
		"bench/peers/arlimit.c prints")
	measure.Shorten(f)
	return f
}

// usage explains the program.
func usage(w io.Writer) {
	var buffers, parts, once, around []string // by what count is of, and by factor
	for i, name := range measure.CollectiveNames() {
		switch c := measure.Collective(i); {
		case c.PerReplica():
			parts = append(parts, name)
		case c.Rooted():
			once, buffers = append(once, name), append(buffers, name)
		default:
			around, buffers = append(around, name), append(buffers, name)
		}
	}
	fmt.Fprint(w, `gclperf measures collective communication and prints the table that users of nccl-tests know.

  gclperf -collective allreduce -n 8
  gclperf -collective all -n 2 -method auto,direct,clockwise_ring -svg perf.svg
  gclperf -b 8 -e 64M -f 8 -g 4 -d float -o sum -c 1
  gclperf -transport tcp -n 4
  mpirun -np 4 gclperf -collective all

size is that of the larger of a replica's two buffers, rounded up to whole elements for each replica. count is in
elements: of the buffer (`+strings.Join(buffers, ", ")+`) or for each replica (the others).
time is the median (p50) over batches of calls back to back, each as long as its slowest replica.
algbw is size / time. busbw is algbw times

  2(n-1)/n  `+strings.Join(around, ", ")+`
  (n-1)/n   `+strings.Join(parts, ", ")+`
  1         `+strings.Join(once, ", ")+`

#wrong counts wrong elements in one call before and one after the timed ones, or in as many as -c says. allocs are heap
allocations a call, by all replicas: the median over eighths of the timed calls, of each process by itself.

The short flags are those of nccl-tests, but for -n, which is replicas here, as -g is: -iters is nccl-tests' -n. Its
words are understood too: -d float,half -o sum, and -d all -o all for all types and operators that go together.

With -transport tcp, unix, shm or mpi gclperf starts a process for each replica, on this host. With several, as in
-transport tcp,unix,inproc, it measures over one after the other, and a second table has how many times as fast each is
as the first. Started by gclrun, mpirun or another launcher it is one replica of the job. Replica 0 prints.

With -transport sim the replicas are goroutines of this process on the network of -network, and times are those of that
network: time on the processor counts as none, and so each call takes as long. So 5 calls are timed unless -iters or
-time says how many. The column bound takes the place of busbw: how many percent of what the network allows.

With -dirty calls are timed once more, before each of which every replica has rewritten its input: benchmarks that never
do flatter caches. The column dirty takes the place of algbw.

With -cpu the column cpu takes the place of busbw: the processor time of a call, by all replicas together.

gcltune measures rules by which auto chooses, and how good its choices are.

The environment variable GCL_OPTIONS, as in {"method": "clockwise_ring"}, overrides -method, -implementation and
-reproducible: the method and implementation that were measured are printed, not those that were asked for, and -svg
draws only those that were asked for.

The exit code is 0; 1 when a value was wrong, or a collective or a process failed; 2 when the flags are wrong, or ask
for more memory than the system gives; 130 after Ctrl-C and 143 after SIGTERM.

`)
	f := flags(&raw{})
	command.PrintFlags(f, w)
}

// commandLine is a command line before its values are checked, for which it takes to know the job.
type commandLine struct {
	raw   raw
	flags *flag.FlagSet
	given measure.Given
	err   error // of the syntax; flag.ErrHelp for -h
}

// read reads the flags.
func read(args []string) *commandLine {
	l := &commandLine{}
	l.flags = flags(&l.raw)
	l.given, l.err = measure.Read(l.flags, args)
	for _, name := range []string{"tune", "sweep", "passes", "limit"} { // which were gclperf's once
		if what := "not defined: -" + name; l.err != nil && strings.Contains(l.err.Error()+" ", what+" ") {
			l.err = fmt.Errorf("flag provided but %s: it is what gcltune does", what)
		}
	}
	return l
}
