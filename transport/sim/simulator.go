package sim

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"

	"gogcl.dev/methods/cost"
)

// simulator is a network in virtual time: the messages on its cables, and the events to come. It is for one goroutine
// at a time.
type simulator struct {
	network cost.Network
	queued  bool
	arrived func(f *flow) // called when all of a message has arrived

	now      float64 // seconds
	instants int
	hash     uint64 // of all instants
	messages int

	events  events
	err     error  // time cannot go on: an event is behind latest
	made    uint64 // events made so far
	pending int    // events to come that are not of faults, and flows on cables

	places []int32  // by number of link: the place of its first cable, plus one; 0: no message has taken it yet
	cables []*cable // the first of each link
	links  []int    // scratch: the route of a message
	spare  []*flow  // for other messages

	sharing
}

// cable is one cable of a link. A message on a link of several takes one of them.
type cable struct {
	bytesPerSecond, latency float64
	bundle                  *bundle // of a link of several; else nil
	number                  int     // in the bundle

	flows []*flow // on it; of a queued network none
	load  float64 // bytes of the messages on it
	free  float64 // of a queued network: when the last message has left

	// Scratch of share.
	mark uint64
	room float64 // bytes a second that are not given away
	open int     // flows without a rate
}

// bundle is the cables of a link of several.
type bundle struct {
	cables []*cable
	idle   []uint64 // a bit for each: nothing is on it
}

// least is the first of those cables that have least to carry, or of a queued network are free first.
func (b *bundle) least(queued bool) *cable {
	if !queued {
		for i, word := range b.idle {
			if word != 0 {
				return b.cables[64*i+bits.TrailingZeros64(word)]
			}
		}
	}
	least := b.cables[0]
	for _, c := range b.cables {
		if queued && c.free < least.free || !queued && c.load < least.load {
			least = c
		}
	}
	return least
}

// carries notes whether anything is on a cable.
func (c *cable) carries(something bool) {
	if c.bundle == nil {
		return
	}
	if bit := uint64(1) << (c.number % 64); something {
		c.bundle.idle[c.number/64] &^= bit
	} else {
		c.bundle.idle[c.number/64] |= bit
	}
}

// flow is a message on its way.
type flow struct {
	bytes  float64
	after  float64  // seconds from its last byte sent to its last byte there
	cables []*cable // empty: it is on none
	at     []int    // its place in the flows of each of its cables
	left   float64  // bytes, at since
	since  float64
	rate   float64 // bytes a second; 0: it has none yet
	event  uint64  // the number of the event that is true of it
	mark   uint64  // scratch of share

	from, to       half  // of endpoints
	round, message int32 // of a replay
}

// event is something that happens at an instant: to a flow, if it is still the flow's event, or do.
type event struct {
	at     float64
	number uint64
	flow   *flow
	do     func()
	fault  bool
}

// instant is how close events are that happen at one instant: a thousandth of a nanosecond, or the last digits of the
// time.
func (n *simulator) instant(at float64) float64 { return max(1e-12, 1e-13*at) }

func newSimulator(c cost.Network, queued bool, arrived func(f *flow)) simulator {
	return simulator{network: c, queued: queued, arrived: arrived, places: make([]int32, c.Links()),
		sharing: sharing{floor: math.Inf(1)}}
}

// after has something happen so many seconds from now.
func (n *simulator) after(seconds float64, do func()) {
	n.pending++
	n.made++
	n.plan(event{at: n.now + seconds, number: n.made, do: do})
}

// latest is the last instant there is, in seconds: 146 years, half of what a time.Duration has room for. So timers and
// sums do not overflow.
const latest = (1 << 62) / 1e9

// plan has an event happen. One that is too late, or at no instant at all, ends the time.
func (n *simulator) plan(e event) {
	if e.at <= latest {
		n.events.push(e)
		return
	}
	n.err = cmp.Or(n.err, fmt.Errorf("something happens after %.4g s, and time ends after %.4g s", e.at, latest))
}

// fault has a fault happen at an instant, if it is not behind latest. It does not count as pending: nobody waits for a
// fault.
func (n *simulator) fault(at float64, do func()) {
	if at > latest {
		return
	}
	n.made++
	n.events.push(event{at: at, number: n.made, do: do, fault: true})
}

// next is the instant of the next event.
func (n *simulator) next() (at float64, ok bool) {
	n.share()
	for len(n.events) > 0 && n.err == nil {
		if e := &n.events[0]; e.flow == nil || e.flow.event == e.number {
			return e.at, true
		}
		n.events.pop()
	}
	return 0, false
}

// step goes on to the next instant and has happen what there is. It reports whether there was anything.
func (n *simulator) step() bool {
	at, ok := n.next()
	if !ok {
		return false
	}
	n.now = max(n.now, at)
	n.instants++
	n.hash = mix(n.hash ^ math.Float64bits(n.now))
	limit := n.now + n.instant(n.now)
	for len(n.events) > 0 && n.events[0].at <= limit {
		e := n.events.pop()
		switch {
		case e.flow == nil:
			if !e.fault {
				n.pending--
			}
			e.do()
		case e.flow.event != e.number: // it has another rate since, or is no more
		case len(e.flow.cables) > 0:
			n.leave(e.flow)
			n.arriveIn(e.flow, e.flow.after)
		default:
			f := e.flow
			f.event = 0
			n.pending--
			n.arrived(f)
		}
	}
	return true
}

// arriveIn has a flow that is on no cable arrive.
func (n *simulator) arriveIn(f *flow, seconds float64) {
	n.made++
	f.event = n.made
	n.plan(event{at: n.now + seconds, number: n.made, flow: f})
}

// flow returns one for a message.
func (n *simulator) flow() *flow {
	if last := len(n.spare) - 1; last >= 0 {
		f := n.spare[last]
		n.spare = n.spare[:last]
		return f
	}
	return new(flow)
}

// recycle takes a flow that has arrived, or was dropped, for another message.
func (n *simulator) recycle(f *flow) {
	f.from, f.to = half{}, half{}
	n.spare = append(n.spare, f)
}

// send puts a message on its way, to arrive by so many seconds later than the network has it arrive.
func (n *simulator) send(f *flow, from, to int, bytes, late float64) error {
	n.messages++
	var err error
	if n.links, err = n.network.Route(n.links[:0], from, to); err != nil {
		return err
	}
	f.bytes, f.left, f.since, f.rate, f.after = bytes, bytes, n.now, 0, 0
	f.cables, f.at = f.cables[:0], f.at[:0]
	for _, number := range n.links {
		c, err := n.cable(number)
		if err != nil {
			return fmt.Errorf("from replica %d to replica %d: %w", from, to, err)
		}
		f.after += c.latency
		f.cables = append(f.cables, c)
	}
	n.pending++
	switch {
	case bytes == 0 || len(f.cables) == 0:
		f.cables = f.cables[:0]
		n.arriveIn(f, f.after+late)
	case n.queued:
		n.arriveIn(f, n.queue(f)+late)
		f.cables = f.cables[:0]
	default:
		f.after += late
		for _, c := range f.cables {
			f.at = append(f.at, len(c.flows))
			c.flows = append(c.flows, f)
			c.load += bytes
			c.carries(true)
		}
		n.added = append(n.added, f)
		n.made++
		f.event = n.made // which is pushed when the flow has a rate
	}
	return nil
}

// queue has a message wait for each of its cables in turn, and pass on while it arrives. It returns in how many seconds
// all of it is there.
func (n *simulator) queue(f *flow) float64 {
	head, wait, slowest := n.now, 0.0, math.Inf(1)
	for _, c := range f.cables {
		if c.free > head+wait {
			wait = c.free - head
		}
		c.free = head + wait + f.bytes/c.bytesPerSecond
		head += c.latency
		slowest = min(slowest, c.bytesPerSecond)
	}
	return wait + (f.after + f.bytes/slowest)
}

// cable is the one of a link that a message takes: the first of those that have least to carry, or are free first.
func (n *simulator) cable(link int) (*cable, error) {
	if link < 0 || link >= len(n.places) {
		return nil, fmt.Errorf("the route takes link %d of %d", link, len(n.places))
	}
	if n.places[link] == 0 {
		l := n.network.Link(link)
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("link %d: %w", link, err)
		}
		cables := make([]*cable, max(l.Cables, 1))
		for i := range cables {
			cables[i] = &cable{bytesPerSecond: l.BytesPerSecond, latency: l.Latency.Seconds(), number: i}
		}
		if len(cables) > 1 {
			b := &bundle{cables, make([]uint64, (len(cables)+63)/64)}
			for _, c := range cables {
				c.bundle = b
				c.carries(false)
			}
		}
		n.cables = append(n.cables, cables[0])
		n.places[link] = int32(len(n.cables))
	}
	c := n.cables[n.places[link]-1]
	if c.bundle != nil {
		return c.bundle.least(n.queued), nil
	}
	return c, nil
}

// leave takes a flow from its cables.
func (n *simulator) leave(f *flow) {
	for i, c := range f.cables {
		last := len(c.flows) - 1
		moved := c.flows[last]
		c.flows[f.at[i]] = moved
		for j, other := range moved.cables {
			if other == c {
				moved.at[j] = f.at[i]
			}
		}
		c.flows[last] = nil
		c.flows = c.flows[:last]
		c.load -= f.bytes
		if last == 0 {
			c.load = 0
			c.carries(false)
		} else {
			n.dirty = append(n.dirty, c)
			if f.rate > 0 {
				n.floor = min(n.floor, f.rate)
			}
		}
	}
	f.cables = f.cables[:0]
}

// drop has a message that is on its way never arrive.
func (n *simulator) drop(f *flow) {
	n.leave(f)
	f.event = 0
	n.pending--
}

// events is a heap, the next event first.
type events []event

func (h events) before(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].number < h[j].number
}

func (h *events) push(e event) {
	*h = append(*h, e)
	a := *h
	for i := len(a) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.before(i, up) {
			break
		}
		a[i], a[up] = a[up], a[i]
		i = up
	}
}

func (h *events) pop() event {
	a := *h
	first, last := a[0], len(a)-1
	a[0] = a[last]
	a[last] = event{}
	a = a[:last]
	*h = a
	for i := 0; ; {
		down := 2*i + 1
		if down >= len(a) {
			break
		}
		if down+1 < len(a) && a.before(down+1, down) {
			down++
		}
		if !a.before(down, i) {
			break
		}
		a[i], a[down] = a[down], a[i]
		i = down
	}
	return first
}

// mix is a bijection that scatters numbers: the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
