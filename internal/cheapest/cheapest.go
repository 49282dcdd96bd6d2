package cheapest

import (
	"cmp"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// Prices has the choices on one network, for groups of its replicas. Several goroutines may use it.
type Prices struct {
	model  cost.Model
	digest uint64

	mu     sync.Mutex // guards tables
	tables map[Group]*Table
}

// New makes the Prices of a network, with the processors at its ends.
func New(m cost.Model) *Prices {
	return &Prices{model: m, digest: m.Digest(), tables: map[Group]*Table{}}
}

// Model is the network.
func (p *Prices) Model() cost.Model { return p.model }

// Digest sums up the network and the processors, so that members see whether theirs differ: see [cost.Model.Digest].
func (p *Prices) Digest() uint64 { return p.digest }

// Group is a group of replicas, as far as choices depend on it.
type Group struct {
	ID uint64 // of members and ring orders: it differs where they do

	RankOrder   bool // as in methods.Spec
	NoBroadcast bool // broadcast is not for all-reduces
	Constants   bool // no method of the gallery
}

// Table has the choices of a group.
type Table struct {
	prices       *Prices
	group        Group
	members      []int
	ring, second []int

	mu      sync.Mutex // held while a choice is made
	choices [schedule.Barrier][64]atomic.Pointer[Choice]
}

// Of is the table of a group with these members, by rank, and ring orders, which nobody changes. Those who ask for the
// same group share one.
func (p *Prices) Of(g Group, members, ring, second []int) *Table {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.tables[g]
	if t == nil {
		t = &Table{prices: p, group: g, members: members, ring: ring, second: second}
		p.tables[g] = t
	}
	return t
}

// Choice is a method, and what it costs.
type Choice struct {
	Method methods.Method // Auto: nothing has a price
	Pieces int            // of a pipeline, as in methods.Spec; 0 of others
	Bytes  int64          // that were priced: the class
	Among  int            // how many methods do the call

	cost.Estimate
}

// Choose is the choice for a collective of so many bytes in the larger buffer, with root 0. It is made when somebody
// first asks for its class. Later ones take no lock and no memory. nil: there is none.
func (t *Table) Choose(c schedule.Collective, bytes int64) *Choice {
	if t == nil || c >= schedule.Barrier || bytes < 0 {
		return nil
	}
	class := ClassOf(bytes)
	chosen := t.choices[c][class].Load()
	if chosen == nil {
		chosen = t.choose(c, class)
	}
	if chosen.Method == methods.Auto {
		return nil
	}
	return chosen
}

// ClassOf is the power of two that is nearest to a number of bytes, by ratio: its exponent.
func ClassOf(bytes int64) int {
	if bytes < 2 {
		return 0
	}
	low := bits.Len64(uint64(bytes)) - 1
	high, rest := bits.Mul64(uint64(bytes), uint64(bytes)) // bytes/2^low against the root of 2
	if low >= 32 && high>>(2*low+1-64) > 0 || low < 32 && (high > 0 || rest>>(2*low+1) > 0) {
		return min(low+1, 62)
	}
	return low
}

// choose makes a choice, unless another has meanwhile.
func (t *Table) choose(c schedule.Collective, class int) *Choice {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := &t.choices[c][class]
	if made := at.Load(); made != nil {
		return made
	}
	best := t.best(c, 1<<class)
	at.Store(best)
	return best
}

// best prices the methods that do a collective, beginning with those of few messages, and of them and of the others
// with those that may take least. It leaves one as soon as it is sure to take longer than another.
func (t *Table) best(c schedule.Collective, bytes int64) *Choice {
	asked, among := t.asked(c, bytes)
	slices.SortStableFunc(asked, request.compare)
	best, first := &Choice{Bytes: bytes, Among: among}, math.MaxInt
	best.Time = math.MaxInt64
	for _, r := range asked {
		limit := best.Time
		if r.place > first && limit > 0 {
			limit-- // which comes first if it takes as long
		}
		if r.least > limit {
			continue
		}
		e, within := t.price(r, bytes, limit)
		if within && (e.Time < best.Time || e.Time == best.Time && r.place < first) {
			best.Method, best.Pieces, best.Estimate, first = r.spec.Method, r.spec.Pieces, e, r.place
		}
	}
	return best
}

// request is what a method is asked for.
type request struct {
	place   int // among all requests, in the order of methods.All
	spec    methods.Spec
	traffic *schedule.Traffic
	least   time.Duration // that it may take
	many    bool          // messages that are looked at, so that its price takes long to find
}

// fewMessages is how many for each rank are looked at soon: those of rings and of trees.
const fewMessages = 8

// compare orders requests as they are priced.
func (r request) compare(other request) int {
	if r.many != other.many {
		if r.many {
			return 1
		}
		return -1
	}
	return cmp.Compare(r.least, other.least)
}

// messages is how many different ones a price looks at, or more.
func messages(t *schedule.Traffic) int {
	n := 0
	for _, alike := range t.Rounds {
		n += len(alike.Listed)
		for _, f := range alike.Flows {
			senders := f.Count
			if senders == 0 {
				senders = t.Size
			}
			if f.All {
				senders *= t.Size
			}
			n += senders * max(f.Messages, 1)
		}
	}
	return n
}

// asked lists the requests for a collective, and how many methods do it.
func (t *Table) asked(c schedule.Collective, bytes int64) (asked []request, among int) {
	for _, m := range methods.All() {
		s := t.spec(m, c)
		if !t.does(s) {
			continue
		}
		among++
		for _, s.Pieces = range Cuts(s) {
			traffic, err := s.Traffic()
			if err != nil {
				continue
			}
			e, _, err := t.prices.model.PriceWithin(traffic, t.members, bytes, 0)
			if err != nil {
				continue
			}
			asked = append(asked, request{len(asked), s, traffic, e.Time, messages(traffic) > fewMessages*s.Size})
		}
	}
	return asked, among
}

// spec is the request for a method, without pieces.
func (t *Table) spec(m methods.Method, c schedule.Collective) methods.Spec {
	return methods.Spec{Method: m, Collective: c, Size: len(t.members), Ring: t.ring, Second: t.second,
		RankOrder: t.group.RankOrder && c.Contract().Combines}
}

// does reports whether a method is one to choose from.
func (t *Table) does(s methods.Spec) bool {
	switch {
	case s.Method.Own() && (t.group.Constants || !s.Method.InGallery() || swings(s)):
		return false
	case s.Method == methods.SendToAll && s.Collective == schedule.AllReduce && t.group.NoBroadcast:
		return false
	case sameAsDirect(s):
		return false
	}
	return s.Makes() == nil
}

// sameAsDirect reports whether the schedule is that of direct under the other name, broadcast.
func sameAsDirect(s methods.Spec) bool {
	return s.Method == methods.SendToAll && s.Collective.Contract().PerRank()
}

// mostSwung is the largest group for which swing is taken. It cuts what one rank sends another into ever more messages,
// 129 of them between 512 ranks, and to count them takes longer than a choice may.
const mostSwung = 64

func swings(s methods.Spec) bool { return s.Size > mostSwung && isSwing(s.Method) }

// isSwing reports whether a method's traffic has in one message what its schedule sends in several.
func isSwing(m methods.Method) bool {
	name := m.String()
	return m.InGallery() && (name == "swing" || name == "swing_2d")
}

// price is what a request costs, if that is at most a limit.
func (t *Table) price(r request, bytes int64, limit time.Duration) (cost.Estimate, bool) {
	e, within, err := t.prices.model.PriceWithin(r.traffic, t.members, bytes, limit)
	if err != nil || !within {
		return cost.Estimate{}, false
	}
	if isSwing(r.spec.Method) {
		made, err := methods.Build(r.spec)
		if err != nil {
			return cost.Estimate{}, false
		}
		if e, err = t.prices.model.Price(made, t.members, bytes); err != nil || e.Time > limit {
			return cost.Estimate{}, false
		}
	}
	return e, true
}

// mostPieces is the largest number of pieces of a pipeline: gcl takes no more.
const mostPieces = 64

// Cuts are the numbers of pieces to try: those of a pipeline that gcl takes, else 0.
func Cuts(s methods.Spec) []int {
	if s.Pipelined(1<<40, 1).Pieces == 0 {
		return []int{0}
	}
	var out []int
	for n := 1; n <= mostPieces; n *= 2 {
		out = append(out, n)
	}
	return out
}

// String is the choice as Explain cites it.
func (c *Choice) String() string {
	pieces := ""
	if c.Pieces > 0 {
		pieces = fmt.Sprintf(" in %d pieces", c.Pieces)
	}
	return fmt.Sprintf("%v%s at %d bytes, the nearest power of two, the least of the %d methods that do the call", c.Time,
		pieces, c.Bytes, c.Among)
}
