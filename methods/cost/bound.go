package cost

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"gogcl.dev/methods/schedule"
)

// Bound is a time that no method is faster than: what a network allows. [Model.Bound] finds it. The zero Bound is 0.
type Bound struct {
	share      bool    // slope is for each byte of a rank's share, and else of the buffer
	ranks      int64   // in the group
	slope      float64 // seconds a byte: the worst cut
	latency    float64 // seconds: of the two ranks farthest apart of which one has data of the other
	least      float64 // seconds: the least latency that a message can have
	few        float64 // seconds: what the busiest processor takes at least, folds left out
	mean       float64 // seconds: what a processor takes for messages, on average
	foldsSlope float64 // seconds a byte of the buffer: what a processor takes for folds, on average
}

// Bound finds the time that no schedule of the collective among the members is faster than by [Model.Price] and
// [Model.PriceTraffic], whatever the bytes. root is the rank of a collective that has one, and else ignored.
//
// # Cuts
//
// Data that has to pass from one part of the network to the rest takes at least its bytes / the sum of the speeds of
// the links that lead out of the part, however it is cut into rounds. So a cut with a of n ranks on the near side gives
// a bound, B being the bytes of the larger buffer:
//
//	                has to cross                                    of B bytes
//	all-gather      the shares of the near side                     a/n
//	reduce-scatter  a combination for each share of the far side    (n-a)/n
//	all-to-all      a block from each near rank to each far rank    a (n-a)/n
//	broadcast       everything, if the root is near                 1
//	reduce          a combination of everything, if it is far       1
//	scatter         the shares of the far side, if it is near       (n-a)/n
//	gather          the shares of the near side, if it is far       a/n
//	all-reduce      a combination of everything, both ways          1
//
// An all-reduce has a better bound from a partition into g parts: at least 2 (g-1) B leave them, all together. For look
// at one element, and at the messages between parts that bring it or a combination of it, one after the other. Until
// the first part has what comes from all, each other part has sent, and after that each other part has yet to receive:
// g-1 messages each. With each rank a part this is the known 2 (n-1)/n B of a rank.
//
// The first line is the bound of Zhao and Krishnamurthy, [Pipeline], section 1.1, which the trees of [ForestColl] reach
// for large data. The worst partition is the time of the best all-reduce for large data where links are alike both ways
// and no node is a switch, by the theorem of Tutte and Nash-Williams on packings of spanning trees.
//
// # Which cuts
//
// Up to 128 nodes, switches among them, the worst cut of every collective but all-to-all is found, by max-flows and
// Newton's method on cuts. Beyond that cuts are single ranks, ranks with neighbouring numbers, subtrees of a fat tree,
// and slabs of a torus, and for an all-reduce or an all-to-all they are these, and parts that grow along the strongest
// links, at any size. The bound is one all the same, if perhaps not the best.
//
// # Latency, processors
//
// At least one message crosses a cut, and has the latency of a message. Nothing is faster than the least latency
// between the two ranks farthest apart. Beyond 256 ranks that is the farthest of some ranks from some others.
// Processors come on top, since a round has the network first and the processors then: [Model.Overhead] for the
// messages that any method needs, and the folds of an average rank.
//
// The bound allows what messages may not do, such as to take a way that is not the shortest, and counts whole bytes of
// a rank's share: bytes / n, rounded down. A method that has an all-to-all's blocks in chunks of less than a byte or
// two may be priced below that by the bytes that are lost in rounding.
//
// Errors: those of Price about the model and the members; a root that is no rank; a collective that is
// schedule.Custom, whose contract is not known here; a network of the program's own with more than 512 members; two
// ranks between which no way leads and one has data of the other.
//
// [Pipeline]: https://arxiv.org/abs/2305.18461
// [ForestColl]: https://arxiv.org/abs/2402.06787
func (m Model) Bound(c schedule.Collective, root int, members []int) (Bound, error) {
	if !c.Valid() || c == schedule.Custom {
		return Bound{}, fmt.Errorf("cost: no bound of %v, want one of the collectives of schedule.Collectives, or "+
			"barrier: %w", c, errors.ErrUnsupported)
	}
	if err := m.check(len(members), members, 0); err != nil {
		return Bound{}, err
	}
	n := len(members)
	contract := c.Contract()
	switch {
	case n == 0:
		return Bound{}, errors.New("cost: a bound without members")
	case contract.Rooted() && (root < 0 || root >= n):
		return Bound{}, fmt.Errorf("cost: root %d of %v over %d ranks", root, c, n)
	case n == 1:
		return Bound{}, nil
	}
	if !contract.Rooted() {
		root = 0
	}
	g, err := plan(m.Network, members)
	if err != nil {
		return Bound{}, err
	}
	b := Bound{share: contract.PerRank(), ranks: int64(n), least: g.leastLatency()}
	if b.latency, err = g.farthest(contract, root); err != nil {
		return Bound{}, err
	}
	if c != schedule.Barrier {
		b.slope = newCuts(g, c, root).worst()
	}
	b.processors(m, contract)
	return b, nil
}

// processors sets what processors take.
//
// A rank whose data all need is known to 1 + k times as many after a round in which nobody has more than k messages: to
// 2^K at most when the busiest ranks of all rounds have had K. The same is true backwards of one that needs the data of
// all. All messages together are n-1 at least with a root and 2(n-1) without, as Bound says, and count at both ends.
func (b *Bound) processors(m Model, contract schedule.Contract) {
	overhead, n := m.Overhead.Seconds(), float64(b.ranks)
	messages := 2 * (n - 1)
	if contract.Rooted() {
		messages = n - 1
	}
	b.few = overhead * float64(bits.Len64(uint64(b.ranks-1)))
	b.mean = overhead * 2 * messages / n
	if contract.Combines && m.FoldBytesPerSecond > 0 {
		b.foldsSlope = (n - 1) / n / m.FoldBytesPerSecond
	}
}

// Time is the bound for so many bytes of the larger buffer, 0 for less than none.
func (b Bound) Time(bytes int64) time.Duration {
	bytes = max(bytes, 0)
	moved := float64(bytes)
	if b.share {
		moved = float64(bytes / b.ranks)
	}
	network := max(b.latency, b.least+b.slope*moved)
	processor := max(b.few, b.mean+b.foldsSlope*float64(bytes))
	return duration((network + processor) * (1 - rounding))
}

// rounding is how much of a sum of many rounds' times floating point may lose.
const rounding = 1e-9

// Reached is which part of what the network allows a time is for so many bytes: 1 is all of it. It is the bound /
// the time, 1 if the time is 0, as that of a group of one is.
func (b Bound) Reached(bytes int64, took time.Duration) float64 {
	if took <= 0 {
		return 1
	}
	return math.Min(float64(b.Time(bytes))/float64(took), math.MaxFloat64)
}
