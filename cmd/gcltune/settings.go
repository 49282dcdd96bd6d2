package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

// settings are the flags, parsed and checked.
type settings struct {
	*measure.Settings
	counts  []int              // of replicas, one after the other
	auto    gcl.Implementation // of auto, where it is compared
	table   string             // the file for rules, or ""
	passes  int
	samples string        // the file for what was measured, or ""
	time    time.Duration // of a way in a pass
	limit   time.Duration // of all of it, or of the part in this process
}

// sweeps reports whether auto is compared with the others: nothing is written.
func (s *settings) sweeps() bool { return s.table == "" && s.samples == "" }

// raw are the flags as given.
type raw struct {
	measure.Flags
	counts      counts
	table, from string
	samples     string
	passes      int
	time, limit time.Duration
}

// counts are the numbers of replicas of -n.
type counts []int

// usualCounts are powers of two, and some between, which methods by powers of two find harder.
var usualCounts = counts{2, 3, 4, 6, 8, 12, 16}

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

const mostPasses = 100

// partOf is set in the environment of the processes that gcltune starts. Its value is how long they have.
const partOf = "GCLTUNE_LIMIT"

// flags declares the flags.
func flags(r *raw) *flag.FlagSet {
	f := flag.NewFlagSet("gcltune", flag.ContinueOnError)
	r.Declare(f, measure.Usual{Collective: "all", Method: "all", Max: "8MiB", Factor: 4})
	r.counts = slices.Clone(usualCounts)
	f.Var(&r.counts, "n", fmt.Sprintf("numbers of `replicas`, with commas, %d at most", measure.MaxReplicas))
	f.StringVar(&r.table, "table", "", "write rules for auto into this `file`; without it auto is compared with the others")
	f.StringVar(&r.samples, "samples", "", "write what was measured into this `file`, for -from")
	f.StringVar(&r.from, "from", "", "measure nothing: make the -table of these `files` of samples, with commas; of several "+
		"machines it has what gains on each")
	f.IntVar(&r.passes, "passes", 3, "times that each point is measured; in each the methods take turns")
	f.DurationVar(&r.time, "time", 10*time.Millisecond, "the five batches of a method in a pass take about so long together")
	f.DurationVar(&r.limit, "limit", 10*time.Minute, "it ends about then: with fewer passes, or with an error if not all "+
		"was measured once")
	measure.Shorten(f)
	return f
}

// usage explains the program.
func usage(w io.Writer) {
	fmt.Fprint(w, `gcltune measures methods and implementations over several numbers of replicas.

  gcltune -transport tcp -table tcp.txt     writes a table of rules by which auto chooses
  gcltune -transport tcp -n 2,4,8           says how good the choices of auto are
  gcltune -from a.jsonl,b.jsonl -table tcp.txt    makes a table of what -samples has written on two machines

In -passes passes each method and implementation is measured at each point: among goroutines Syncless and Syncful, over
shm Syncless, if no -implementation is given. What is far behind the fastest is measured once. It ends at about -limit;
the file of -table is replaced then, or left as it was. docs/design/tuning.md says how to read and edit a table.

size is that of the larger of a replica's two buffers, rounded up to whole elements for each replica. The short flags
are those of nccl-tests.

With -transport tcp, unix, shm or mpi gcltune starts a process for each replica, on this host.

The environment variable GCL_OPTIONS sets what there is no flag for; method and collectiveImplementation may not be in
it.

The exit code is 0; 1 when a value was wrong, or a collective or a process failed; 2 when the flags are wrong, or ask
for more memory than the system gives; 130 after Ctrl-C and 143 after SIGTERM.

`)
	command.PrintFlags(flags(&raw{}), w)
}

// settings checks the flags, of which some were given. job is the number of replicas of this process's job, 0 without
// one.
func (r *raw) settings(given measure.Given, job int) (*settings, error) {
	s := &settings{counts: r.counts, table: r.table, samples: r.samples, passes: r.passes, time: r.time, limit: r.limit}
	switch {
	case given.Has("table") && r.table == "":
		return nil, errors.New("-table has no name of a file")
	case given.Has("samples") && r.samples == "":
		return nil, errors.New("-samples has no name of a file")
	case r.passes < 1 || r.passes > mostPasses:
		return nil, fmt.Errorf("-passes %d, want 1 to %d", r.passes, mostPasses)
	case r.limit <= 0:
		return nil, fmt.Errorf("-limit %v, want more than 0", r.limit)
	case r.time <= 0:
		return nil, fmt.Errorf("-time %v, want more than 0", r.time)
	}
	if job > 0 {
		text, started := os.LookupEnv(partOf)
		limit, err := time.ParseDuration(text)
		if !started || err != nil {
			return nil, errors.New("gcltune starts jobs of several numbers of replicas itself: start it by itself")
		}
		s.limit = limit
	}
	var err error
	if s.Settings, err = r.Settings(given, slices.Max(r.counts), job); err != nil {
		return nil, err
	}
	slices.SortStableFunc(s.Methods, func(a, b methods.Method) int { // of those that are alike the simpler one
		return cmp.Compare(a.Rings(), b.Rings())
	})
	switch {
	case given.Has("implementation"):
	case !s.Processes:
		s.Implementations = []gcl.Implementation{gcl.Syncless, gcl.Syncful}
	default:
		s.auto = implementationOver(s.Transport)
		s.Implementations = []gcl.Implementation{s.auto}
	}
	return s, s.check(given)
}

// implementationOver is the implementation by which ways are measured over a transport between processes if no
// -implementation is given. Over shm it is Syncless: a call on what gcl.Alloc gave goes in one pass over peer memory
// whatever the rules for messages are, and these are for the other calls.
func implementationOver(transport string) gcl.Implementation {
	if transport == "shm" {
		return gcl.Syncless
	}
	return gcl.AutoImplementation
}

// check looks for what cannot be compared.
func (s *settings) check(given measure.Given) error {
	if err := measure.Once("-n", s.counts); err != nil {
		return err
	}
	slices.Sort(s.counts)
	switch {
	case s.counts[0] < 2:
		return fmt.Errorf("-n %d, want 2 or more: one replica sends nothing", s.counts[0])
	case s.Root >= s.counts[0]:
		return fmt.Errorf("%s %d is not a rank of %d replicas", given.As("root"), s.Root, s.counts[0])
	}
	for _, m := range s.Methods {
		if m == methods.Auto || m == methods.Native {
			return fmt.Errorf("-method %v is not compared: want some of those that make schedules", m)
		}
	}
	if slices.Contains(s.Implementations, gcl.Hybrid) {
		return errors.New("-implementation Hybrid is not compared: it is for several hosts")
	}
	return nil
}
