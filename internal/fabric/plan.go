package fabric

import (
	"slices"
	"time"
)

// plan is the trouble of a scene whose replicas go on without those that are gone.
type plan struct {
	Seeded uint64        // chances of what its replicas do
	Steps  int           // that the job makes
	Pause  time.Duration // before each

	Sides   [][]int // that the network parts into; nil: it does not
	Heals   bool    // the network does, or who is stopped goes on
	Breaks  bool    // connections between them do, too
	Pair    [2]int  // nothing arrives from the first at the second
	Snapped []int   // with whom some have lost their connections, one after another
	Victims []int   // that are stopped, leave, or do not wait

	blows []blow
	last  time.Duration // when the last blow comes
}

// blow is a harm at some time after Strike.
type blow struct {
	at time.Duration
	do func()
}

func (s *Scene) survives() bool {
	return slices.Contains([]Trouble{Die, Two, Most, Lowest, Amid, Host, Freeze, Halves, Thirds, OneWay, GiveUp, Snap,
		Flaps, Both}, s.Trouble)
}

// draw plans what happens.
func (s *Scene) draw() {
	c, n := s.Chances, len(s.Processes)
	s.Seeded, s.Steps = c.Uint64(), 3+c.IntN(8)
	s.Pause = time.Duration(c.Int64N(int64(100 * time.Millisecond)))
	if c.IntN(4) == 0 {
		s.Pause = 0
	}
	s.At = time.Duration(c.Int64N(int64(1 + time.Duration(s.Steps)*(s.Pause+2*s.Delay))))
	soon := func() time.Duration { // within an agreement, and what follows
		if c.IntN(4) == 0 {
			return time.Duration(c.Int64N(int64(3 * time.Second)))
		}
		return time.Duration(c.Int64N(int64(1 + 8*s.Delay)))
	}
	while := func() time.Duration { return time.Duration(c.Int64N(int64(6 * time.Second))) }
	order := c.Perm(n)
	kill := func(at time.Duration, r int) {
		lossy, late := c.IntN(4) == 0, time.Duration(0)
		if c.IntN(3) == 0 {
			late = time.Duration(c.Int64N(int64(300 * time.Millisecond)))
		}
		if c.IntN(3) == 0 {
			writes := c.IntN(20 * n)
			s.blow(at, func() { s.Processes[r].KillAfter(writes) })
			return
		}
		s.blow(at, func() { s.Processes[r].Kill(lossy, late) })
	}
	freeze := func(at time.Duration, r int) {
		s.Victims = []int{r}
		s.blow(at, s.Processes[r].Stop)
		s.blow(at+while(), s.Processes[r].Resume)
	}
	heal := func(at time.Duration) {
		if s.Heals = c.IntN(2) == 0; s.Heals {
			s.blow(at+while(), s.Fabric.Heal)
		}
	}
	at := s.At
	switch s.Trouble {
	case Die:
		kill(at, s.Victim)
	case Two:
		kill(at, order[0])
		kill(at+soon(), order[1])
	case Most:
		for _, r := range order[min(1+c.IntN(2), n-1):] {
			kill(at, r)
			if c.IntN(2) == 0 {
				at += soon()
			}
		}
	case Lowest:
		kill(at, 0)
		if n > 2 && c.IntN(2) == 0 {
			kill(at+soon(), 1)
		}
	case Amid:
		kill(at, order[0])
		writes := c.IntN(8 * n)
		s.blow(at+soon(), func() { s.Processes[order[1]].KillAfter(writes) })
	case Host:
		lost := s.Processes[s.Victim].host
		for _, p := range s.Processes {
			if p.host == lost {
				s.blow(at, func() {
					p.Cut()
					p.Kill(false, 0)
				})
			}
		}
	case Freeze:
		freeze(at, s.Victim)
	case Halves, Thirds:
		parts := 2
		if s.Trouble == Thirds {
			parts = 3
		}
		s.Sides = make([][]int, parts)
		for r := range n {
			side := c.IntN(parts)
			s.Sides[side] = append(s.Sides[side], r)
		}
		s.Breaks = c.IntN(3) == 0
		s.blow(at, s.part)
		heal(at)
	case OneWay:
		s.Pair = [2]int{order[0], order[1]}
		s.blow(at, func() { s.Fabric.Part(s.Processes[order[0]], s.Processes[order[1]]) })
		heal(at)
	case Snap:
		for range 1 + c.IntN(3) {
			a := c.IntN(n)
			b, resets := (a+1+c.IntN(n-1))%n, c.IntN(2) == 0
			s.Snapped = append(s.Snapped, a, b)
			s.blow(at, func() { s.Fabric.Snap(s.Processes[a], s.Processes[b], resets) })
			at += soon()
		}
	case Flaps:
		silent := at // for as long as it takes others to notice
		for range 1 + c.IntN(2*n) {
			from, to := c.IntN(n), c.IntN(n)
			for range c.IntN(2) + 1 {
				s.blow(silent+soon(), func() { s.Fabric.Part(s.Processes[from], s.Processes[to]) })
				from, to = to, from
			}
			if c.IntN(3) == 0 {
				s.blow(silent+while(), s.Fabric.Heal)
			}
			if c.IntN(3) == 0 {
				silent += while() / 2
			}
		}
		s.blow(silent+6*time.Second, s.Fabric.Heal)
		s.Heals = true
		switch c.IntN(3) {
		case 0:
			freeze(at+while()/2, order[0])
		case 1:
			kill(at+while()/2, order[0])
		}
	case GiveUp:
		s.Victims = []int{order[0]}
		kill(at, order[1])
	case Both:
		kill(at, order[0])
		at += soon()
		if n == 2 || c.IntN(2) == 0 {
			freeze(at, order[1])
			break
		}
		s.blow(at, func() { s.Fabric.Part(s.Processes[order[1]], s.Processes[order[2]]) })
		heal(at)
	}
}

func (s *Scene) blow(at time.Duration, do func()) {
	s.blows = append(s.blows, blow{at, do})
	s.last = max(s.last, at)
}

// part has nothing arrive between the sides. Then connections between them break: nobody hears from the other side of
// one that has broken before others have.
func (s *Scene) part() {
	s.across(s.Fabric.Part)
	if s.Breaks {
		s.across(func(from, to *Process) { s.Fabric.Snap(from, to, false) })
	}
}

// across does something from each process to those of other sides.
func (s *Scene) across(do func(from, to *Process)) {
	for i, side := range s.Sides {
		for j, other := range s.Sides {
			for _, from := range side {
				for _, to := range other {
					if i != j {
						do(s.Processes[from], s.Processes[to])
					}
				}
			}
		}
	}
}

// Strike begins the trouble: all have met.
func (s *Scene) Strike() {
	for _, b := range s.blows {
		time.AfterFunc(b.at, b.do)
	}
}

// SameHost reports whether two replicas share a kernel.
func (s *Scene) SameHost(a, b int) bool { return s.Processes[a].host == s.Processes[b].host }
