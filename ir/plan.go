package ir

import (
	"cmp"
	"fmt"
	"slices"

	"gogcl.dev/internal/kernel"
)

// memoryPlan says where everything lies.
type memoryPlan struct {
	steps         []*step
	locations     []*location
	loads         map[*Stream]int
	arena         int         // bytes of what is alive for a while
	variables     int         // bytes of variables
	scratch       int         // bytes that the step in progress has beside
	besideScratch int         // the same of what runs beside the replica
	numbered      int         // steps
	touched       []*location // in the order of the steps, while they are numbered
	looked        int         // what it took to place the tensors: see fit
}

// plan lowers a program and gives every location its place.
func (p *Program) plan() (*memoryPlan, error) {
	if err := p.checkStarted(); err != nil {
		return nil, err
	}
	l := &lowering{loads: map[*Stream]int{}, replicas: p.replicas, started: map[*node]*startedStep{},
		changes: map[*Graph]map[*Tensor]bool{}}
	where := map[*Tensor]*location{}
	steps, err := l.expand(p.main, where)
	if err != nil {
		return nil, err
	}
	m := &memoryPlan{steps: steps, locations: l.locations, loads: l.loads}
	m.number(steps, false)
	m.touched = nil
	for _, x := range m.locations {
		if x.kind == ofVariable {
			size := kernel.Lines(x.spec.Bytes())
			if size > maxBytes-m.variables {
				return nil, fmt.Errorf("ir: the variables of a replica take more than %d bytes", maxBytes)
			}
			x.offset = m.variables
			m.variables += size
		}
	}
	if !m.place() {
		return nil, fmt.Errorf("ir: the tensors of a replica that are alive together take more than %d bytes", maxBytes)
	}
	for _, bytes := range []int{m.scratch, m.besideScratch} {
		if bytes > maxBytes {
			return nil, fmt.Errorf("ir: an operation of a replica wants more than %d bytes beside its tensors",
				maxBytes)
		}
	}
	return m, nil
}

// number counts the steps and notes from which to which every location is alive.
func (m *memoryPlan) number(steps []*step, beside bool) {
	for _, s := range steps {
		s.at = m.numbered
		m.numbered++
		for _, x := range s.in {
			m.touch(x, s.at)
		}
		for _, x := range s.out {
			m.touch(x, s.at)
		}
		for _, x := range []*location{s.from, s.to, s.when} {
			m.touch(x, s.at)
		}
		if s.node != nil && s.body == nil && s.from == nil {
			if o, is := s.node.op.(Scratcher); is {
				most := &m.scratch
				if beside {
					most = &m.besideScratch
				}
				bytes := o.ScratchBytes(specsOf(s.node.in))
				if bytes < 0 || bytes > maxBytes { // below 0: more than an int of 32 bits holds
					bytes = maxBytes + 1
				}
				*most = max(*most, kernel.Lines(bytes))
			}
		}
		if s.waits != nil { // nobody knows when between the start and here what is used
			for _, x := range s.waits.beside {
				m.touch(x, s.at)
			}
		}
		if s.body == nil && s.els == nil {
			continue
		}
		mark := len(m.touched)
		m.number(s.body, beside || s.starts)
		m.number(s.els, beside)
		if s.starts {
			s.beside = slices.Clone(m.touched[mark:])
			for _, x := range s.beside {
				x.touch(s.at)
			}
			continue
		}
		end := m.numbered - 1
		for _, x := range m.touched[mark:] {
			// What is made before a loop and used in it is needed in its last turn too. The same is said of a choice,
			// where its result, which both branches make, needs it.
			if x.last >= s.at && (x.first <= s.at || x.history(s) || s.count == 0 && x.shared(s)) {
				x.touch(s.at)
				x.touch(end)
			}
		}
	}
}

// shared reports whether a location is a result of a choice.
func (x *location) shared(s *step) bool { return x.of != nil && x.of.node == s.node }

// history reports whether a location gathers something of every turn of a loop.
func (x *location) history(s *step) bool {
	return s.count > 0 && x.of.node == s.node && x.of.out >= s.node.carried()
}

// touch notes that a step needs a location.
func (m *memoryPlan) touch(x *location, at int) {
	if x != nil {
		m.touched = append(m.touched, x)
		x.touch(at)
	}
}

func (x *location) touch(at int) {
	switch {
	case x.last < 0:
		x.first, x.last = at, at
	default:
		x.first, x.last = min(x.first, at), max(x.last, at)
	}
}

// place gives each location of the arena the lowest place that is free while it is alive, the largest first. It returns
// false if the arena would have more than maxBytes.
func (m *memoryPlan) place() bool {
	var all []*location
	for _, x := range m.locations {
		if x.kind == inArena && x.last >= 0 {
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b *location) int {
		return cmp.Or(cmp.Compare(b.spec.Bytes(), a.spec.Bytes()), cmp.Compare(a.first, b.first))
	})
	room := newFit(m.numbered)
	for _, x := range all {
		size := kernel.Lines(x.spec.Bytes())
		at := room.lowest(x.first, x.last, size)
		if size > maxBytes-at {
			return false
		}
		x.offset = at
		m.arena = max(m.arena, at+size)
		room.take(x.first, x.last, at, size)
	}
	m.looked = room.looked
	return true
}
