package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// settings are the flags, parsed and checked.
type settings struct {
	collectives     []collective
	n               int
	transport       connection
	methods         []methods.Method
	implementations []gcl.Implementation
	reproducible    bool
	dtype           tensor.DType
	op              gcl.Operator
	root            int
	places          []place

	sizes []int // bytes, as asked for
	iters int   // calls at each size, 0: as many as fit into time
	time  time.Duration
	sync  bool
	batch bool // calls are made by a gcl.Batch

	format format
	svg    string
	floor  []floorPoint
}

// maxReplicas bounds -n, since what replicas of one process need for messages between all of them grows with the
// square of their number: 250 MB at 1,000, 4 GB at 4,096.
const maxReplicas = 1024

// format is how measurements are printed.
type format uint8

const (
	asTable format = iota
	asJSON
	asCSV
)

// raw are the flags as given.
type raw struct {
	collective, transport, method, implementation string
	dtype, op, place, min, max, sizes, svg, floor string
	n, root, factor, iters                        int
	time                                          time.Duration
	reproducible, sync, batch, json, csv          bool
}

// flags declares the flags.
func flags(r *raw) *flag.FlagSet {
	f := flag.NewFlagSet("gclperf", flag.ContinueOnError)
	f.StringVar(&r.collective, "collective", "allreduce",
		"what to measure: some of "+strings.Join(collectiveNames(), ", ")+", with commas; or all")
	f.IntVar(&r.n, "n", 2, fmt.Sprintf("`replicas`, %d at most", maxReplicas))
	f.StringVar(&r.transport, "transport", "inproc", "what the replicas talk over: inproc, goroutines of one process")
	f.StringVar(&r.method, "method", "auto", "methods, with commas: auto, or some of "+methodNames())
	f.StringVar(&r.implementation, "implementation", "Auto", "implementations, with commas: Auto, Syncless "+
		"(messages), Syncful (barriers and each other's memory), Hybrid (Syncful here, where all replicas are on one "+
		"host)")
	f.BoolVar(&r.reproducible, "reproducible", false, "reduce in rank order, so that the bits do not depend on the "+
		"method")
	f.StringVar(&r.dtype, "dtype", "float32", "element type: "+dtypeNames())
	f.StringVar(&r.op, "op", "ADD", "operator of a reduction: ADD, MEAN, MUL, MIN, MAX, LOGICAL_AND, LOGICAL_OR, "+
		"SQUARE_ADD or LOCAL; in lower case too")
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
	f.BoolVar(&r.batch, "batch", false, "calls by a gcl.Batch, which has been put together before, in place of calls "+
		"that are made one by one")
	f.BoolVar(&r.sync, "sync", false, "a barrier before each call, which is timed by itself, in place of batches of "+
		"calls back to back")
	f.BoolVar(&r.json, "json", false, "print an array of JSON objects")
	f.BoolVar(&r.csv, "csv", false, "print the fields of -json as CSV, line by line")
	f.StringVar(&r.svg, "svg", "", "also draw time and bus bandwidth against size, a line for each method and "+
		"implementation, into this `file`")
	f.StringVar(&r.floor, "floor", "", "with -svg: draw the floor too, from this `file` in the CSV that "+
		"bench/peers/arlimit.c prints")
	return f
}

// usage explains the program.
func usage(w interface{ Write([]byte) (int, error) }) {
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

size is that of the larger of a replica's two buffers, rounded up to whole elements for each replica. count is in elements: of the buffer
(`+strings.Join(buffers, ", ")+`) or for each replica (the others). time is the median (p50) over batches of calls back to back, each as long as its slowest replica.
algbw is size / time; busbw is algbw x 2(n-1)/n (`+strings.Join(around, ", ")+`), (n-1)/n
(`+strings.Join(parts, ", ")+`) or 1 (`+strings.Join(once, ", ")+`). #wrong counts
wrong elements in one call before and one after the timed ones. allocs are heap allocations a call, by all replicas: the median over eighths of the timed calls.

The environment variable GCL_OPTIONS, as in {"method": "clockwise_ring"}, overrides -method, -implementation and -reproducible: what is printed for a method or
an implementation is what was measured, not what was asked for, and -svg draws only those that were asked for.

The exit code is 0; 1 when a value was wrong or a collective failed; 2 when the flags are wrong, or ask for more memory than there is;
130 after an interrupt.

`)
	f := flags(&raw{})
	f.SetOutput(w)
	f.PrintDefaults()
}

// parse reads and checks the flags. For -h the error is flag.ErrHelp.
func parse(args []string) (*settings, error) {
	var r raw
	f := flags(&r)
	f.Usage = func() {}
	f.SetOutput(discard{})
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	given := map[string]bool{}
	f.Visit(func(f *flag.Flag) { given[f.Name] = true })
	return r.settings(given)
}

// discard takes what package flag has to say: the error says it again.
type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// settings checks the flags, of which some were given.
func (r *raw) settings(given map[string]bool) (*settings, error) {
	s := &settings{n: r.n, root: r.root, iters: r.iters, time: r.time, reproducible: r.reproducible, sync: r.sync,
		batch: r.batch, svg: r.svg}
	var err error
	if s.collectives, err = parseCollectives(r.collective); err != nil {
		return nil, err
	}
	if s.transport, err = parseTransport(r.transport); err != nil {
		return nil, err
	}
	for name := range strings.SplitSeq(r.method, ",") {
		m, err := methods.Parse(name)
		if err != nil {
			return nil, fmt.Errorf("-method: %w", err)
		}
		s.methods = append(s.methods, m)
	}
	for name := range strings.SplitSeq(r.implementation, ",") {
		i, err := parseImplementation(name)
		if err != nil {
			return nil, fmt.Errorf("-implementation: %w", err)
		}
		s.implementations = append(s.implementations, i)
	}
	if err := errors.Join(once("-collective", s.collectives), once("-method", s.methods),
		once("-implementation", s.implementations)); err != nil {
		return nil, err
	}
	if s.dtype, err = tensor.ParseDType(r.dtype); err != nil {
		return nil, fmt.Errorf("-dtype: %w", err)
	}
	if s.op, err = gcl.ParseOperator(strings.ToUpper(r.op)); err != nil {
		return nil, fmt.Errorf("-op: %w", err)
	}
	if s.places, err = parsePlaces(r.place); err != nil {
		return nil, err
	}
	if s.sizes, err = r.sizeList(given); err != nil {
		return nil, err
	}
	switch {
	case r.json && r.csv:
		return nil, errors.New("-json and -csv exclude each other")
	case r.json:
		s.format = asJSON
	case r.csv:
		s.format = asCSV
	}
	return s, r.check(s, given)
}

// check looks at the numbers and files.
func (r *raw) check(s *settings, given map[string]bool) error {
	switch {
	case r.n < 1 || r.n > maxReplicas:
		return fmt.Errorf("-n %d, want 1 to %d", r.n, maxReplicas)
	case r.root < 0 || r.root >= r.n:
		return fmt.Errorf("-root %d is not a rank, 0 to %d", r.root, r.n-1)
	case given["iters"] && r.iters < 1:
		return fmt.Errorf("-iters %d, want 1 or more", r.iters)
	case r.sync && r.iters > maxSynced:
		return fmt.Errorf("-iters %d, want %d at most with -sync", r.iters, maxSynced)
	case given["iters"] && given["time"]:
		return errors.New("-iters and -time exclude each other")
	case r.time <= 0:
		return fmt.Errorf("-time %v, want more than 0", r.time)
	case given["svg"] && r.svg == "":
		return errors.New("-svg has no name of a file")
	case given["floor"] && r.svg == "":
		return errors.New("-floor is drawn by -svg only")
	}
	if given["svg"] { // noticed now rather than after minutes
		if dir, err := os.Stat(filepath.Dir(r.svg)); err != nil || !dir.IsDir() {
			return fmt.Errorf("-svg %s: there is no such directory", r.svg)
		}
		if file, err := os.Stat(r.svg); err == nil && file.IsDir() {
			return fmt.Errorf("-svg %s is a directory, want a file", r.svg)
		}
	}
	if given["floor"] {
		text, err := os.ReadFile(r.floor)
		if err != nil {
			return fmt.Errorf("-floor: %w", err)
		}
		if s.floor, err = parseFloor(string(text)); err != nil {
			return fmt.Errorf("-floor %s: %w", r.floor, err)
		}
	}
	return nil
}

// once refuses a list in which something is named twice: the tables and lines of the two could not be told apart.
func once[T comparable](flag string, list []T) error {
	for i, v := range list {
		if slices.Contains(list[:i], v) {
			return fmt.Errorf("%s: %v is given twice", flag, v)
		}
	}
	return nil
}

// sizeList is the sizes asked for, in bytes.
func (r *raw) sizeList(given map[string]bool) ([]int, error) {
	if given["sizes"] {
		if given["min"] || given["max"] || given["factor"] {
			return nil, errors.New("-sizes excludes -min, -max and -factor")
		}
		var out []int
		for text := range strings.SplitSeq(r.sizes, ",") {
			size, err := parseSize(text)
			if err != nil {
				return nil, fmt.Errorf("-sizes: %w", err)
			}
			if len(out) > 0 && size <= out[len(out)-1] {
				return nil, fmt.Errorf("-sizes: %s comes after %s, want smaller ones first and each once",
					text, formatSize(out[len(out)-1]))
			}
			out = append(out, size)
		}
		return out, nil
	}
	first, err := parseSize(r.min)
	if err != nil {
		return nil, fmt.Errorf("-min: %w", err)
	}
	last, err := parseSize(r.max)
	if err != nil {
		return nil, fmt.Errorf("-max: %w", err)
	}
	if first > last {
		return nil, fmt.Errorf("-min %s is more than -max %s", r.min, r.max)
	}
	if r.factor < 2 {
		return nil, fmt.Errorf("-factor %d, want 2 or more", r.factor)
	}
	return series(first, last, r.factor), nil
}

// parseImplementation is gcl's, in lower case too.
func parseImplementation(text string) (gcl.Implementation, error) {
	for _, i := range []gcl.Implementation{gcl.AutoImplementation, gcl.Syncless, gcl.Syncful, gcl.Hybrid} {
		if strings.EqualFold(text, i.String()) {
			return i, nil
		}
	}
	return gcl.ParseImplementation(text) // for its error
}

// probe finds out from gcl whether the operator takes the element type.
func (s *settings) probe(ctx context.Context) error {
	if !slices.ContainsFunc(s.collectives, collective.reduces) {
		return nil
	}
	if err := typed[s.dtype].probe(ctx, s.op); err != nil {
		return fmt.Errorf("-op %v -dtype %v: %w", s.op, s.dtype, innermost(err))
	}
	return nil
}

// innermost is the error at the bottom of a chain: why, without where.
func innermost(err error) error {
	for {
		inner := errors.Unwrap(err)
		if list, ok := err.(interface{ Unwrap() []error }); ok && len(list.Unwrap()) > 0 {
			inner = list.Unwrap()[len(list.Unwrap())-1]
		}
		if inner == nil {
			return err
		}
		err = inner
	}
}

func methodNames() string {
	var names []string
	for _, m := range methods.All() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

func dtypeNames() string {
	var names []string
	for _, d := range tensor.DTypes() {
		names = append(names, d.String())
	}
	return strings.Join(names, ", ")
}
