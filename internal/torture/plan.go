package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// event is what happens to the victim of a run.
type event string

// The events: see the table in the package's comment.
const (
	nothing event = "nothing"
	delay   event = "delay"
	pause   event = "pause"
	kill    event = "kill"
	exit    event = "exit"
	crash   event = "crash"
	silence event = "silence"
	reset   event = "reset"
	abort   event = "abort"
	cancel  event = "cancel"
	failed  event = "error"
	panics  event = "panic"
	garbage event = "garbage"
)

// weights says how often each event is chosen, over sockets and over shared memory. Those that take a second are rare.
var weights = []struct {
	event
	sockets, memory int
}{
	{nothing, 12, 6}, {delay, 8, 2}, {pause, 8, 8}, {kill, 16, 24}, {exit, 8, 4}, {crash, 6, 4}, {silence, 2, 12},
	{reset, 8, 4}, {abort, 8, 6}, {cancel, 8, 4}, {failed, 8, 4}, {panics, 8, 4}, {garbage, 0, 18},
}

// moment is where in a program an event happens.
type moment uint8

// The moments. Over sockets all events happen in a step.
const (
	inStep  moment = iota // some time after the step has begun
	inPiece               // in the operator of the step, which the library calls: others wait for that piece
	joining               // some time after the replica has begun to join
	closing               // some time after the last step has ended
)

// isDeath reports whether the victim's process ends without a word.
func (e event) isDeath() bool { return e == kill || e == exit || e == crash }

// isHarmless reports whether all results are to be right.
func (e event) isHarmless() bool { return e == nothing || e == delay || e == pause }

// isSignal reports whether the event is a signal that the victim's process gets: it may happen at any moment.
func (e event) isSignal() bool { return e == kill || e == silence || e == pause }

// silenceTime is JoinConfig.Silence in a run with the event silence, and with garbage: bytes that a ring has lost are
// missed only then, 1.1 to 1.5 times Silence after the last, which must be less than patience.
const silenceTime = time.Second

// lanes is how many connections the replicas of a run have at most.
const lanes = 3

// plan is all that a seed decides on.
type plan struct {
	seed      uint64
	n         int
	transport string
	lanes     int
	program   []step

	event  event
	victim int
	moment moment
	at     int           // step of the program
	calls  int           // of the operator that go well, in a step with an event in it
	after  time.Duration // that the moment has begun
	length time.Duration // of a delay or a pause
}

// step is one collective of a program.
type step struct {
	together   bool // with the step before, which is on another lane
	lane       int
	barrier    bool
	collective schedule.Collective
	operator   gcl.Operator // of a collective that combines
	dtype      tensor.DType
	root       int
	group      commgroup.Group
	options    gcl.Options
	elements   []int // by tensor: of a rank's shard or block where the collective has those, else of the whole

	alloced []bool // by replica: its tensors are from gcl.Alloc
	own     bool   // the operator is one of torture's own, in which an event happens
}

// newPlan makes the plan of a seed. n is the number of processes, and network what they go by; 0 and "": the seed
// decides, by sockets.
func newPlan(seed uint64, n int, network string) plan {
	r := rand.New(rand.NewPCG(seed, 14))
	p := plan{seed: seed, n: 2 + r.IntN(4), transport: "unix", lanes: 1 + r.IntN(lanes)}
	if r.IntN(2) == 0 {
		p.transport = "tcp"
	}
	if n > 0 {
		p.n = n
	}
	if network != "" {
		p.transport = network
	}
	groups := []commgroup.Group{{}, {}}
	for size := 2; size < p.n; size++ {
		if p.n%size == 0 {
			groups = append(groups, commgroup.Group{Type: commgroup.Consecutive, Size: size},
				commgroup.Group{Type: commgroup.Orthogonal, Size: size})
		}
	}
	groups = append(groups, dealt(r, p.n))
	for range 5 + r.IntN(15) {
		s := newStep(r, p.lanes, groups, p.n)
		if k := len(p.program); k > 0 && s.lane != p.program[k-1].lane && !p.program[k-1].together && r.IntN(3) == 0 {
			s.together = true
		}
		p.program = append(p.program, s)
	}
	p.program = append(p.program, step{barrier: true})
	total := 0
	for _, w := range weights {
		total += p.weight(w.event)
	}
	pick := r.IntN(total)
	for _, w := range weights {
		if pick -= p.weight(w.event); pick < 0 {
			p.event = w.event
			break
		}
	}
	p.victim, p.at = r.IntN(p.n), r.IntN(len(p.program))
	p.after = time.Duration(r.IntN(1500)) * time.Microsecond
	if r.IntN(3) == 0 {
		p.after = 0
	}
	p.length = time.Duration(1+r.IntN(100)) * time.Millisecond
	if p.transport == "shm" {
		p.overMemory(r)
	}
	return p
}

// weight is how often an event is chosen.
func (p *plan) weight(e event) int {
	for _, w := range weights {
		switch {
		case w.event != e:
		case p.transport == "shm":
			return w.memory
		default:
			return w.sockets
		}
	}
	return 0
}

// overMemory decides on what is of shared memory only: which tensors others reach, and moments that are hard to meet.
func (p *plan) overMemory(r *rand.Rand) {
	for k := range p.program {
		s := &p.program[k]
		s.alloced = make([]bool, p.n)
		how := r.IntN(3)
		for replica := range s.alloced {
			s.alloced[replica] = how == 0 || how == 1 && r.IntN(2) == 0
		}
		if !s.barrier && r.IntN(12) == 0 {
			s.elements[0] = largeElements
		}
	}
	if !p.event.isSignal() {
		return
	}
	switch r.IntN(8) {
	case 0:
		p.moment, p.after = joining, time.Duration(r.IntN(20_000))*time.Microsecond
	case 1:
		p.moment, p.at = closing, len(p.program)-1
	case 2, 3, 4:
		for range 100 {
			s := &p.program[r.IntN(len(p.program))]
			if s.barrier || !s.collective.Contract().Combines || ownOperators[s.dtype] == nil {
				continue
			}
			s.operator = gcl.Add // which torture's own is
			for k := range p.program {
				if &p.program[k] == s {
					p.at = k
				}
			}
			p.moment, p.calls, s.own, s.elements[0] = inPiece, r.IntN(20), true, largeElements
			if r.IntN(4) > 0 { // the replicas work on each other's memory, not on messages
				s.alloced, s.options = slices.Repeat([]bool{true}, p.n), gcl.Options{}
			}
			break
		}
	}
}

// largeElements is a length at which an operator works on many pieces.
const largeElements = 200_003

// dealt are random groups of any sizes.
func dealt(r *rand.Rand, n int) commgroup.Group {
	lists := make([][]int, 1+r.IntN(n))
	for replica := range n {
		g := r.IntN(len(lists))
		lists[g] = append(lists[g], replica)
	}
	return must(commgroup.Lists(slices.DeleteFunc(lists, func(members []int) bool { return len(members) == 0 })))
}

// smallest is the size of the smallest of the groups of n replicas.
func smallest(g commgroup.Group, n int) int {
	layout, size := must(g.Resolve(n)), n
	for k := range layout.Groups() {
		size = min(size, layout.SizeOf(k))
	}
	return size
}

// sizes are the lengths that steps have, around the bounds at which messages change their way.
var sizes = []int{0, 1, 2, 5, 97, 1000, 4099, 4099, 16384, 30000, 100_003}

func newStep(r *rand.Rand, lanes int, groups []commgroup.Group, n int) step {
	s := step{lane: r.IntN(lanes), group: groups[r.IntN(len(groups))]}
	if r.IntN(12) == 0 {
		s.barrier = true
		return s
	}
	all := []schedule.Collective{schedule.AllReduce, schedule.AllReduce, schedule.AllReduce, schedule.ReduceScatter,
		schedule.AllGather, schedule.AllToAll, schedule.Broadcast, schedule.Reduce, schedule.Gather, schedule.Scatter}
	s.collective = all[r.IntN(len(all))]
	dtypes := []tensor.DType{tensor.F32, tensor.F32, tensor.I64, tensor.U8, tensor.BF16}
	s.dtype = dtypes[r.IntN(len(dtypes))]
	contract := s.collective.Contract()
	if contract.Combines {
		s.operator = []gcl.Operator{gcl.Add, gcl.Add, gcl.Max, gcl.SquareAdd}[r.IntN(4)]
	}
	if contract.Rooted() {
		s.root = r.IntN(smallest(s.group, n))
	}
	for range []int{1, 1, 1, 2, 3}[r.IntN(5)] {
		s.elements = append(s.elements, sizes[r.IntN(len(sizes))])
	}
	ways := append(methods.All(), methods.Auto, methods.Auto, methods.Auto)
	s.options.Method = ways[r.IntN(len(ways))]
	s.options.Reproducible = r.IntN(4) == 0
	if r.IntN(6) == 0 {
		s.options.Implementation = gcl.Syncful
	}
	return s
}

// operatorName is the step's operator as package oracle has it.
func (s *step) operatorName() oracle.Operator {
	if !s.collective.Contract().Combines {
		return oracle.Local
	}
	return oracle.Operator(s.operator.String())
}

func (s *step) String() string {
	text := "barrier"
	if !s.barrier {
		text = fmt.Sprintf("%v of %v x %d by %v", s.collective, s.dtype, s.elements, s.options.Method)
		if s.collective.Contract().Combines {
			text += ", " + s.operator.String()
		}
		if s.collective.Contract().Rooted() {
			text += fmt.Sprintf(", root %d", s.root)
		}
		if s.options.Reproducible {
			text += ", reproducible"
		}
		if s.own {
			text += ", by an operator of its own"
		}
		if slices.Contains(s.alloced, true) {
			text += fmt.Sprintf(", memory of Alloc %v", s.alloced)
		}
	}
	text += fmt.Sprintf(", group %v, connection %d", s.group, s.lane)
	if s.together {
		text += ", beside the one before"
	}
	return text
}

// String is the plan in one line.
func (p *plan) String() string {
	text := fmt.Sprintf("seed %d: %d processes by %s, %d collectives on %d connections: %s", p.seed, p.n, p.transport,
		len(p.program), p.lanes, p.event)
	if p.event != nothing {
		where := [...]string{fmt.Sprint("in step ", p.at), fmt.Sprintf("in call %d of the operator of step %d", p.calls,
			p.at), "while joining", "while closing"}[p.moment]
		text += fmt.Sprintf(" at replica %d %s after %v", p.victim, where, p.after)
	}
	return text
}

// listing is the program, a line for each step.
func (p *plan) listing() string {
	var b strings.Builder
	for i := range p.program {
		fmt.Fprintf(&b, "  step %2d: %v\n", i, &p.program[i])
	}
	return b.String()
}
