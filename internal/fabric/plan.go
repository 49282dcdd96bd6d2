package fabric

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
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

	Most      int // replicas that the job may have; 0: nobody comes
	Newcomers []Newcomer
	Tail      int // more steps, with TailPause before each: so long that newcomers have the time to come

	blows []blow
	last  time.Duration // when the last blow comes
}

// Newcomer is a process that comes to the job some time after Strike. It may be killed in the place of any write.
type Newcomer struct {
	*Process
	At time.Duration
}

// TailPause is before each step of the tail.
const TailPause = time.Second

// tailTime is how long newcomers may need when all else is over.
const tailTime = 14 * time.Second

// blow is a harm at some time after Strike.
type blow struct {
	at time.Duration
	do func()
}

func (s *Scene) survives() bool {
	return slices.Contains([]Trouble{Die, Two, Most, Lowest, Amid, Host, Freeze, Halves, Thirds, OneWay, GiveUp, Snap,
		Flaps, Both}, s.Trouble)
}

// Severs reports whether the trouble may be that what two send each other does not arrive, and both live. On one host
// only a test does that.
func (s *Scene) Severs() bool {
	return slices.Contains([]Trouble{Halves, Thirds, OneWay, Snap, Flaps, Both}, s.Trouble)
}

// comes plans who comes to the job, by chances of its own: the trouble stays that of the seed.
func (s *Scene) comes(c *rand.Rand) {
	n := len(s.Processes)
	if c.IntN(4) > 0 || s.Trouble == Host && s.Hosts == 1 {
		return
	}
	s.Most = n + c.IntN(3)
	calm, together, relay := c.IntN(8) == 0, c.IntN(2) == 0, s.Trouble == Freeze && c.IntN(3) > 0
	if calm { // there is no trouble, and they come soon: see Survivors.Judge
		s.Trouble, s.Most, s.plan = None, n+2, plan{Seeded: s.Seeded, Steps: s.Steps, Pause: s.Pause, Most: n + 2}
	}
	if relay = relay && !calm; relay { // the others end one by one, and leave the job to those that come
		s.blows, s.last, s.Most = nil, 0, n+2
		s.blow(s.At, s.Processes[s.Victim].Stop)
		at := s.At + 3*time.Second
		for _, r := range c.Perm(n) {
			if r != s.Victim {
				at += time.Duration(c.Int64N(int64(2 * time.Second)))
				s.blow(at, func() { s.Processes[r].Kill(false, 0) })
			}
		}
		s.blow(s.At+time.Duration(c.Int64N(int64(at-s.At+2*time.Second))), s.Processes[s.Victim].Resume)
	}
	for i := range 1 + c.IntN(2) {
		host, at := "node", netip.AddrFrom4([4]byte{127, 0, 0, 1})
		if s.Hosts > 1 {
			host, at = fmt.Sprint("node", c.IntN(s.Hosts)), netip.AddrFrom4([4]byte{10, 0, 1, byte(i + 1)})
		}
		p := Newcomer{s.Fabric.Process(fmt.Sprint(n+i), host, at), 0}
		switch c.IntN(4) {
		case 0: // before
			p.At = time.Duration(c.Int64N(int64(1 + s.At)))
		case 1: // about when the trouble begins
			p.At = max(0, s.At+time.Duration(c.Int64N(int64(1+40*s.Delay)))-20*s.Delay)
		case 2: // while the others agree
			p.At = s.At + time.Duration(c.Int64N(int64(50*time.Millisecond)))
		default:
			p.At = s.At + time.Duration(c.Int64N(int64(6*time.Second)))
		}
		switch {
		case calm && i > 0 && together:
			p.At = s.Newcomers[0].At
		case calm || relay:
		case c.IntN(4) == 0:
			p.KillAfter(c.IntN(20 * n))
		}
		s.Newcomers = append(s.Newcomers, p)
		s.last = max(s.last, p.At)
	}
	if calm || relay || c.IntN(4) == 0 {
		s.Tail = int((s.last - s.At + tailTime) / TailPause)
	}
	s.Steps += s.Tail
}

// NobodyComes has it be a job without newcomers.
func (s *Scene) NobodyComes() {
	s.Steps -= s.Tail
	s.Most, s.Newcomers, s.Tail = 0, nil, 0
}

// Process is a replica of the job that it began with, or, with the numbers after those, a newcomer.
func (s *Scene) Process(r int) *Process {
	if n := len(s.Processes); r >= n {
		return s.Newcomers[r-n].Process
	}
	return s.Processes[r]
}

// Parties is how many processes there are, with those that come.
func (s *Scene) Parties() int { return len(s.Processes) + len(s.Newcomers) }

// Over reports whether a job that has so many members makes no more steps. It waits for no newcomer for which there is
// no room.
func (s *Scene) Over(done uint64, members int) bool {
	return int(done) >= s.Steps || s.Tail > 0 && int(done) >= s.Steps-s.Tail && members >= s.Most
}

// Rest is the pause before a step.
func (s *Scene) Rest(step uint64) time.Duration {
	if int(step) >= s.Steps-s.Tail {
		return TailPause
	}
	return s.Pause
}

// draw plans what happens. coming is the chances of newcomers.
func (s *Scene) draw(coming *rand.Rand) {
	defer s.comes(coming)
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
		s.blow(at, func() {
			for r := range s.Parties() {
				if p := s.Process(r); p.host == lost {
					p.Cut()
					p.Kill(false, 0)
				}
			}
		})
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
func (s *Scene) SameHost(a, b int) bool { return s.Process(a).host == s.Process(b).host }
