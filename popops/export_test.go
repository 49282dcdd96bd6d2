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
