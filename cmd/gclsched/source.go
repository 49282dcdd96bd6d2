package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
	"gogcl.dev/topology"
)

// source is where the schedule comes from: a file, or a method by name.
type source struct {
	flags *flag.FlagSet
	file  string // "": the method

	method, collective, network string
	size, root, pieces          int
	inPlace, rankOrder          bool

	methods []methods.Method // the one of spec, or with -method all those of the library
	spec    methods.Spec
	price   bool         // the command is price
	sized   bool         // -n is given
	links   cost.Network // of -network; nil: a clique
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
	f.StringVar(&s.network, "network", "", command.NetworkUsage+". Rings of -method go round a machine, and price "+
		"takes it for the links; a clique unless given. -n is the number of its replicas unless given")
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

// check looks at the command line of a command, when the flags have been read.
func (s *source) check(verb string) error {
	given := map[string]bool{}
	s.flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	s.price, s.sized = verb == "price", given["n"]
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
	case given["network"] && s.network == "":
		return errors.New("an empty -network, want a name such as torus:8x8x8, or a file")
	}
	if s.flags.NArg() == 1 {
		s.file = s.flags.Arg(0)
		for _, name := range []string{"collective", "n", "root", "pieces", "in-place", "rank-order", "network"} {
			if given[name] && !(name == "network" && s.price) {
				return fmt.Errorf("-%s is for -method, and not for a file", name)
			}
		}
		return nil
	}
	return s.specify(verb, given)
}

// specify makes the specification of a method. Flags that it has no use for are mistakes.
func (s *source) specify(verb string, given map[string]bool) error {
	if err := s.list(verb); err != nil {
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
	case given["network"] && !s.price && !rings:
		return fmt.Errorf("-network of %v, which follows no ring: want a method that does, or price", m)
	}
	return nil
}

// list makes the list of methods: one, or all.
func (s *source) list(verb string) error {
	if s.method == allMethods {
		if !s.price {
			return fmt.Errorf("-method all is for price, want one method to %s", verb)
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
	rings, err := s.rings()
	if err != nil {
		return nil, err
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

// connect reads -network. A mistake is a name that is none, and what has no rings for a command that asks for no more.
func (s *source) connect() error {
	if s.network == "" {
		return nil
	}
	var err error
	if s.links, err = command.Network(s.network); err != nil {
		return s.ofNetwork(err)
	}
	if _, ok := cost.TopologyOf(s.links); !ok && !s.price {
		return mistake{fmt.Errorf("-network %.100q, round which no ring goes: want a machine such as open-ladder:8, or "+
			"price", s.network)}
	}
	if n := s.links.Replicas(); s.file == "" && !s.sized {
		if n > maxRanks {
			return mistake{fmt.Errorf("-network %.100q of %d replicas, want -n of 1 to %d of them", s.network, n,
				maxRanks)}
		}
		s.size, s.spec.Size = n, n
	}
	return nil
}

// ofNetwork has an error of a network be a mistake on the command line, if that has the name.
func (s *source) ofNetwork(err error) error {
	if command.IsNetworkName(s.network) {
		return mistake{err}
	}
	return err
}

// linked is the network that ranks 0 to size-1 are on, with its name.
func (s *source) linked(size int) (cost.Network, string, error) {
	n := s.links
	if n == nil {
		t, err := topology.New(topology.Config{Replicas: []int{size}})
		if err != nil {
			return nil, "", mistake{err}
		}
		n = cost.Machine(t)
	}
	if has := n.Replicas(); has < size {
		return nil, "", s.ofNetwork(fmt.Errorf("%s: %d replicas, and the schedule has %d ranks", s.network, has, size))
	}
	if t, ok := cost.TopologyOf(n); ok {
		return n, t.String(), nil
	}
	return n, fmt.Sprintf("%s of %d replicas", s.network, n.Replicas()), nil
}

// rings are those that methods go round: of a machine, and else in the order of the ranks.
func (s *source) rings() (topology.Rings, error) {
	n, _, err := s.linked(s.size)
	if err != nil {
		return topology.Rings{}, err
	}
	t, ok := cost.TopologyOf(n)
	if !ok {
		return topology.Rings{First: ranks(s.size), Second: ranks(s.size)}, nil
	}
	rings, err := t.Rings(topology.Auto, ranks(s.size))
	if err != nil {
		return rings, mistake{err}
	}
	return rings, nil
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
