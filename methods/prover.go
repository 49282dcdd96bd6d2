package methods

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"weak"

	"gogcl.dev/internal/enum"
	"gogcl.dev/internal/goroutine"
	"gogcl.dev/internal/recent"
	"gogcl.dev/methods/schedule"
)

// Prover proves what a Generator makes, once, and keeps it: a schedule that it returns is right, and one that is not is
// an error. Several goroutines may use it.
//
// A schedule of more than 32,768 steps, some 3 MiB, is kept as long as somebody uses it. After that the Prover has its
// proof alone, and the Generator makes it again for who asks again. A call on gcl by messages keeps one rank's part. Of
// more than 1,024 schedules the oldest is forgotten.
//
// An all-reduce by circulant or halving_doubling is made and proved in some 0.5 ms for 16 ranks, 4 ms for 64, 30 ms for
// 256 and 0.6 s for 1024. One by torus_2d has more steps: 2 ms, 20 ms, 0.3 s and 4 s. (On four cores with others on
// them, 2026-11-23.)
type Prover struct {
	name      string
	generator Generator

	mu     sync.Mutex // guards the two maps, and not what is in them
	asked  recent.Map[string, *answer]
	proofs recent.Map[[32]byte, *proof] // by digest
}

// maxAnswers bounds the schedules that a Prover knows, and their proofs: a program has one for each collective, root
// and size of group.
const maxAnswers = 1024

// proof is what the Prover knows of a schedule. The answer's lock guards the rest.
type proof struct {
	answer
	known   bool
	report  schedule.Report
	between int
}

// answer is what the Prover keeps of a schedule. A large one is kept only as long as somebody else does.
type answer struct {
	maker atomic.Uint64 // the goroutine that makes the schedule; one that it starts and waits for is not noticed
	mu    sync.Mutex    // guards what follows; held while the schedule is made
	err   error
	small *Proved
	large weak.Pointer[Proved]
}

// errOfItself is of a Generator that waits for itself.
var errOfItself = errors.New("methods: the generator asks for the very schedule that it is to make; for the library's " +
	"method of the same name want Listed.Generator of methods.Gallery, and not methods.Build")

// mostKept is how many steps a small schedule has at most: some 3 MiB.
const mostKept = 1 << 15

// get returns the schedule, which make makes the first time, and again where nobody has kept it.
func (a *answer) get(make func() (*Proved, error)) (*Proved, error) {
	if !a.mu.TryLock() {
		if id := goroutine.ID(); id != 0 && a.maker.Load() == id {
			return nil, errOfItself
		}
		a.mu.Lock()
	}
	defer a.mu.Unlock()
	if a.err != nil || a.small != nil {
		return a.small, a.err
	}
	if kept := a.large.Value(); kept != nil {
		return kept, nil
	}
	a.maker.Store(goroutine.ID())
	defer a.maker.Store(0)
	var out *Proved
	if out, a.err = make(); a.err != nil {
		return nil, a.err
	}
	if out.steps() <= mostKept {
		a.small = out
	} else {
		a.large = weak.Make(out)
	}
	return out, nil
}

// steps is how many the schedule has.
func (p *Proved) steps() int {
	n := 0
	for _, program := range p.Programs {
		for _, round := range program {
			n += len(round.Moves) + len(round.Then)
		}
	}
	return n
}

// NewProver returns the Prover of a Generator, for a method of a name, which stands in its errors. It may be a name
// that another method has. One that Register would refuse as malformed, and a nil Generator, are errors.
func NewProver(name string, g Generator) (*Prover, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if f, ok := g.(GeneratorFunc); g == nil || ok && f == nil {
		return nil, fmt.Errorf("methods: the method %s has a nil generator", name)
	}
	p := &Prover{name: name, generator: g}
	p.asked.Most, p.proofs.Most = maxAnswers, maxAnswers
	return p, nil
}

// Proved is a schedule that has been proved. Nobody changes it. All its programs have as many rounds.
type Proved struct {
	*schedule.Schedule
	Digest  [32]byte        // of the schedule, as schedule.Schedule.Digest has it
	Between int             // the most messages from one rank to another in a round
	Report  schedule.Report // what the proof counted
}

// Prove returns the schedule for a request. The first request of its kind waits until the schedule is made and proved,
// which takes what [schedule.Check] takes, and so do those that come meanwhile. A call of gcl waits for that whatever
// its context says. Errors, which are remembered too:
//   - a request that the Generator cannot do, which is errors.ErrUnsupported;
//   - any other error of the Generator, no schedule, and one whose programs differ in length by more than 16,777,216
//     rounds together;
//   - a schedule of another collective, size or root, or that needs its buffers apart where they are not;
//   - a schedule that Check refuses, with the rank, the round, and what is missing or doubled;
//   - one whose contributions count again, which is wrong for most operators;
//   - one by which ranks combine an element in different orders, or in another than that of the ranks where the request
//     asks for that.
func (p *Prover) Prove(r Request) (*Proved, error) {
	if p == nil || p.generator == nil {
		return nil, errors.New("methods: a Prover that NewProver has not made")
	}
	if err := r.checkNumbers(); err != nil {
		return nil, err
	}
	if len(r.Members) != 0 && len(r.Members) != r.Size {
		return nil, fmt.Errorf("methods: %d members of a group of %d ranks", len(r.Members), r.Size)
	}
	key := r.key()
	p.mu.Lock()
	a, known := p.asked.Get(key)
	if !known {
		a = new(answer)
		*p.asked.Place(key) = a
	}
	p.mu.Unlock()
	return a.get(func() (*Proved, error) {
		r.giveLists()
		return p.make(r)
	})
}

// make makes and proves a schedule.
func (p *Prover) make(r Request) (*Proved, error) {
	s, err := p.schedule(r)
	if err != nil {
		return nil, fmt.Errorf("methods: %s: %s: %w", p.name, wanted(r.Collective, r.Size, r.Root), err)
	}
	out, err := p.prove(s)
	if err == nil {
		err = r.demand(out)
	}
	if err != nil {
		return nil, fmt.Errorf("methods: %s: %s: the schedule does not prove: %w", p.name,
			wanted(r.Collective, r.Size, r.Root), err)
	}
	return out, nil
}

// giveLists makes the lists of a request the Generator's own.
func (r *Request) giveLists() {
	for _, list := range []*[]int{&r.Members, &r.Ring, &r.Second} {
		if *list = slices.Clone(*list); *list == nil {
			*list = inTurn(r.Size)
		}
	}
}

// inTurn lists the ranks.
func inTurn(size int) []int {
	out := make([]int, size)
	for rank := range out {
		out[rank] = rank
	}
	return out
}

// schedule asks the Generator. The schedule is a copy, with as many rounds for all ranks.
func (p *Prover) schedule(r Request) (*schedule.Schedule, error) {
	if r.Collective == schedule.Barrier {
		return nil, fmt.Errorf("a barrier has no data, and goes by %v: %w", SendToAll, errors.ErrUnsupported)
	}
	if r.Size == 1 {
		return &schedule.Schedule{Collective: r.Collective, Size: 1, Chunks: 1,
			Programs: []schedule.Program{r.program(0)}}, nil
	}
	s, err := p.generator.Schedule(r)
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, errors.New("the generator returns no schedule and no error")
	}
	return padded(s)
}

// ProveSchedule proves a schedule that is given as it is, of any collective or of a schedule.CustomContract. What it
// returns is a copy, but for the contract, which nobody changes from then on. Errors: no schedule; one that
// schedule.Examine refuses; one by which ranks combine an element in different orders, so that they may end with
// different bits; one whose programs differ in length by more than 16,777,216 rounds together.
func ProveSchedule(s *schedule.Schedule) (*Proved, error) {
	if s == nil {
		return nil, errors.New("methods: no schedule")
	}
	whole, err := padded(s)
	if err != nil {
		return nil, fmt.Errorf("methods: %w", err)
	}
	out := &Proved{Schedule: whole}
	switch out.Report, err = schedule.Examine(out.Schedule); {
	case err != nil:
		return nil, fmt.Errorf("methods: the schedule does not prove: %w", err)
	case s.Again && s.Contract().Combines && !out.Report.OneOrder:
		return nil, fmt.Errorf("methods: the schedule does not prove: ranks combine an element in different orders: %s",
			out.Report.Order)
	}
	if err := out.Report.CheckOrder(); err != nil {
		return nil, fmt.Errorf("methods: the schedule does not prove: %w", err)
	}
	out.Digest, out.Between = out.Schedule.Digest(), mostBetween(out.Schedule)
	return out, nil
}

// maxPadding is how many empty rounds ranks may be given, so that all have as many: some 800 MiB.
const maxPadding = 1 << 24

// padded is a copy of a schedule with as many rounds for all ranks.
func padded(s *schedule.Schedule) (*schedule.Schedule, error) {
	rounds, sum, longest := 0, 0, 0
	for rank, program := range s.Programs {
		sum += len(program)
		if len(program) > rounds {
			rounds, longest = len(program), rank
		}
	}
	if n := len(s.Programs); n > 0 && rounds > (maxPadding+sum)/n {
		return nil, fmt.Errorf("rank %d has %d rounds, and the %d ranks have %d together: to have all wait through as many "+
			"takes more than %d empty rounds", longest, rounds, n, sum, maxPadding)
	}
	s = copyOf(s)
	for rank, program := range s.Programs {
		for len(program) < rounds {
			program = append(program, schedule.Round{})
		}
		s.Programs[rank] = program
	}
	return s, nil
}

// prove examines a schedule, or remembers that it has: groups of other members may have the same, and share it.
func (p *Prover) prove(s *schedule.Schedule) (*Proved, error) {
	digest := s.Digest()
	p.mu.Lock()
	is, known := p.proofs.Get(digest)
	if !known {
		is = new(proof)
		*p.proofs.Place(digest) = is
	}
	p.mu.Unlock()
	return is.get(func() (_ *Proved, err error) {
		if !is.known {
			if is.report, err = schedule.Examine(s); err != nil {
				return nil, err
			}
			is.between, is.known = mostBetween(s), true
		}
		return &Proved{Schedule: s, Digest: digest, Between: is.between, Report: is.report}, nil
	})
}

// demand is what a request asks of a schedule that is right by itself.
func (r *Request) demand(s *Proved) error {
	orders := s.Report.CheckOrder()
	switch {
	case s.Collective != r.Collective || s.Size != r.Size || s.Root != r.Root:
		return fmt.Errorf("it is one of %s", wanted(s.Collective, s.Size, s.Root))
	case s.Apart && r.InPlace:
		return errors.New("it has Output apart from Input, and the request has them in one place")
	case s.Again:
		return errors.New("a contribution may count again by it (Schedule.Again), which most operators do not allow")
	case orders != nil:
		return orders
	case r.inOrder() && !s.Report.RankOrder:
		return fmt.Errorf("it does not fold in the order of the ranks, which RankOrder (Options.Reproducible) asks for "+
			"(%s): a generator that cannot do that returns an error that wraps errors.ErrUnsupported (%q)",
			s.Report.Order, errors.ErrUnsupported)
	}
	return nil
}

// mostBetween is the most messages that a schedule has from one rank to another in a round.
func mostBetween(s *schedule.Schedule) int {
	most := 0
	for _, program := range s.Programs {
		to := make([]int, s.Size) // in this round
		for _, round := range program {
			for i := range round.Moves {
				if st := &round.Moves[i]; st.Verb == schedule.Send {
					to[st.Peer]++
					most = max(most, to[st.Peer])
				}
			}
			for i := range round.Moves {
				if st := &round.Moves[i]; st.Verb == schedule.Send {
					to[st.Peer] = 0
				}
			}
		}
	}
	return most
}

// copyOf is a schedule that shares no memory with s but its contract.
func copyOf(s *schedule.Schedule) *schedule.Schedule {
	out := *s
	out.Programs = make([]schedule.Program, len(s.Programs))
	for rank, p := range s.Programs {
		q := make(schedule.Program, len(p))
		for t := range p {
			q[t] = schedule.Round{Moves: slices.Clone(p[t].Moves), Then: slices.Clone(p[t].Then)}
		}
		out.Programs[rank] = q
	}
	return &out
}

// maxName bounds a name of a method.
const maxName = enum.MaxName

// checkName refuses a malformed name.
func checkName(name string) error {
	if err := enum.CheckName("a method", name); err != nil {
		return fmt.Errorf("methods: %w", err)
	}
	return nil
}
