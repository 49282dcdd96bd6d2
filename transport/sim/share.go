package sim

import "math"

// sharing is how the flows of a simulator share its cables: fairly, which is to say that no flow can have more but at
// the cost of one that has no more than it (max-min fairness).
//
// Rates are found by filling: all flows without a rate get more and more, until a cable is full. That gives its flows
// their rates. The others go on. A change on some cables does not touch the flows that were full at a lower rate than
// any flow that has come or gone: floor. Nor does it touch those that no chain of cables connects with it.
type sharing struct {
	added []*flow  // since the last share
	dirty []*cable // from which flows have gone since then, while others are on them
	floor float64  // at most the rate of each flow that has gone, and in the end of each that has come

	round  uint64
	flows  []*flow // scratch: whose rates may change
	around []*cable
	filled levels
}

// near is how close two rates are, by ratio, that differ by rounding only.
const near = 1e-9

// share gives flows their rates after others have come or gone.
func (n *simulator) share() {
	if len(n.added) == 0 && len(n.dirty) == 0 {
		return
	}
	for _, f := range n.added {
		if len(f.cables) == 0 { // dropped
			continue
		}
		least, alone := math.Inf(1), true
		for _, c := range f.cables {
			alone = alone && len(c.flows) == 1
			least = min(least, c.bytesPerSecond/float64(len(c.flows)))
		}
		if alone {
			n.run(f, least)
			continue
		}
		n.floor = min(n.floor, least)
		n.dirty = append(n.dirty, f.cables...)
	}
	n.added = n.added[:0]
	n.reach()
	n.fill()
	n.floor = math.Inf(1)
}

// reach finds the flows whose rates may change, and the cables that they are on.
func (n *simulator) reach() {
	n.round++
	floor := n.floor * (1 - near)
	n.flows, n.around = n.flows[:0], n.around[:0]
	for _, c := range n.dirty {
		if c.mark != n.round {
			c.mark = n.round
			n.around = append(n.around, c)
		}
	}
	n.dirty = n.dirty[:0]
	for i := 0; i < len(n.around); i++ {
		c := n.around[i]
		c.room, c.open = c.bytesPerSecond, 0
		for _, f := range c.flows {
			if f.rate > 0 && f.rate < floor {
				c.room -= f.rate
				continue
			}
			c.open++
			if f.mark == n.round {
				continue
			}
			f.mark = n.round
			n.flows = append(n.flows, f)
			for _, other := range f.cables {
				if other.mark != n.round {
					other.mark = n.round
					n.around = append(n.around, other)
				}
			}
		}
	}
}

// fill gives the flows that reach has found their rates.
func (n *simulator) fill() {
	n.filled = n.filled[:0]
	for _, c := range n.around {
		if c.open > 0 {
			n.filled.push(level{c.room / float64(c.open), c})
		}
	}
	rate := 0.0 // the greatest so far
	for len(n.filled) > 0 {
		l := n.filled.pop()
		c := l.cable
		if c.open == 0 {
			continue
		}
		if now := c.room / float64(c.open); now > l.rate*(1+near) { // flows that it shares with others have less
			n.filled.push(level{now, c})
			continue
		}
		if l.rate > rate*(1+near) {
			rate = l.rate
		}
		for _, f := range c.flows {
			if f.mark != n.round {
				continue
			}
			f.mark = 0
			for _, other := range f.cables {
				other.room -= rate
				other.open--
			}
			if math.Abs(f.rate-rate) > near*rate {
				n.run(f, rate)
			}
		}
	}
}

// run has a flow go on with another rate.
func (n *simulator) run(f *flow, rate float64) {
	f.left = max(f.left-f.rate*(n.now-f.since), 0)
	f.since, f.rate = n.now, rate
	n.made++
	f.event = n.made
	n.plan(event{at: n.now + f.left/rate, number: n.made, flow: f})
}

// level is the rate at which a cable is full.
type level struct {
	rate  float64
	cable *cable
}

// levels is a heap, the lowest rate first.
type levels []level

func (h *levels) push(l level) {
	*h = append(*h, l)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if a[up].rate <= a[i].rate {
			break
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *levels) pop() level {
	a := *h
	first, last := a[0], len(a)-1
	a[0] = a[last]
	a = a[:last]
	*h = a
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(a) {
			break
		}
		if down+1 < len(a) && a[down+1].rate < a[down].rate {
			down++
		}
		if a[i].rate <= a[down].rate {
			break
		}
		a[i], a[down] = a[down], a[i]
		i = down
	}
	return first
}
