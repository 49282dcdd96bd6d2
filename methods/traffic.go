package methods

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Traffic returns the messages of Build(s), described without steps, for up to 65,536 ranks. The constants describe
// every collective but Barrier. A method of a Generator describes what its Traffic does, if it is a [TrafficGenerator],
// as all of Gallery are. Nothing is proved for it. Errors: those of Build, and errors.ErrUnsupported for a barrier, for
// a Generator that describes nothing, and for what that does not do.
func (s Spec) Traffic() (*schedule.Traffic, error) {
	if err := s.checkForm(); err != nil {
		return nil, err
	}
	w, _ := s.recipe()
	switch {
	case w.described != nil && s.Size > 1:
		return w.described(s)
	case w.described == nil && w.traffic == nil || s.Collective == schedule.Barrier:
		return nil, s.undescribed()
	}
	t := &schedule.Traffic{Size: s.Size, Chunks: 1}
	if s.Size == 1 {
		t.Rounds = []schedule.Alike{{Times: 1}}
		return t, nil
	}
	t.Chunks = w.chunks(s)
	w.traffic(s, t)
	return t, nil
}

// Makes says without making a schedule whether Build makes one: nil, or the error of Build. It knows the constants and
// Gallery. Of another Generator it is errors.ErrUnsupported.
func (s Spec) Makes() error {
	if err := s.checkForm(); err != nil {
		return err
	}
	own := s.Method.Prover()
	if own == nil || s.Size == 1 {
		return nil
	}
	if s.Collective == schedule.Barrier {
		return s.undescribed()
	}
	g, ok := own.generator.(bounded)
	if !ok {
		return fmt.Errorf("methods: %s: whether it makes a schedule shows when it does: %w", own.name,
			errors.ErrUnsupported)
	}
	if err := g.limits(Request{Spec: s}); err != nil {
		return fmt.Errorf("methods: %s: %s: %w", own.name, wanted(s.Collective, s.Size, s.Root), err)
	}
	return nil
}

// bounded is a Generator of Gallery.
type bounded interface {
	// limits is the error of Schedule, without making one.
	limits(r Request) error
}

// undescribed is the error of a method that does not describe the messages of a collective.
func (s Spec) undescribed() error {
	order := ""
	if s.inOrder() {
		order = " in the order of the ranks"
	}
	return fmt.Errorf("methods: no traffic describes %v of %v%s: %w", s.Collective, s.Method, order,
		errors.ErrUnsupported)
}

// described are the messages by a Generator.
func (p *Prover) described(s Spec) (*schedule.Traffic, error) {
	g, ok := p.generator.(TrafficGenerator)
	if !ok {
		return nil, s.undescribed()
	}
	s.Pieces = 0
	r := Request{Spec: s}
	r.giveLists()
	t, err := g.Traffic(r)
	if err == nil && t == nil {
		err = errors.New("the generator returns no traffic and no error")
	}
	if err == nil {
		err = t.Check()
	}
	if err == nil && t.Size != s.Size {
		err = fmt.Errorf("a traffic of %d ranks", t.Size)
	}
	if err != nil {
		return nil, fmt.Errorf("methods: %s: traffic of %s: %w", p.name, wanted(s.Collective, s.Size, s.Root), err)
	}
	return t, nil
}

// thereAndBack, there and back add the rounds of an all-reduce, a reduce-scatter and an all-gather. Each lane sends one
// chunk a round from every place of its order to the next, as long as it reaches.
func (f ringForm) thereAndBack(s Spec, t *schedule.Traffic) {
	f.around(s, t, true)
	f.around(s, t, false)
}

func (f ringForm) there(s Spec, t *schedule.Traffic) { f.around(s, t, true) }
func (f ringForm) back(s Spec, t *schedule.Traffic)  { f.around(s, t, false) }

// around adds the rounds in which all places of each lane send.
func (f ringForm) around(s Spec, t *schedule.Traffic, fold bool) {
	lanes := f.lanes(s, 0)
	t.Orders = nil // an all-reduce comes twice
	for _, l := range lanes {
		t.Orders = append(t.Orders, l.order)
	}
	for done, reach := 0, f.reach(s.Size); done < reach; {
		alike := schedule.Alike{Times: reach - done}
		for i, l := range lanes {
			if l.reach > done {
				alike.Flows = append(alike.Flows, schedule.Flow{Order: i + 1, Move: 1, Chunks: 1, Fold: fold})
				alike.Times = min(alike.Times, l.reach-done)
			}
		}
		t.Rounds = append(t.Rounds, alike)
		done += alike.Times
	}
}

// chain adds the rounds of a broadcast: in round i+d piece i goes from the place d behind the root to the next.
func (f ringForm) chain(s Spec, t *schedule.Traffic) {
	lanes, m := f.lanes(s, s.Root), s.pieces()
	for _, l := range lanes {
		t.Orders = append(t.Orders, slices.Concat(l.order[l.at:], l.order[:l.at]))
	}
	for round := range f.reach(s.Size) - 1 + m {
		alike := schedule.Alike{Times: 1, Flows: make([]schedule.Flow, 0, len(lanes))}
		for i, l := range lanes {
			if first, end := max(round-m+1, 0), min(round+1, l.reach); first < end {
				alike.Flows = append(alike.Flows,
					schedule.Flow{Order: i + 1, First: first, Count: end - first, Move: 1, Chunks: 1})
			}
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// unchain adds the rounds of a reduce: those of a broadcast back, from the last place on to the root, which is the last
// place of an order here. Piece i goes from the place d before it in round reach-d+i.
func (f ringForm) unchain(s Spec, t *schedule.Traffic) {
	lanes, m, reach := f.towards(s, t), s.pieces(), f.reach(s.Size)
	for round := range reach - 1 + m {
		alike := schedule.Alike{Times: 1, Flows: make([]schedule.Flow, 0, len(lanes))}
		for i, l := range lanes {
			near, far := max(1, reach-round), min(l.reach, reach-round+m-1)
			alike.Flows = appendBefore(alike.Flows, i, s.Size, near, far, true)
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// collect adds the rounds of a gather: in round r all send a chunk whose own has r more places to go than the lane has.
func (f ringForm) collect(s Spec, t *schedule.Traffic) {
	lanes := f.towards(s, t)
	for round := range f.reach(s.Size) {
		alike := schedule.Alike{Times: 1, Flows: make([]schedule.Flow, 0, len(lanes))}
		for i, l := range lanes {
			alike.Flows = appendBefore(alike.Flows, i, s.Size, 1, l.reach-round, false)
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// towards gives a traffic the orders of the lanes, the root last.
func (f ringForm) towards(s Spec, t *schedule.Traffic) []lane {
	lanes := f.lanes(s, s.Root)
	for _, l := range lanes {
		t.Orders = append(t.Orders, slices.Concat(l.order[l.at+1:], l.order[:l.at+1]))
	}
	return lanes
}

// appendBefore appends the flow from the places near to far before the last one of order i, each to the next.
func appendBefore(flows []schedule.Flow, i, size, near, far int, fold bool) []schedule.Flow {
	if near > far {
		return flows
	}
	return append(flows, schedule.Flow{Order: i + 1, First: size - 1 - far, Count: far - near + 1, Move: 1, Chunks: 1,
		Fold: fold})
}

// deal adds the rounds of a scatter: in round r the root and the r places behind it send a chunk on.
func (f ringForm) deal(s Spec, t *schedule.Traffic) {
	lanes := f.lanes(s, s.Root)
	for _, l := range lanes {
		t.Orders = append(t.Orders, slices.Concat(l.order[l.at:], l.order[:l.at]))
	}
	for round := range f.reach(s.Size) {
		alike := schedule.Alike{Times: 1, Flows: make([]schedule.Flow, 0, len(lanes))}
		for i, l := range lanes {
			if round < l.reach {
				alike.Flows = append(alike.Flows, schedule.Flow{Order: i + 1, Count: round + 1, Move: 1, Chunks: 1})
			}
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// onward adds the rounds of an all-to-all: each place sends on all that has not arrived, block by block.
func (f ringForm) onward(s Spec, t *schedule.Traffic) {
	lanes := f.lanes(s, 0)
	for _, l := range lanes {
		t.Orders = append(t.Orders, l.order)
	}
	for round := range f.reach(s.Size) {
		alike := schedule.Alike{Times: 1, Flows: make([]schedule.Flow, 0, len(lanes))}
		for i, l := range lanes {
			if round < l.reach {
				alike.Flows = append(alike.Flows, schedule.Flow{Order: i + 1, Move: 1, Chunks: 1,
					Messages: l.reach - round})
			}
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// chainTraffic adds the rounds of an all-reduce, or a reduce-scatter, of m pieces in the order of the ranks. In round
// t rank t-i sends piece i up, and rank i+2k-2-t sends its result down: in a reduce-scatter only as far as rank i. Of
// its two messages a rank sends that down first.
func (s Spec) chainTraffic(t *schedule.Traffic, m int, all bool) {
	k := s.Size
	rounds := 2*k - 2
	if all {
		rounds = m + 2*k - 3
	}
	for round := range rounds {
		alike := schedule.Alike{Times: 1}
		lowest, highest := max(0, round-2*k+3), min(m-1, round-k+1) // pieces on their way down
		if lowest <= highest && (all || round < 2*k-2) {
			first, last := lowest+2*k-2-round, highest+2*k-2-round
			alike.Flows = append(alike.Flows, schedule.Flow{First: first, Count: last - first + 1, Move: -1, Chunks: 1})
		}
		if first, last := max(round-m+1, 0), min(round, k-2); first <= last {
			alike.Flows = append(alike.Flows, schedule.Flow{First: first, Count: last - first + 1, Move: 1, Chunks: 1,
				Fold: true})
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// upChainTraffic adds the rounds of a reduce in the order of the ranks.
func (s Spec) upChainTraffic(t *schedule.Traffic) {
	last, m := s.Size-1, s.pieces()
	rounds := last - 1 + m
	if s.Root != last {
		rounds++
	}
	for round := range rounds {
		alike := schedule.Alike{Times: 1}
		if first, end := max(round-m+1, 0), min(round, last-1); first <= end {
			alike.Flows = append(alike.Flows, schedule.Flow{First: first, Count: end - first + 1, Move: 1, Chunks: 1,
				Fold: true})
		}
		if s.Root != last && round >= last {
			alike.Listed = append(alike.Listed, schedule.Message{From: last, To: s.Root, Chunks: 1})
		}
		t.Rounds = append(t.Rounds, alike)
	}
}

// inRound adds a round of one flow.
func inRound(t *schedule.Traffic, f schedule.Flow) {
	t.Rounds = append(t.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{f}})
}

// foldEverywhere and copyEverywhere add a round in which everyone sends a chunk to everyone.
func foldEverywhere(_ Spec, t *schedule.Traffic) {
	inRound(t, schedule.Flow{All: true, Chunks: 1, Fold: true})
}

func copyEverywhere(_ Spec, t *schedule.Traffic) { inRound(t, schedule.Flow{All: true, Chunks: 1}) }

func (s Spec) fromRootTraffic(t *schedule.Traffic) {
	inRound(t, schedule.Flow{First: s.Root, Count: 1, All: true, Chunks: 1})
}

func (s Spec) allToRootTraffic(t *schedule.Traffic) { s.toRoot(t, true) }

func (s Spec) ownersToRootTraffic(t *schedule.Traffic) {
	foldEverywhere(s, t)
	s.toRoot(t, false)
}

// toRoot adds a round in which everyone else sends a chunk to the root.
func (s Spec) toRoot(t *schedule.Traffic, fold bool) {
	alike := schedule.Alike{Times: 1}
	for rank := range s.Size {
		if rank != s.Root {
			alike.Listed = append(alike.Listed, schedule.Message{From: rank, To: s.Root, Chunks: 1, Fold: fold})
		}
	}
	t.Rounds = append(t.Rounds, alike)
}

// traffic adds the rounds of recursive_doubling. In round r among the active ranks all of them exchange with the
// partner at distance(r), and active rank j sends chunks(r, j). In a round before these, extra ranks send some chunks,
// and in one after them they receive some. The order has the active ranks first, and then the extra ones.
func (f fold) traffic(t *schedule.Traffic, before, after int, foldBefore, foldThen bool,
	distance func(r int) int, chunks func(r, j int) int) {
	order := 0
	if f.extra > 0 {
		ranks := make([]int, 0, f.p+f.extra)
		for j := range f.p {
			ranks = append(ranks, f.first(j))
		}
		for j := range f.extra {
			ranks = append(ranks, f.first(j)+1)
		}
		t.Orders, order = [][]int{ranks}, 1
		t.Rounds = append(t.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{
			{Order: order, First: f.p, Count: f.extra, Move: -f.p, Chunks: before, Fold: foldBefore}}})
	}
	for r := range f.rounds() {
		alike := schedule.Alike{Times: 1}
		for j := 0; j < f.p; {
			flow := schedule.Flow{Order: order, First: j, Stride: distance(r), Radix: 2, Move: 1, Chunks: chunks(r, j),
				Fold: foldThen}
			for j < f.p && chunks(r, j) == flow.Chunks {
				j++
			}
			flow.Count = j - flow.First
			alike.Flows = append(alike.Flows, flow)
		}
		t.Rounds = append(t.Rounds, alike)
	}
	if f.extra > 0 {
		t.Rounds = append(t.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{
			{Order: order, Count: f.extra, Move: f.p, Chunks: after}}})
	}
}

func (s Spec) butterflyTraffic(t *schedule.Traffic) {
	s.fold().traffic(t, 1, 1, true, true,
		func(r int) int { return 1 << r },
		func(_, _ int) int { return 1 })
}

func (s Spec) halvingTraffic(t *schedule.Traffic) {
	f := s.fold()
	half := func(r int) int { return f.p >> (r + 1) }
	f.traffic(t, s.Size, 1, true, true, half, func(r, j int) int {
		lo := (j/half(r) ^ 1) * half(r) // the active ranks on the partner's side
		return f.first(lo+half(r)) - f.first(lo)
	})
}

func (s Spec) gatherTraffic(t *schedule.Traffic) {
	f := s.fold()
	f.traffic(t, 1, s.Size, false, false,
		func(r int) int { return 1 << r },
		func(r, j int) int {
			lo := j >> r << r
			return f.first(lo+1<<r) - f.first(lo)
		})
}

func (s Spec) bruckTraffic(t *schedule.Traffic) {
	t.Rounds = append(t.Rounds, schedule.Alike{Times: 1}) // it only packs
	for r := range bits.Len(uint(s.Size - 1)) {
		t.Rounds = append(t.Rounds,
			schedule.Alike{Times: 1, Flows: []schedule.Flow{{Move: 1 << r, Chunks: withDigit(s.Size, r)}}})
	}
}

func (s Spec) binomialTraffic(t *schedule.Traffic) {
	ranks := make([]int, s.Size)
	for v := range ranks {
		ranks[v] = (v + s.Root) % s.Size
	}
	t.Orders = [][]int{ranks}
	for r := range s.treeRounds() {
		t.Rounds = append(t.Rounds, schedule.Alike{Times: 1, Flows: []schedule.Flow{
			{Order: 1, Count: min(1<<r, s.Size-1<<r), Move: 1 << r, Chunks: 1}}})
	}
}

// withDigit is how many numbers below k have binary digit t.
func withDigit(k, t int) int {
	n := 0
	for i := range k {
		n += i >> t & 1
	}
	return n
}
