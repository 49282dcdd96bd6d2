package popops

// Force makes a plan split its calls so, whatever the cost model says: by look-ups, rows (1) or columns (2).
func (p *Plan) Force(workers int, by int, sorted bool) {
	workers = min(workers, p.crews.workers)
	for i := range p.choices {
		p.choices[i].slice = how{workers: workers, by: byLookUps}
		p.choices[i].update = how{workers: workers, by: max(byRows, axis(by)), sorted: sorted}
	}
}

// CheckCount is checkCount.
var CheckCount = checkCount

// Tries is how many numbers of workers are tried where there are so many.
func Tries(workers int) int {
	n := 1
	for w := 1; w < workers; w = more(w) {
		n++
	}
	return n
}

// Seconds is seconds.
var Seconds = seconds

// UpdateSeconds is what updates of the first number of look-ups are thought to take.
func (p *Plan) UpdateSeconds() float64 { return p.choices[0].update.seconds }

// SortedAtOnce is how many of n pairs are sorted at once.
func (p *Plan) SortedAtOnce(n int) int { return sortedAtOnce(p.crews.most, n) }

// Looks is how often offsets are looked at to be sorted into so many rows, where memory is for `most` of them.
func Looks(offsets []uint32, rows uint64, most int) int {
	s := &scratch{most: most, call: &rowCall{n: len(offsets), off: offsetsIn(offsets)}}
	s.pairs = make([]uint64, 0, sortedAtOnce(most, len(offsets)))
	var visit func(lo, hi uint64) int
	visit = func(lo, hi uint64) int {
		if _, all := s.gather(lo, hi); all || hi-lo == 1 {
			return 1
		}
		mid := lo + (hi-lo)/2
		return 1 + visit(lo, mid) + visit(mid, hi)
	}
	return visit(0, rows)
}
