package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

const (
	// leastSpread is how much slower than the fastest a way may be for nothing to be lost by it, as a share, where the
	// spreads are not more: that of a sweep.
	leastSpread = goodRatio

	// changeCost is what another rule costs: as much as a way that takes 5 % longer than the fastest at one size.
	changeCost = leastSpread

	// withinSpread and beyondSpread are what a way costs, in the logarithm of how many times as long as the fastest it
	// takes: what is within the spread may be chance, and beyond it is what a table is for.
	withinSpread, beyondSpread = 0.25, 3
)

// shown is how many other ways a rule names.
const shown = 2

// rulesOf are the rules that measured points make, as the text of a table:
//
//	size          8     32    128   512   2048        from   rule
//	direct        1.0   1.1   1.3   2.0   4.0         0      direct
//	broadcast     1.2   1.1   1.27  1.1   2.0         256    broadcast
//	                          ~     *
//
// Of all ways to go from size to size it is the one that costs least. A way costs, at a size, the logarithm of how many
// times as long as the fastest it takes: a quarter of that within the spread, and thrice that beyond it. To change the
// way costs as much as 5 % at one size. So at ~ broadcast does not replace direct, and at * it does.
//
// No rule is for one of several measured sizes alone, where a way may be fast by chance: that size is left out of
// account.
//
// A rule begins where its way and the one before would be equally fast if the ratio of their times changed evenly
// between the two sizes, both by their logarithms: at a power of two.
func rulesOf(points []point, heading string) ([]byte, error) { return tableBy(points, heading, chosen) }

// tableBy is a table of measured points, as text. choose gives the rules of points that differ in size only, smaller
// ones first, of all ways but some.
func tableBy(points []point, heading string, choose func(of []point, without []string) []choice) ([]byte, error) {
	var collectives []string
	var counts []int
	for _, p := range points {
		if !slices.Contains(collectives, p.Collective) {
			collectives = append(collectives, p.Collective)
		}
		if !slices.Contains(counts, p.N) {
			counts = append(counts, p.N)
		}
	}
	slices.Sort(counts)
	var b strings.Builder
	b.WriteString(heading)
	for _, coll := range collectives {
		begin := "#\n"
		for i, n := range counts {
			var of []point
			for _, p := range points {
				if p.N == n && p.Collective == coll && len(p.Ways) > 0 {
					of = append(of, p)
				}
			}
			slices.SortFunc(of, func(a, b point) int { return a.Size - b.Size })
			for _, g := range alikeRanks(of, coll, counts, i, choose) {
				for _, r := range g.rules {
					fmt.Fprintf(&b, "%s%s %s %d %s %s\n", begin, coll, g, r.from, r.way, r.measured)
					begin = ""
				}
			}
		}
	}
	rules, err := methods.ParseRules([]byte(b.String()))
	if err != nil {
		return nil, fmt.Errorf("the table that was measured: %w", err)
	}
	return []byte(rules.String()), nil
}

// ranks are numbers of ranks that have the same rules.
type ranks struct {
	low, high int
	rules     []choice
}

// String is as tables have it: "4" or "5-6".
func (r ranks) String() string {
	if r.low == r.high {
		return fmt.Sprint(r.low)
	}
	return fmt.Sprintf("%d-%d", r.low, r.high)
}

// alikeRanks are the numbers of ranks that go by the measured number i, with their rules: a method that was the best
// over 16, and does powers of two only, is left out of what 14, 15 and 17 go by.
func alikeRanks(of []point, coll string, counts []int, i int,
	choose func(of []point, without []string) []choice) (out []ranks) {
	low, high := ranksFor(counts, i)
	for n := low; n <= high; n++ {
		var without []string
		rules := choose(of, without)
		for {
			at := slices.IndexFunc(rules, func(c choice) bool { return !does(c.way, coll, n) })
			if at < 0 {
				break
			}
			if slices.Contains(without, rules[at].way) { // it is taken without a rule, and cannot be
				rules = nil
				break
			}
			without = append(without, rules[at].way)
			rules = choose(of, without)
		}
		if last := len(out) - 1; last >= 0 && slices.Equal(out[last].rules, rules) {
			out[last].high = n
		} else {
			out = append(out, ranks{n, n, rules})
		}
	}
	return out
}

// does reports whether the method of a way does a collective over n ranks. A name that is no method's is an error when
// the table is read.
func does(way, coll string, n int) bool {
	name, _, _ := strings.Cut(way, "/")
	c, known := collectiveNamed(coll)
	if _, err := methods.Parse(name); err != nil || !known {
		return true
	}
	return shapeOfWay(way, c, n) != nil
}

// ranksFor are the numbers of ranks that go by the measured number i: those that are nearer to it than to the others,
// by their ratio, and beyond the greatest as many again.
func ranksFor(counts []int, i int) (low, high int) {
	low, high = counts[i], 2*counts[i]
	if i > 0 {
		low = int(math.Sqrt(float64(counts[i-1]*counts[i]))) + 1
	}
	if i+1 < len(counts) {
		high = int(math.Sqrt(float64(counts[i] * counts[i+1])))
	}
	return low, high
}

// choice is a rule that begins at a size.
type choice struct {
	from     int
	way      string
	measured string
}

// chosen are the rules of points that differ in size only, smaller ones first: those that cost least, of all ways but
// some. There are none where a size has no other way, or one that no size next to it has.
func chosen(points []point, without []string) (out []choice) {
	points = slices.Clone(points)
	for i, p := range points {
		points[i].Ways = slices.DeleteFunc(slices.Clone(p.Ways), func(t timed) bool {
			return slices.Contains(without, t.Way)
		})
		if len(points[i].Ways) == 0 {
			return nil
		}
	}
	var names []string
	for _, p := range points {
		for _, t := range p.Ways {
			if !slices.Contains(names, t.Way) {
				names = append(names, t.Way)
			}
		}
	}
	left := make([]bool, len(points))
	taken := cheapest(points, names, left)
	for at := alone(taken, left); at >= 0; at = alone(taken, left) {
		if left[at] { // no other way does that size
			return nil
		}
		left[at] = true
		taken = cheapest(points, names, left)
	}
	for i, p := range points {
		if i > 0 && taken[i] == taken[i-1] {
			continue
		}
		from, shows := 0, i
		if i > 0 {
			from = crossing(points[i-1], p, names[taken[i-1]], names[taken[i]])
		}
		for shows+1 < len(points) && left[shows] && taken[shows+1] == taken[i] {
			shows++
		}
		now := names[taken[i]]
		out = append(out, choice{from, now, points[shows].measured(now)})
	}
	return out
}

// cheapest is which of the names is taken at each point, at least cost. Points that are left out cost nothing.
func cheapest(points []point, names []string, left []bool) []int {
	// cost[i][k] is the least cost of points 0 to i with way k at i, and before[i][k] the way at i-1.
	cost, before := make([][]float64, len(points)), make([][]int, len(points))
	for i, p := range points {
		for k, name := range names {
			least, from := 0.0, k
			if i > 0 {
				least = cost[i-1][k]
				for other, c := range cost[i-1] {
					if c+changeCost < least {
						least, from = c+changeCost, other
					}
				}
			}
			own := p.cost(name)
			if left[i] && !math.IsInf(own, 1) {
				own = 0
			}
			cost[i], before[i] = append(cost[i], least+own), append(before[i], from)
		}
	}
	last := len(points) - 1
	taken := make([]int, len(points))
	taken[last] = slices.Index(cost[last], slices.Min(cost[last]))
	for i := last; i > 0; i-- {
		taken[i-1] = before[i][taken[i]]
	}
	return taken
}

// alone is the first of several points that takes another way than those next to it, or -1. One that is left out comes
// after those that are not.
func alone(taken []int, left []bool) int {
	out := -1
	for i, k := range taken {
		if len(taken) > 1 && (i == 0 || taken[i-1] != k) && (i == len(taken)-1 || taken[i+1] != k) {
			if !left[i] {
				return i
			}
			out = i
		}
	}
	return out
}

// cost is that of a way at a point.
func (p point) cost(name string) float64 {
	t := p.way(name)
	if t == nil {
		return math.Inf(1)
	}
	best := p.sorted()[0]
	ratio := measure.Median(t.Times) / measure.Median(best.Times)
	if ratio > 1+max(leastSpread, t.spread(), best.spread()) {
		return beyondSpread * math.Log(ratio)
	}
	return withinSpread * math.Log(ratio)
}

// crossing is from which size on a way replaces another, which it does at size b and not at size a.
func crossing(a, b point, old, now string) int {
	longer := func(p point) float64 { // by how much the old way takes longer, as a logarithm
		x, y := p.way(old), p.way(now)
		if x == nil || y == nil {
			return math.NaN()
		}
		return math.Log(measure.Median(x.Times) / measure.Median(y.Times))
	}
	before, after := min(longer(a), 0), longer(b)
	if !(after > before) {
		return b.Size
	}
	from, to := math.Log2(float64(a.Size)), math.Log2(float64(b.Size))
	power := math.Round(from + (to-from)*-before/(after-before))
	if power <= from {
		power = math.Floor(from) + 1
	}
	return min(1<<int(power), b.Size)
}

// sorted are the ways, the fastest first.
func (p point) sorted() []timed {
	return slices.SortedStableFunc(slices.Values(p.Ways), func(a, b timed) int {
		return cmp.Compare(measure.Median(a.Times), measure.Median(b.Times))
	})
}

// way is the one of a name, or nil.
func (p point) way(name string) *timed {
	for i := range p.Ways {
		if p.Ways[i].Way == name {
			return &p.Ways[i]
		}
	}
	return nil
}

// spread is about how far the median of the passes may be off, as a share of it: the quartiles of the passes are that
// far apart times the root of their number.
func (t timed) spread() float64 {
	sorted := slices.Sorted(slices.Values(t.Times))
	middle := measure.Quantile(sorted, .75) - measure.Quantile(sorted, .25)
	return middle / measure.Median(sorted) / math.Sqrt(float64(len(sorted)))
}

// measured says what was measured of a way at a point, and of the fastest others.
func (p point) measured(name string) string {
	best := p.way(name)
	text := fmt.Sprintf("%s: %s us", measure.FormatSize(p.Size), measure.Digits(measure.Median(best.Times)))
	var others []string
	for _, t := range p.sorted() {
		if t.Way != name && len(others) < shown {
			others = append(others, t.Way+" "+measure.Digits(measure.Median(t.Times)))
		}
	}
	if others != nil {
		text += "; " + strings.Join(others, ", ")
	}
	if len(best.Times) < 2 {
		return text + "; one pass"
	}
	return fmt.Sprintf("%s; spread %.0f %%", text, 100*best.spread())
}
