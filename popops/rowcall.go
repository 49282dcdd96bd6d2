package popops

import (
	"math"
	"sync"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/tensor"
)

// rowCall is a call for slices that are rows: single entries of one dimension. In bytes,
//
//	table   [groups][outer][entries][inner]
//	slices  [groups][n]    [outer]  [inner]
type rowCall struct {
	verb                      verb // take, put, addTo or maxTo
	groups, n, entries, outer int
	inner                     int
	table, slices             []byte
	off                       offsets
	limit                     uint64 // from where on offsets are out of range
	scale                     uint64
	given                     bool // offsets are sorted
	sort                      bool // pairs are to be sorted
	add                       func(dst, src []byte, pairs []uint64, at kernel.Rows, scale uint64)
	maximum                   func(dst, a, b []byte)
	widen, narrow             func(dst, src []byte) // not nil: rows are accumulated in float32 and rounded once
}

// run carries out a call of rows by a plan, or without one on the caller's goroutine.
func (c *rowCall) run(dtype tensor.DType, partial bool, plan *Plan) {
	c.limit = c.off.limit(c.entries)
	t := kernel.Type(dtype)
	switch {
	case partial:
		c.add, c.widen, c.narrow = kernel.AddWideRows(t), kernel.Widen(t), kernel.Narrow(t)
	case c.verb == addTo:
		c.add = kernel.AddRows(t)
	case c.verb == maxTo:
		c.maximum = kernel.Binary(kernel.Max, t)
	}
	if plan != nil {
		plan.run(c)
		return
	}
	crew := alone.Get().(*crew)
	crew.call = *c
	crew.parts[0] = c.all()
	crew.run(1)
	alone.Put(crew)
}

// part is what one worker does of a call: look-ups of take, of the others rows of the table; of both columns.
type part struct {
	lookUps [2]int // from, to: numbers among those of all groups
	rows    [2]int // the same
	columns [2]int // bytes of inner
}

// all is the part that is everything.
func (c *rowCall) all() part {
	return part{lookUps: [2]int{0, c.groups * c.n}, rows: [2]int{0, c.groups * c.entries}, columns: [2]int{0, c.inner}}
}

// take carries out a part of a take.
func (c *rowCall) take(p part, s *scratch) {
	for from := p.lookUps[0]; from < p.lookUps[1]; {
		group := from / c.n
		to := min(p.lookUps[1], (group+1)*c.n, from+rowsAtOnce)
		c.takeRows(s, group, from, to, p.columns)
		from = to
	}
}

// takeRows takes rows of a group, as many as scratch has room for.
func (c *rowCall) takeRows(s *scratch, group, from, to int, columns [2]int) {
	at := kernel.Rows{Bytes: columns[1] - columns[0], DstStride: c.outer * c.inner, SrcStride: c.inner}
	pairs := s.room()
	for j := from; j < to; j++ {
		if row, ok := c.off.bits(j, c.limit); ok {
			pairs = append(pairs, uint64(j-from)<<32|uint64(row))
			continue
		}
		for a := range c.outer {
			clear(c.slices[(j*c.outer+a)*c.inner+columns[0]:][:at.Bytes])
		}
	}
	for a := range c.outer {
		slices := c.slices[(from*c.outer+a)*c.inner+columns[0]:]
		table := c.table[(group*c.outer+a)*c.entries*c.inner:][:c.entries*c.inner]
		if len(pairs) > 0 {
			kernel.CopyRows(slices, table[columns[0]:], pairs, at)
		}
	}
}

// update carries out a part of a put, addTo or maxTo: for each group in turn, the updates of the rows that are the
// part's, those of one row in the order of the offsets.
func (c *rowCall) update(p part, s *scratch) {
	for g := range c.groups {
		lo := uint64(max(0, p.rows[0]-g*c.entries))
		hi := uint64(max(0, min(c.entries, p.rows[1]-g*c.entries)))
		hi = min(hi, c.limit)
		if lo >= hi {
			continue
		}
		s.begin(c, g, p.columns)
		switch {
		case c.given:
			from, to := c.sortedRange(g, lo, hi)
			s.inOrder(from, to, lo, hi)
		case c.sort || c.widen != nil:
			s.sorted(lo, hi)
		default:
			s.inOrder(0, c.n, lo, hi)
		}
		s.end()
	}
}

// sortedRange is the look-ups of a group that are of rows lo to hi, where offsets are sorted.
func (c *rowCall) sortedRange(g int, lo, hi uint64) (from, to int) {
	return c.firstFrom(g, int64(lo)), c.firstFrom(g, int64(hi))
}

// firstFrom is the first look-up of a group with this offset or a greater one.
func (c *rowCall) firstFrom(g int, offset int64) int {
	lo, hi := 0, c.n
	for lo < hi {
		if mid := (lo + hi) / 2; c.off.at(g*c.n+mid) < offset {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// rowsAtOnce is how many pairs are gathered before the loop over rows is called: 8 KiB, a quarter of the first-level
// cache.
const rowsAtOnce = 1024

// pairOf is a pair of a row of the table and a row of the slices.
func pairOf(row uint32, slice int) uint64 { return uint64(row)<<32 | uint64(uint32(slice)) }

// rowOf and sliceOf are those of a pair.
func rowOf(p uint64) int { return int(p >> 32) }

func sliceOf(p uint64) int { return int(p & math.MaxUint32) }

// crew is workers with their memory, for one call at a time. The first works on the caller's goroutine, each other on
// one of its own, which ends with the call.
type crew struct {
	call    rowCall
	parts   []part
	scratch []scratch
	start   []func() // start[i] is part i+1; made once, so that a call allocates nothing
	working sync.WaitGroup
}

// newCrew is a crew of so many workers, each of which may sort so many pairs at once.
func newCrew(workers, most int) *crew {
	c := &crew{parts: make([]part, workers), scratch: make([]scratch, workers)}
	for i := range workers {
		c.scratch[i].most = most
		if i > 0 {
			c.start = append(c.start, func() {
				defer c.working.Done()
				c.work(i)
			})
		}
	}
	return c
}

// work does part i.
func (c *crew) work(i int) {
	if c.call.verb == take {
		c.call.take(c.parts[i], &c.scratch[i])
	} else {
		c.call.update(c.parts[i], &c.scratch[i])
	}
}

// run carries out the call in as many parts as are filled in, and forgets it.
func (c *crew) run(parts int) {
	c.working.Add(parts - 1)
	for _, start := range c.start[:parts-1] {
		go start()
	}
	c.work(0)
	c.working.Wait()
	c.call = rowCall{}
}

// alone are crews of one worker, for calls without a plan.
var alone = sync.Pool{New: func() any { return newCrew(1, pairsWithin(defaultProportion, math.MaxInt)) }}

// crews are those of a plan, for as many calls at the same time as there have been.
type crews struct {
	mu      sync.Mutex
	free    []*crew // guarded by mu
	workers int
	most    int // pairs
}

// take is a crew that nobody uses.
func (c *crews) take() *crew {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := len(c.free); n > 0 {
		crew := c.free[n-1]
		c.free = c.free[:n-1]
		return crew
	}
	return newCrew(c.workers, c.most)
}

// give is a crew back.
func (c *crews) give(crew *crew) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.free = append(c.free, crew)
}
