package methods

import (
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"gogcl.dev/methods/schedule"
)

// Traffic returns the messages of Build(s), described without steps, for up to 65,536 ranks. The ring methods describe
// all-reduce, reduce-scatter, all-gather and broadcast; recursive_doubling also all-to-all. A method of a Generator
// describes what its Traffic does, if it is a [TrafficGenerator]: of Gallery all but the trees are. Nothing is proved
// for it. Errors: those of Build, and errors.ErrUnsupported for any other method or collective and for RankOrder.
func (s Spec) Traffic() (*schedule.Traffic, error) {
	if err := s.checkForm(); err != nil {
		return nil, err
	}
	w, _ := s.recipe()
	switch {
	case w.described != nil && s.Size > 1:
		return w.described(s)
	case w.described == nil && w.traffic == nil || s.inOrder():
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
		alike := schedule.Alike{Times: 1}
		for i, l := range lanes {
			if first, end := max(round-m+1, 0), min(round+1, l.reach); first < end {
				alike.Flows = append(alike.Flows,
					schedule.Flow{Order: i + 1, First: first, Count: end - first, Move: 1, Chunks: 1})
			}
		}
		t.Rounds = append(t.Rounds, alike)
	}
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
