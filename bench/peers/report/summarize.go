package main

import (
	"maps"
	"slices"

	"gonum.org/v1/gonum/stat"
)

// slowNanos is the latency between the cores from which on the machine counts as slow: it is about 25, 55 or 240 for
// seconds at a time.
const slowNanos = 150

// table is one collective.
type table struct {
	collective string
	transports []string // ours, in the order in which they were measured
	rows       []row
	latencies  []float64 // by round, 0: not known
	used       []int     // rounds
	slow       bool      // all rounds were
}

// row is one size. A time of 0 is not known.
type row struct {
	bytes       int
	ours, floor []float64 // microseconds, medians of rounds, by transport
	peer        float64
	config      string // of the peer

	dirty       []float64 // ours after a rewrite of the inputs, by transport
	peerDirty   float64
	dirtyConfig string // of the peer that is best then
}

// summarize makes a table of each collective, in the order in which they were measured.
func summarize(all []sample) []table {
	var out []table
	for _, s := range all {
		if !slices.ContainsFunc(out, func(t table) bool { return t.collective == s.collective }) {
			out = append(out, tableOf(s.collective, all))
		}
	}
	return out
}

// newTable is a table without rows, of the rounds of one collective that are worth using. mine are their samples.
func newTable(collective string, all []sample) (t table, mine []sample) {
	t = table{collective: collective}
	latency := map[int]float64{}
	for _, s := range all {
		if s.collective == collective {
			mine = append(mine, s)
			latency[s.round] = max(latency[s.round], s.latency)
		}
	}
	var rounds []int
	for r := range latency {
		rounds = append(rounds, r)
	}
	slices.Sort(rounds)
	for _, r := range rounds {
		t.latencies = append(t.latencies, latency[r])
		if latency[r] < slowNanos {
			t.used = append(t.used, r)
		}
	}
	if t.used == nil {
		t.used, t.slow = rounds, true
	}
	return t, slices.DeleteFunc(mine, func(s sample) bool { return !slices.Contains(t.used, s.round) })
}

// tableOf summarizes one collective.
func tableOf(collective string, all []sample) table {
	t, mine := newTable(collective, all)
	var sizes []int
	for _, s := range mine {
		if s.who == "ours" {
			sizes = append(sizes, s.bytes)
			if !slices.Contains(t.transports, s.config) {
				t.transports = append(t.transports, s.config)
			}
		}
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		t.rows = append(t.rows, rowOf(size, t.transports, mine))
	}
	return t
}

// rowOf summarizes one size.
func rowOf(size int, transports []string, mine []sample) row {
	r := row{bytes: size}
	clean, dirty := newTimes(), newTimes()
	floors := map[string]map[int]float64{} // by config and round, the best of the ways to store
	for _, s := range mine {
		switch {
		case s.bytes != size:
		case s.who == "floor":
			if floors[s.config] == nil {
				floors[s.config] = map[int]float64{}
			}
			if best := floors[s.config][s.round]; best == 0 || s.micro < best {
				floors[s.config][s.round] = s.micro
			}
		default:
			clean.add(s, s.micro)
			dirty.add(s, s.dirty)
		}
	}
	for _, t := range transports {
		r.ours = append(r.ours, median(clean.ours[t]))
		r.dirty = append(r.dirty, median(dirty.ours[t]))
		r.floor = append(r.floor, medianOf(floors[floorOf(t)]))
	}
	r.peer, r.config = clean.bestPeer()
	r.peerDirty, r.dirtyConfig = dirty.bestPeer()
	return r
}

// times are those of one size, ours by transport and the peers' by how they ran.
type times struct{ ours, peers map[string][]float64 }

func newTimes() times { return times{map[string][]float64{}, map[string][]float64{}} }

// add takes a time, if it is known.
func (t times) add(s sample, micro float64) {
	of := t.peers
	if s.who == "ours" {
		of = t.ours
	}
	if micro > 0 {
		of[s.config] = append(of[s.config], micro)
	}
}

// bestPeer is the least median, 0 without any.
func (t times) bestPeer() (micro float64, config string) {
	for c, all := range t.peers {
		if m := median(all); micro == 0 || m < micro || m == micro && c < config {
			micro, config = m, c
		}
	}
	return micro, config
}

// median is 0 of nothing. (gonum has no median that halves the two in the middle: see quantile of cmd/gclperf.)
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// medianOf is the median of one time for each round.
func medianOf(rounds map[int]float64) float64 { return median(slices.Collect(maps.Values(rounds))) }

// ratio is a/b, 0 where one is not known.
func ratio(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a / b
}

// geometric is the geometric mean of what is known, 0 of nothing.
func geometric(v []float64) float64 {
	known := slices.DeleteFunc(slices.Clone(v), func(x float64) bool { return x <= 0 })
	if len(known) == 0 {
		return 0
	}
	return stat.GeometricMean(known, nil)
}
