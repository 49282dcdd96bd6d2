package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/internal/command"
)

// raw are the flags as given.
type raw struct {
	collective, transport, method, implementation string
	dtype, op, place, min, max, sizes, svg, floor string
	out, tune                                     string
	n                                             int // the first of counts
	counts                                        counts
	root, factor, iters, warm, check, passes      int
	time, limit                                   time.Duration
	reproducible, sync, batch, json, csv, verbose bool
	sweep                                         bool
}

// counts are the numbers of replicas of -n.
type counts []int

// String is the numbers with commas.
func (c *counts) String() string {
	var out []string
	for _, n := range *c {
		out = append(out, strconv.Itoa(n))
	}
	return strings.Join(out, ",")
}

// Set reads numbers with commas between them. They take the place of those before.
func (c *counts) Set(text string) error {
	var out counts
	for word := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(word)
		if err != nil {
			return errors.New("parse error")
		}
		out = append(out, n)
	}
	*c = out
	return nil
}

// shortFlags are nccl-tests' letters for flags of ours.
var shortFlags = map[string]string{"b": "min", "e": "max", "f": "factor", "d": "dtype", "o": "op", "r": "root"}

// givenFlags are the flags on a command line, by their long names. The value is the name as it was given.
type givenFlags map[string]string

func (g givenFlags) has(name string) bool { return g[name] != "" }

// as is a flag as it was given, for errors: -b where that was given for -min.
func (g givenFlags) as(name string) string { return "-" + cmp.Or(g[name], name) }

// flags declares the flags.
func flags(r *raw) *flag.FlagSet {
	f := flag.NewFlagSet("gclperf", flag.ContinueOnError)
	f.StringVar(&r.collective, "collective", "allreduce",
		"what to measure: some of "+strings.Join(collectiveNames(), ", ")+", with commas; or all")
	r.counts = counts{2}
	f.Var(&r.counts, "n", fmt.Sprintf("`replicas`, %d at most; under gclrun or mpirun it is theirs; with -tune and -sweep "+
		"several, with commas, %s if not given", maxReplicas, &usualCounts))
	f.StringVar(&r.tune, "tune", "", "measure methods and implementations over several numbers of replicas, and write "+
		"rules for auto into this `file`: see docs/tuning.md")
	f.BoolVar(&r.sweep, "sweep", false, "compare auto with each method and implementation over several numbers of "+
		"replicas, and print how far it is from the best")
	f.IntVar(&r.passes, "passes", 3, "times that -tune and -sweep measure each point; in each the methods take turns")
	f.DurationVar(&r.limit, "limit", 10*time.Minute, "-tune and -sweep end about then: with fewer passes, or with an "+
		"error if not all was measured once")
	f.StringVar(&r.transport, "transport", inproc, "what the replicas talk over: inproc, goroutines of one process; "+
		"tcp or unix, a process for each, which gclperf starts; mpi, the same by mpirun, if built with -tags mpi; under "+
		"gclrun or mpirun it is theirs unless given")
	f.StringVar(&r.method, "method", "auto", "methods, with commas: auto, or some of "+methodNames())
	f.StringVar(&r.implementation, "implementation", "Auto", "implementations, with commas: Auto, Syncless "+
		"(messages), Syncful (barriers and each other's memory), Hybrid (Syncful here, where all replicas are on one "+
		"host)")
	f.BoolVar(&r.reproducible, "reproducible", false, "reduce in rank order, so that the bits do not depend on the "+
		"method")
	f.StringVar(&r.dtype, "dtype", "float32", "element type: "+strings.Join(dtypeNames(), ", "))
	f.StringVar(&r.op, "op", "ADD", "operator of a reduction: "+strings.Join(operatorNames(), ", ")+
		"; in lower case too")
	f.IntVar(&r.root, "root", 0, "`rank` that alone has the data or the result of a collective with a root")
	f.StringVar(&r.place, "place", "both", "where the result goes: oop (out of place), ip (in place) or both")
	f.StringVar(&r.min, "min", "8", "first `size` in bytes of the larger buffer of a replica: 8, 1K, 1KiB, 64MiB; K "+
		"is 1024")
	f.StringVar(&r.max, "max", "64MiB", "last `size`")
	f.IntVar(&r.factor, "factor", 2, "each size is that many times the one before")
	f.StringVar(&r.sizes, "sizes", "", "exactly these sizes, with commas, smaller ones first, in place of -min, -max "+
		"and -factor")
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
	f.BoolVar(&r.verbose, "v", false, "below each row of the table print p90, p99 and allocations")
	f.BoolVar(&r.json, "json", false, "print an array of JSON objects")
	f.BoolVar(&r.csv, "csv", false, "print the fields of -json as CSV, line by line")
	f.StringVar(&r.out, "out", "", "also append what is measured to this `file`: name.csv, name.jsonl (an object on each "+
		"line) or name.txt (the table)")
	f.StringVar(&r.svg, "svg", "", "also draw time and bus bandwidth against size, a line for each method and "+
		"implementation, into this `file`")
	f.StringVar(&r.floor, "floor", "", "with -svg: draw the floor too, from this `file` in the CSV that "+
		"bench/peers/arlimit.c prints")
	for short, long := range shortFlags {
		f.Var(f.Lookup(long).Value, short, "short for -"+long)
	}
	return f
}

// usage explains the program.
func usage(w io.Writer) {
	var buffers, parts, once, around []string // by what count is of, and by factor
	for i, name := range collectiveNames() {
		switch c := collective(i); {
		case c.perReplica():
			parts = append(parts, name)
		case c.rooted():
			once, buffers = append(once, name), append(buffers, name)
		default:
			around, buffers = append(around, name), append(buffers, name)
		}
	}
	fmt.Fprint(w, `gclperf measures collective communication and prints the table that users of nccl-tests know.

  gclperf -collective allreduce -n 8
  gclperf -collective all -n 2 -method auto,direct,clockwise_ring -svg perf.svg
  gclperf -transport tcp -n 4
  mpirun -np 4 gclperf -collective all
  gclperf -tune tcp.txt -transport tcp
  gclperf -sweep -n 2,4,8

size is that of the larger of a replica's two buffers, rounded up to whole elements for each replica. count is in
elements: of the buffer (`+strings.Join(buffers, ", ")+`) or for each replica (the others).
time is the median (p50) over batches of calls back to back, each as long as its slowest replica.
algbw is size / time. busbw is algbw times

  2(n-1)/n  `+strings.Join(around, ", ")+`
  (n-1)/n   `+strings.Join(parts, ", ")+`
  1         `+strings.Join(once, ", ")+`

#wrong counts wrong elements in one call before and one after the timed ones, or in as many as -c says. allocs are heap
allocations a call, by all replicas: the median over eighths of the timed calls, of each process by itself.

The short flags are those of nccl-tests, but for -n, which is replicas here: -iters is nccl-tests' -n.

With -transport tcp, unix or mpi gclperf starts a process for each replica, on this host. Started by gclrun, mpirun or
another launcher it is one replica of the job. Replica 0 prints.

-tune writes rules by which auto chooses, and -sweep says how good its choices are. Both measure with several numbers of
replicas: in -passes passes each method and implementation at each point for about -time (10ms if not given; -max is
8MiB, -factor 4, -collective all eight for -tune and five for -sweep). What is far behind the fastest is measured once.
Both end at about -limit (10m); -tune replaces its file then or leaves it as it was. docs/tuning.md says how to read and
edit a table.

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
	given givenFlags
	err   error // of the syntax; flag.ErrHelp for -h
}

// read reads the flags.
func read(args []string) *commandLine {
	l := &commandLine{given: givenFlags{}}
	f := flags(&l.raw)
	f.Usage = func() {}
	f.SetOutput(io.Discard) // the error says it again
	switch l.err = f.Parse(args); {
	case l.err != nil:
		l.err = explain(f, args, l.err)
	case f.NArg() > 0:
		l.err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	l.raw.n = l.raw.counts[0]
	f.Visit(func(f *flag.Flag) {
		if long, short := shortFlags[f.Name]; short {
			l.given[long] = f.Name
		} else if !l.given.has(f.Name) {
			l.given[f.Name] = f.Name
		}
	})
	return l
}

// settings checks the flags. job is the number of replicas in the job of this process, 0 without one.
func (l *commandLine) settings(job int) (*settings, error) {
	if l.err != nil {
		return nil, l.err
	}
	return l.raw.settings(l.given, job)
}
