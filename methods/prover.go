package methods

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gogcl.dev/methods/schedule"
)

// Prover proves what a Generator makes, once, and keeps it: a schedule that it returns is right, and one that is not is
// an error. Several goroutines may use it.
type Prover struct {
	name      string
	generator Generator

	mu     sync.Mutex // guards what follows, and not what the functions do
	asked  map[string]func() (*Proved, error)
	proofs map[[32]byte]func() (schedule.Report, error) // by digest
}

// NewProver returns the Prover of a Generator, for a method of a name, which stands in its errors.
func NewProver(name string, g Generator) (*Prover, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	if g == nil {
		return nil, fmt.Errorf("methods: the method %s has a nil generator", name)
	}
	return &Prover{name: name, generator: g, asked: map[string]func() (*Proved, error){},
		proofs: map[[32]byte]func() (schedule.Report, error){}}, nil
}

// Proved is a schedule that has been proved. Nobody changes it. All its programs have as many rounds.
type Proved struct {
	*schedule.Schedule
	Digest  [32]byte
	Between int // the most messages from one rank to another in a round
	Report  schedule.Report
}

// Prove returns the schedule for a request. The first request of its kind waits until the schedule is made and proved,
// which takes what [schedule.Check] takes, and so do those that come meanwhile. Errors, which are remembered too:
//   - a request that the Generator cannot do, which is errors.ErrUnsupported;
//   - any other error of the Generator, and no schedule;
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
	made, known := p.asked[key]
	if !known {
		// The lists may be the caller's, and the request is looked at later.
		r.Ring, r.Second, r.Members = slices.Clone(r.Ring), slices.Clone(r.Second), slices.Clone(r.Members)
		made = sync.OnceValues(func() (*Proved, error) { return p.make(r) })
		p.asked[key] = made
	}
	p.mu.Unlock()
	return made()
}

// make makes and proves a schedule.
func (p *Prover) make(r Request) (*Proved, error) {
	if r.Members == nil {
		for rank := range r.Size {
			r.Members = append(r.Members, rank)
		}
	}
	s, err := p.schedule(r)
	if err != nil {
		return nil, fmt.Errorf("methods: %s: %s: %w", p.name, wanted(r.Collective, r.Size, r.Root), err)
	}
	out := &Proved{Schedule: s, Digest: s.Digest()}
	if out.Report, err = p.prove(out); err == nil {
		err = r.demand(out)
	}
	if err != nil {
		return nil, fmt.Errorf("methods: %s: %s: the schedule does not prove: %w", p.name,
			wanted(r.Collective, r.Size, r.Root), err)
	}
	out.Between = mostBetween(s)
	return out, nil
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
	return padded(s), nil
}

// ProveSchedule proves a schedule that is given as it is, of any collective or of a schedule.CustomContract. What it
// returns is a copy, but for the contract, which nobody changes from then on. Errors: no schedule; one that
// schedule.Examine refuses; one by which ranks combine an element in different orders, so that they may end with
// different bits.
func ProveSchedule(s *schedule.Schedule) (*Proved, error) {
	if s == nil {
		return nil, errors.New("methods: no schedule")
	}
	out := &Proved{Schedule: padded(s)}
	var err error
	switch out.Report, err = schedule.Examine(out.Schedule); {
	case err != nil:
		return nil, fmt.Errorf("methods: the schedule does not prove: %w", err)
	case s.Contract().Combines && !s.Collective.Contract().Again && !out.Report.OneOrder:
		return nil, errors.New("methods: the schedule does not prove: ranks combine an element in different orders, so " +
			"that they may end with different bits")
	}
	out.Digest, out.Between = out.Schedule.Digest(), mostBetween(out.Schedule)
	return out, nil
}

// padded is a copy of a schedule with as many rounds for all ranks.
func padded(s *schedule.Schedule) *schedule.Schedule {
	s = copyOf(s)
	rounds := 0
	for _, program := range s.Programs {
		rounds = max(rounds, len(program))
	}
	for rank, program := range s.Programs {
		for len(program) < rounds {
			program = append(program, schedule.Round{})
		}
		s.Programs[rank] = program
	}
	return s
}

// prove examines a schedule, or remembers that it has: groups of other members may have the same.
func (p *Prover) prove(s *Proved) (schedule.Report, error) {
	p.mu.Lock()
	proof, known := p.proofs[s.Digest]
	if !known {
		proof = sync.OnceValues(func() (schedule.Report, error) { return schedule.Examine(s.Schedule) })
		p.proofs[s.Digest] = proof
	}
	p.mu.Unlock()
	return proof()
}

// demand is what a request asks of a schedule that is right by itself.
func (r *Request) demand(s *Proved) error {
	contract := r.Collective.Contract()
	switch {
	case s.Collective != r.Collective || s.Size != r.Size || s.Root != r.Root:
		return fmt.Errorf("it is one of %s", wanted(s.Collective, s.Size, s.Root))
	case s.Apart && r.InPlace:
		return errors.New("it has Output apart from Input, and the request has them in one place")
	case s.Again:
		return errors.New("a contribution may count again by it (Schedule.Again), which most operators do not allow")
	case contract.Combines && !s.Report.OneOrder:
		return errors.New("ranks combine an element in different orders, so that they may end with different bits")
	case r.inOrder() && !s.Report.RankOrder:
		return fmt.Errorf("it does not fold in the order of the ranks, which RankOrder (Options.Reproducible) asks for: "+
			"a generator that cannot do that returns an error that wraps errors.ErrUnsupported (%q)",
			errors.ErrUnsupported)
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
