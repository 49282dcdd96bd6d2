package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
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
	beside          bool // this process is on the host of replica 0
	transport       string
	processes       bool // each replica is a process of its own
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
	warm  int // calls before the timed ones, -1: as many as fit into warmUp
	tries int // checked calls before the timed ones, and as many after them
	sync  bool
	batch bool // calls are made by a gcl.Batch

	compares *comparison // of -tune and -sweep; nil without them

	format  format
	verbose bool // the table has percentiles and allocations
	svg     string
	out     string // file to append to, "" for none
	floor   []floorPoint
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
	asJSONLines // of -out only
)

// settings checks the flags, of which some were given.
func (r *raw) settings(given givenFlags, job int) (*settings, error) {
	s := &settings{root: r.root, iters: r.iters, time: r.time, reproducible: r.reproducible, sync: r.sync,
		batch: r.batch, warm: -1, tries: r.check, verbose: r.verbose, svg: r.svg, out: r.out}
	if r.tune != "" || r.sweep || given.has("tune") {
		return r.comparing(given, job)
	}
	if err := refuseGiven(given, []string{"passes", "limit"}, "only with -tune and -sweep"); err != nil {
		return nil, err
	}
	if len(r.counts) > 1 {
		return nil, fmt.Errorf("-n %v has several numbers, want one, or -tune or -sweep with them", &r.counts)
	}
	return r.plain(s, given, job)
}

// plain checks the flags of a run that prints what it measures.
func (r *raw) plain(s *settings, given givenFlags, job int) (*settings, error) {
	var err error
	if s.collectives, err = parseCollectives(r.collective); err != nil {
		return nil, err
	}
	if err := r.connect(s, given, job); err != nil {
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
		return nil, unknown(given.as("dtype"), r.dtype, dtypeNames())
	}
	if s.op, err = gcl.ParseOperator(strings.ToUpper(r.op)); err != nil {
		return nil, unknown(given.as("op"), r.op, operatorNames())
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
	return s, s.checkFlags(r, given)
}

// checkFlags looks at the numbers and files.
func (s *settings) checkFlags(r *raw, given givenFlags) error {
	switch {
	case s.n < 1 || s.n > maxReplicas:
		return fmt.Errorf("-n %d, want 1 to %d", s.n, maxReplicas)
	case r.root < 0 || r.root >= s.n:
		return fmt.Errorf("%s %d is not a rank, 0 to %d", given.as("root"), r.root, s.n-1)
	case r.check < 0 || r.check > maxChecked:
		return fmt.Errorf("-c %d, want 0 to %d", r.check, maxChecked)
	case given.has("w") && (r.warm < 0 || r.warm > maxWarmUp):
		return fmt.Errorf("-w %d, want 0 to %d", r.warm, maxWarmUp)
	case r.verbose && (r.json || r.csv):
		return errors.New("-v is for the table: -json and -csv have its columns anyway")
	case given.has("iters") && r.iters < 1:
		return fmt.Errorf("-iters %d, want 1 or more", r.iters)
	case r.sync && r.iters > maxSynced:
		return fmt.Errorf("-iters %d, want %d at most with -sync", r.iters, maxSynced)
	case given.has("iters") && given.has("time"):
		return errors.New("-iters and -time exclude each other")
	case r.time <= 0:
		return fmt.Errorf("-time %v, want more than 0", r.time)
	case given.has("svg") && r.svg == "":
		return errors.New("-svg has no name of a file")
	case given.has("out") && r.out == "":
		return errors.New("-out has no name of a file")
	case given.has("floor") && r.svg == "":
		return errors.New("-floor is drawn by -svg only")
	}
	if given.has("w") {
		s.warm = r.warm
	}
	if given.has("floor") {
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
func (r *raw) sizeList(given givenFlags) ([]int, error) {
	if given.has("sizes") {
		if given.has("min") || given.has("max") || given.has("factor") {
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
		return nil, fmt.Errorf("%s: %w", given.as("min"), err)
	}
	last, err := parseSize(r.max)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", given.as("max"), err)
	}
	if first > last {
		return nil, fmt.Errorf("%s %s is more than %s %s", given.as("min"), r.min, given.as("max"), r.max)
	}
	if r.factor < 2 {
		return nil, fmt.Errorf("%s %d, want 2 or more", given.as("factor"), r.factor)
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
	refused, err := typed[s.dtype].probe(ctx, s.op)
	if refused != nil {
		return fmt.Errorf("-op %v -dtype %v: %w", s.op, s.dtype, innermost(refused))
	}
	return err
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
	for _, m := range methods.Values()[1:] { // without auto
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

func dtypeNames() (names []string) {
	for _, d := range tensor.DTypes() {
		names = append(names, d.String())
	}
	return names
}

func operatorNames() (names []string) {
	for op := range gcl.Operator(math.MaxUint8) {
		if name, err := op.MarshalText(); err == nil {
			names = append(names, string(name))
		}
	}
	return names
}
