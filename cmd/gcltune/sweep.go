package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"

	"gogcl.dev/internal/measure"
)

// goodRatio is how much longer than the best auto may take at a good point, where the spread is not more.
const goodRatio = 0.05

// verdict is what a sweep says of auto at a point.
type verdict struct {
	point
	auto, best float64 // medians in microseconds, of the even passes
	way        string  // the best, in the odd ones
	takes      string  // by auto
	spread     float64 // of A by A: how far the medians of auto's runs are apart, as a share of the least
}

// judge compares the way that auto takes with the others. The fastest of twenty ways was lucky too: so the best is the
// one that was the fastest in the odd passes, and what counts is how long it takes in the even ones. Auto's runs are
// the two of auto, and that of the way by its name if it is among those measured: they are the same calls.
func judge(p point) (v verdict, ok bool) {
	auto := p.way(autoWay)
	if auto == nil || len(p.Ways) < 3 {
		return v, false
	}
	var chosen, times, medians []float64
	for _, t := range p.Ways {
		if t.Way == autoWay || t.Way == again || t.Way == auto.Takes {
			odd, even := t.halves()
			chosen, times = append(chosen, odd...), append(times, even...)
			medians = append(medians, measure.Median(even))
		}
	}
	v = verdict{point: p, auto: measure.Median(times), takes: auto.Takes,
		spread: slices.Max(medians)/slices.Min(medians) - 1}
	v.best, v.way = v.auto, v.takes
	least := measure.Median(chosen)
	for _, t := range p.Ways {
		odd, even := t.halves()
		if m := measure.Median(odd); t.Way != autoWay && t.Way != again && t.Way != v.takes && m < least {
			least, v.best, v.way = m, measure.Median(even), t.Way
		}
	}
	return v, true
}

// halves are the times of the odd passes and of the even ones, or twice those of all if there is but one.
func (t *timed) halves() (odd, even []float64) {
	if len(t.Times) < 2 {
		return t.Times, t.Times
	}
	for i, us := range t.Times {
		if i%2 == 0 {
			odd = append(odd, us)
		} else {
			even = append(even, us)
		}
	}
	return odd, even
}

// ratio is how many times as long as the best way auto takes.
func (v verdict) ratio() float64 { return v.auto / v.best }

// good reports whether auto is as good as the best.
func (v verdict) good() bool { return v.ratio() <= 1+max(goodRatio, v.spread) }

// sweep prints what is said of auto, as it is measured.
type sweep struct {
	to  io.Writer
	all []verdict
}

// begin prints the header.
func (s *sweep) begin() {
	fmt.Fprintf(s.to, "# A/A is how far the runs of auto and of the way it takes are apart; * is where it takes longer than "+
		"the best by more than that and %.0f %%\n", 100*goodRatio)
	fmt.Fprintf(s.to, "%-14s %4s %9s %10s  %-32s %10s  %-32s %6s %6s\n", "# collective", "n", "size", "auto us", "by",
		"best us", "by", "ratio", "A/A %")
}

// add prints a line for each point.
func (s *sweep) add(points []point) {
	for _, p := range points {
		v, ok := judge(p)
		if !ok {
			continue
		}
		s.all = append(s.all, v)
		mark := ""
		if !v.good() {
			mark = " *"
		}
		fmt.Fprintf(s.to, "%-14s %4d %9s %10s  %-32s %10s  %-32s %6.2f %6.1f%s\n", v.Collective, v.N,
			measure.FormatSize(v.Size), measure.Digits(v.auto), v.takes, measure.Digits(v.best), v.way, v.ratio(),
			100*v.spread, mark)
	}
}

// end prints what the points come to, over all and for each number of replicas.
func (s *sweep) end() {
	for _, n := range numbersOf(s.all) {
		printShare(s.to, fmt.Sprintf("%d replicas", n), slices.DeleteFunc(slices.Clone(s.all), func(v verdict) bool {
			return v.N != n
		}))
	}
	printShare(s.to, "all", s.all)
}

// numbersOf are the numbers of replicas.
func numbersOf(all []verdict) (out []int) {
	for _, v := range all {
		out = append(out, v.N)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// printShare prints at how many points auto is as good as the best, and by how much it is slower in the mean.
func printShare(w io.Writer, what string, of []verdict) {
	if len(of) == 0 {
		fmt.Fprintf(w, "# %s: no point with another way than auto\n", what)
		return
	}
	good, near, sum := 0, 0, 0.0
	for _, v := range of {
		if v.good() {
			good++
		}
		if v.ratio() <= 1+goodRatio {
			near++
		}
		sum += math.Log(v.ratio())
	}
	worst := slices.MaxFunc(of, func(a, b verdict) int { return cmp.Compare(a.ratio(), b.ratio()) })
	share := func(n int) float64 { return 100 * float64(n) / float64(len(of)) }
	fmt.Fprintf(w, "# %s: %d points; within A/A or %.0f %% of the best %.1f %%, within %.0f %% %.1f %%; geometric mean %.3f, "+
		"worst %.2f\n", what, len(of), 100*goodRatio, share(good), 100*goodRatio, share(near), math.Exp(sum/float64(len(of))),
		worst.ratio())
}
