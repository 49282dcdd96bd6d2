package main

import (
	"math"
	"slices"
)

// slowNanos is the latency between the cores from which on the machine counts as slow: it is about 25, 55 or 240 for
// seconds at a time.
const slowNanos = 150

// table is one collective.
type table struct {
	collective string
	rows       []row
	latencies  []float64 // by round, 0: not known
	used       []int     // rounds
	slow       bool      // all rounds were
}

// row is one size. A time of 0 is not known.
type row struct {
	bytes             int
	ours, peer, floor float64 // microseconds, medians of rounds
	config            string  // of the peer
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

// tableOf summarizes one collective.
func tableOf(collective string, all []sample) table {
	t := table{collective: collective}
	var mine []sample
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
	mine = slices.DeleteFunc(mine, func(s sample) bool { return !slices.Contains(t.used, s.round) })
	var sizes []int
	for _, s := range mine {
		if s.who == "ours" {
			sizes = append(sizes, s.bytes)
		}
	}
	slices.Sort(sizes)
	for _, size := range slices.Compact(sizes) {
		t.rows = append(t.rows, rowOf(size, mine))
	}
	return t
}

// rowOf summarizes one size.
func rowOf(size int, mine []sample) row {
	r := row{bytes: size}
	var ours []float64
	peers := map[string][]float64{}
	floors := map[int]float64{} // by round, the best of the ways to store
	for _, s := range mine {
		switch {
		case s.bytes != size:
		case s.who == "ours":
			ours = append(ours, s.micro)
		case s.who == "peer":
			peers[s.config] = append(peers[s.config], s.micro)
		case floors[s.round] == 0 || s.micro < floors[s.round]:
			floors[s.round] = s.micro
		}
	}
	r.ours = median(ours)
	for config, times := range peers {
		if m := median(times); r.peer == 0 || m < r.peer || m == r.peer && config < r.config {
			r.peer, r.config = m, config
		}
	}
	var floor []float64
	for _, micro := range floors {
		floor = append(floor, micro)
	}
	r.floor = median(floor)
	return r
}

// median is 0 of nothing.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// ratio is a/b, 0 where one is not known.
func ratio(a, b float64) float64 {
	if a == 0 || b == 0 {
		return 0
	}
	return a / b
}

// geometric is the geometric mean of what is known, 0 of nothing.
func geometric(v []float64) float64 {
	sum, n := 0.0, 0
	for _, x := range v {
		if x > 0 {
			sum += math.Log(x)
			n++
		}
	}
	if n == 0 {
		return 0
	}
	return math.Exp(sum / float64(n))
}
