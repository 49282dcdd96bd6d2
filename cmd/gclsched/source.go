package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
	"gogcl.dev/topology"
)

// source is where the schedule comes from: a file, or a method by name.
type source struct {
	flags *flag.FlagSet
	file  string // "": the method

	method, collective, shape, domains string
	size, root, pieces                 int
	inPlace, rankOrder                 bool

	methods  []methods.Method // the one of spec, or with -method all those of the library
	spec     methods.Spec
	topology topology.Config // Replicas: none: all ranks in one domain
}

// newSource declares the flags.
func newSource(f *flag.FlagSet) *source {
	s := &source{flags: f}
	f.StringVar(&s.method, "method", "", "`name` of a method, in place of a file: one of "+methodNames()+
		"; all, which is for price")
	f.StringVar(&s.collective, "collective", "all-reduce", "`name` of what the method does: one of "+
		strings.Join(collectiveNames(), ", "))
	f.IntVar(&s.size, "n", 8, "number of `ranks` of the method")
	f.IntVar(&s.root, "root", 0, "`rank` of the method's root, if the collective has one")
	f.IntVar(&s.pieces, "pieces", 0, "number of `pieces` of a method that is a pipeline; 0: one")
	f.BoolVar(&s.inPlace, "in-place", false, "the method's Output is its Input: an all-to-all is another then")
	f.BoolVar(&s.rankOrder, "rank-order", false, "the method reduces in the order of the ranks")
	f.StringVar(&s.shape, "shape", "clique", "how the ranks of a domain are linked: one of "+
		strings.Join(shapeNames(), ", "))
	f.StringVar(&s.domains, "domains", "", "`numbers` of ranks in each link domain, with commas; all in one unless given")
	return s
}

// methodNames lists the methods that make schedules.
func methodNames() string {
	var names []string
	for _, m := range methods.All() {
		names = append(names, m.String())
	}
	return strings.Join(names, ", ")
}

// collectives are all that have schedules.
func collectives() []schedule.Collective { return append(schedule.Collectives(), schedule.Barrier) }

func collectiveNames() []string {
	var names []string
	for _, c := range collectives() {
		names = append(names, c.String())
	}
	return names
}

// shapes are those of topology. Their names have hyphens here.
var shapes = []topology.Shape{topology.Clique, topology.OpenLadder, topology.JoinedLadder}

func shapeNames() []string {
	var names []string
	for _, s := range shapes {
		names = append(names, strings.ReplaceAll(s.String(), " ", "-"))
	}
	return names
}

// check looks at the command line of a command, when the flags have been read.
func (s *source) check(command string) error {
	given := map[string]bool{}
	s.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	switch {
	case s.flags.NArg() > 1 && strings.HasPrefix(s.flags.Arg(1), "-"):
		return fmt.Errorf("unexpected argument %q: flags come before FILE", s.flags.Arg(1))
	case s.flags.NArg() > 1:
		return fmt.Errorf("unexpected argument %q", s.flags.Arg(1))
	case s.flags.NArg() == 1 && given["method"]:
		return fmt.Errorf("unexpected argument %q: with -method there is no FILE", s.flags.Arg(0))
	case s.flags.NArg() == 1 && s.flags.Arg(0) == "":
		return errors.New("an empty FILE, want the name of one")
	case s.flags.NArg() == 0 && !given["method"]:
		return errors.New("no schedule, want FILE or -method NAME")
	}
	if err := s.place(); err != nil {
		return err
	}
	if s.flags.NArg() == 1 {
		s.file = s.flags.Arg(0)
		if given["network"] && (given["shape"] || given["domains"]) {
			return errPlacedTwice
		}
		for _, name := range []string{"collective", "n", "root", "pieces", "in-place", "rank-order", "shape",
			"domains"} {
			where := name == "shape" || name == "domains"
			if given[name] && !(where && command == "price") {
				return fmt.Errorf("-%s is for -method, and not for a file", name)
			}
		}
		return nil
	}
	return s.specify(command, given)
}

var errPlacedTwice = errors.New("-shape and -domains with -network, which says how the ranks are linked, and no " +
	"method that goes round rings")

// place reads -shape and -domains.
func (s *source) place() error {
	i := slices.Index(shapeNames(), s.shape)
	if i < 0 {
		return fmt.Errorf("-shape %.100q, want one of %s", s.shape, strings.Join(shapeNames(), ", "))
	}
	s.topology.Shape = shapes[i]
	if s.domains == "" {
		return nil
	}
	for text := range strings.SplitSeq(s.domains, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			return fmt.Errorf("-domains %.100q: %.100q is no number of ranks", s.domains, text)
		}
		s.topology.Replicas = append(s.topology.Replicas, n)
	}
	return nil
}

// specify makes the specification of a method. Flags that it has no use for are mistakes.
func (s *source) specify(command string, given map[string]bool) error {
	if err := s.list(command); err != nil {
		return err
	}
	i := slices.IndexFunc(collectives(), func(c schedule.Collective) bool {
		return c.String() == s.collective || strings.ReplaceAll(c.String(), "-", "") == s.collective
	})
	if i < 0 {
		return fmt.Errorf("-collective %.100q, want one of %s", s.collective, strings.Join(collectiveNames(), ", "))
	}
	if s.size < 1 || s.size > maxRanks {
		return fmt.Errorf("-n %d, want 1 to %d", s.size, maxRanks)
	}
	m := s.methods[0]
	rings := slices.ContainsFunc(s.methods, func(m methods.Method) bool { return m.Rings() > 0 })
	s.spec = methods.Spec{Method: m, Collective: collectives()[i], Size: s.size, Root: s.root, Pieces: s.pieces,
		InPlace: s.inPlace, RankOrder: s.rankOrder}
	contract := s.spec.Collective.Contract()
	switch {
	case s.inPlace && contract.Output != schedule.Blocks:
		return fmt.Errorf("-in-place of %v, whose schedule is the same: want -collective all-to-all", s.spec.Collective)
	case s.rankOrder && (!contract.Combines || contract.Again):
		return fmt.Errorf("-rank-order of %v, which has no order: want all-reduce, reduce-scatter or reduce",
			s.spec.Collective)
	case s.pieces != 0 && len(s.methods) > 1:
		return errors.New("-pieces of -method all, which finds the best number for each pipeline: want one method")
	case s.pieces != 0 && s.spec.Pipelined(1<<40, 1).Pieces == 0:
		return fmt.Errorf("-pieces of %v by %v, which is no pipeline: want a broadcast or a reduce on rings",
			s.spec.Collective, m)
	case given["network"] && !rings && (given["shape"] || given["domains"]):
		return errPlacedTwice
	case command != "price" && !rings && (given["shape"] || given["domains"]):
		return fmt.Errorf("-shape and -domains of %v, which follows no ring: want a method that does, or price", m)
	}
	return nil
}

// list makes the list of methods: one, or all.
func (s *source) list(command string) error {
	if s.method == allMethods {
		if command != "price" {
			return fmt.Errorf("-method all is for price, want one method to %s", command)
		}
		s.methods = methods.All()
		return nil
	}
	m, err := methods.Parse(s.method)
	if err != nil {
		return fmt.Errorf("-method: no method %.100q here, want one of %s; a method that another program registers "+
			"has to be a FILE, with what its schedule's String says", s.method, methodNames())
	}
	s.methods = []methods.Method{m}
	return nil
}

// allMethods is the value of -method for all of the library.
const allMethods = "all"

// maxRanks is the most that package methods takes.
const maxRanks = 1 << 16

// read makes or reads the schedule. Of a file of text, and of a method, the File says the name.
func (s *source) read() (*msccl.File, error) {
	if s.file == "" {
		return s.build()
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		return nil, err // it names the file
	}
	var f *msccl.File
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		f, err = msccl.Read(text)
	} else {
		name := filepath.Base(s.file)
		f = &msccl.File{Name: strings.TrimSuffix(name, filepath.Ext(name))}
		f.Schedule, err = schedule.Parse(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.file, err)
	}
	return f, nil
}

// build makes the schedule of a method. Its errors are mistakes on the command line.
func (s *source) build() (*msccl.File, error) {
	t, err := s.network(s.size)
	if err != nil {
		return nil, err
	}
	rings, err := t.Rings(topology.Auto, ranks(s.size))
	if err != nil {
		return nil, mistake{err}
	}
	if err := s.fits(); err != nil {
		return nil, err
	}
	s.spec.Ring, s.spec.Second = rings.First, rings.Second
	out, err := methods.Build(s.spec)
	if err != nil {
		return nil, mistake{err}
	}
	return &msccl.File{Name: s.method, Schedule: out}, nil
}

// maxSteps bounds the steps of a method's schedule: at 128 bytes each they take 4 GiB, and a proof as much again.
const maxSteps = 1 << 25

// fits is a mistake if the schedule has too many steps, by those of one rank. It tries small groups first, since one
// rank of a large group can have too many by itself. A generator refuses by itself what is too large.
func (s *source) fits() error {
	if s.spec.Method.Own() {
		return nil
	}
	spec := s.spec
	spec.Root = 0
	for spec.Size = min(64, s.size); ; spec.Size = min(2*spec.Size, s.size) {
		inOrder := ranks(spec.Size)
		spec.Ring, spec.Second = inOrder, inOrder
		p, err := spec.Program(0)
		if err != nil {
			return mistake{err}
		}
		steps := 0
		for _, round := range p {
			steps += len(round.Moves) + len(round.Then)
		}
		if steps*spec.Size > maxSteps {
			return mistake{fmt.Errorf("-n %d: the %v by %v among %d ranks has some %d steps already, want %d at most",
				s.size, spec.Collective, spec.Method, spec.Size, steps*spec.Size, maxSteps)}
		}
		if spec.Size == s.size {
			return nil
		}
	}
}

// network is where ranks 0 to size-1 sit.
func (s *source) network(size int) (topology.Topology, error) {
	config := s.topology
	if config.Replicas == nil {
		config.Replicas = []int{size}
	}
	t, err := topology.New(config)
	if err != nil {
		return t, mistake{err}
	}
	if t.Replicas() != size {
		return t, mistake{fmt.Errorf("-domains %s: %d ranks, and the schedule has %d", s.domains, t.Replicas(), size)}
	}
	return t, nil
}

// ranks lists as many.
func ranks(size int) []int {
	out := make([]int, size)
	for i := range out {
		out[i] = i
	}
	return out
}

// of says of which schedule an error is.
func (s *source) of(err error) error {
	if err == nil || s.file == "" {
		return err
	}
	return fmt.Errorf("%s: %w", s.file, err)
}
