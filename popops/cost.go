package popops

import (
	"math"

	"gogcl.dev/internal/kernel"
)

// axis is what the work of a call is split by.
type axis uint8

const (
	byLookUps axis = iota
	byRows
	byColumns
)

func (a axis) String() string { return [...]string{"look-ups", "rows", "columns"}[a] }

// how is how a call is carried out.
type how struct {
	workers int
	by      axis
	sorted  bool
	seconds float64 // what it is thought to take
}

// part is what worker w does.
func (h *how) part(c *rowCall, w int) part {
	p := c.all()
	split := func(r *[2]int, unit int) {
		n := r[1] / unit
		r[0], r[1] = n*w/h.workers*unit, n*(w+1)/h.workers*unit
	}
	switch h.by {
	case byLookUps:
		split(&p.lookUps, 1)
	case byRows:
		split(&p.rows, 1)
	case byColumns:
		split(&p.columns, kernel.LineBytes)
		if w == h.workers-1 {
			p.columns[1] = c.inner
		}
	}
	return p
}

// The constants of the cost model: seconds, on the machine of docs/design/popops.md (two cores of an AMD EPYC,
// AVX-512). BenchmarkMultiSlice and BenchmarkMultiUpdateAdd give them.
const (
	// lookUpSeconds is what a look-up takes beside its bytes: to be found and begun.
	lookUpSeconds = 6e-9

	// nearSeconds and farSeconds are what a byte of a slice takes one worker to copy or add, when the part of the table
	// that is used and the slices fit the caches, and when they do not.
	nearSeconds = 0.03e-9
	farSeconds  = 0.14e-9

	// cacheBytes is what stays in the caches from one call to the next: three quarters of the third level.
	cacheBytes = 24 << 20

	// The least that a byte of a slice takes however many workers there are, since they share the way to the slices
	// and, in the last two cases, to memory. Updates of what is in the caches are no faster with two workers.
	nearSliceBusSeconds  = 0.05e-9
	nearUpdateBusSeconds = 0.055e-9
	farSliceBusSeconds   = 0.09e-9
	farUpdateBusSeconds  = 0.13e-9

	// scanSeconds is what a worker takes for an offset to see whether it is one of its rows.
	scanSeconds = 0.7e-9

	// sortSeconds is what an offset takes to be sorted, and what its slice costs for not being the next one.
	sortSeconds = 20e-9

	// startSeconds is what a goroutine takes to be started on another core, and waited for.
	startSeconds = 12e-6
)

// choice is how the calls of a number of look-ups are carried out.
type choice struct{ slice, update how }

// choose says how calls of n look-ups are carried out by so many workers at most.
func (p *Plan) choose(n, workers int) choice {
	var c choice
	sorts := p.sorts()
	for w := 1; ; w = min(more(w), workers) {
		p.consider(&c.slice, how{workers: w, by: byLookUps}, n, true)
		for _, by := range []axis{byRows, byColumns} {
			p.consider(&c.update, how{workers: w, by: by, sorted: sorts}, n, false)
		}
		if w == workers || float64(w)*startSeconds > max(c.slice.seconds, c.update.seconds) {
			return c // more of them take longer to start than these take for all
		}
	}
}

// finest is from how many workers on not every number of them is tried, but steps of one part in so many: there may be
// maxWorkers, and any number of numbers of look-ups.
const finest = 64

// more is the number of workers to be tried after w.
func more(w int) int { return w + 1 + w/finest }

// sorts reports whether updates have to be sorted by rows: sums in float32 that are rounded once need all updates of a
// row together. To sort others has been measured to take longer than it saves: slices are then read out of their order.
func (p *Plan) sorts() bool {
	o := &p.options
	return !o.IndicesAreSorted && o.Operation == UpdateAdd && sumsWide(o.PartialType, p.dtype)
}

// consider takes h instead of best if it is thought to be faster, or best is none.
func (p *Plan) consider(best *how, h how, n int, slice bool) {
	h.seconds = p.seconds(&h, n, slice)
	if best.workers == 0 || h.seconds < best.seconds {
		*best = h
	}
}

// seconds is what a call of n look-ups is thought to take.
func (p *Plan) seconds(h *how, n int, slice bool) float64 {
	all := float64(n) * float64(p.groups)
	row := float64(p.width * p.dtype.Size())
	used := min(all, float64(p.entries)*float64(p.groups)) * max(row, kernel.LineBytes) // memory moves lines
	if p.options.Distribution == OnePoint {
		used = 0
	}
	byteSeconds, bus := nearSeconds, nearUpdateBusSeconds
	if slice {
		bus = nearSliceBusSeconds
	}
	if used+all*row > cacheBytes {
		byteSeconds, bus = farSeconds, farUpdateBusSeconds
		if slice {
			bus = farSliceBusSeconds
		}
	}
	each := lookUpSeconds + row*byteSeconds
	if h.sorted {
		each += sortSeconds
	}
	share := p.share(h, slice) // of the work, that of the worker with the most
	seconds := all * each * share
	if h.by == byColumns {
		seconds = all * (lookUpSeconds + (each-lookUpSeconds)*share)
	}
	if !slice && h.by == byRows && !p.options.IndicesAreSorted {
		seconds += all * scanSeconds
	}
	if h.sorted {
		seconds += all * scanSeconds * p.looks(h, n, share)
	}
	return max(seconds, all*row*bus) + float64(h.workers-1)*startSeconds
}

// looks is how often a worker that sorts looks at all offsets, beside the first time: those of its rows are split into
// parts until each can be sorted at once, and one that has too many is looked at for nothing.
func (p *Plan) looks(h *how, n int, share float64) float64 {
	if h.by == byColumns {
		share = 1 // each sorts all
	}
	most := float64(max(1, sortedAtOnce(p.most(), n)))
	parts := math.Ceil(float64(n) * share / most)
	return max(0, 2*(parts-1))
}

// most is how many pairs a worker has memory to sort.
func (p *Plan) most() int { return pairsWithin(p.options.proportion(), p.lookUps[len(p.lookUps)-1]) }

// share is how much of the work the busiest worker has.
func (p *Plan) share(h *how, slice bool) float64 {
	w := float64(h.workers)
	switch h.by {
	case byRows:
		if p.options.Distribution == OnePoint { // each group's row is one worker's
			return math.Ceil(float64(p.groups)/w) / float64(p.groups)
		}
		if rows := float64(p.groups) * float64(p.entries); rows > 0 {
			return math.Ceil(rows/w) / rows
		}
	case byColumns:
		// With several dimensions only the inner ones are split, which the plan does not know of.
		if lines := float64(p.width*p.dtype.Size()) / kernel.LineBytes; lines >= 1 {
			return math.Ceil(lines/w) / lines
		}
		return 1
	}
	return 1 / w
}
