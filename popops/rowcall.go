package popops

import (
	"math"

	"gogcl.dev/internal/kernel"
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
func (c *rowCall) take(p part) {
	if c.outer == 1 && p.columns[1]-p.columns[0] == c.inner && c.off.host == nil {
		c.takeRows(p)
		return
	}
	columns := p.columns[1] - p.columns[0]
	for j := p.lookUps[0]; j < p.lookUps[1]; j++ {
		row, ok := c.off.bits(j, c.limit)
		for a := range c.outer {
			dst := c.slices[(j*c.outer+a)*c.inner+p.columns[0]:][:columns]
			if ok {
				copy(dst, c.table[((j/c.n*c.outer+a)*c.entries+int(row))*c.inner+p.columns[0]:])
			} else {
				clear(dst)
			}
		}
	}
}

// takeRows is take of whole rows that lie one after the other.
func (c *rowCall) takeRows(p part) {
	words, inner, limit := c.off.words, c.inner, c.limit
	for from := p.lookUps[0]; from < p.lookUps[1]; {
		group := from / c.n
		to := min(p.lookUps[1], (group+1)*c.n)
		table := c.table[group*c.entries*inner:]
		dst := c.slices[from*inner : to*inner]
		for _, w := range words[from:to] {
			if uint64(w) < limit {
				copy(dst[:inner], table[int(w)*inner:])
			} else {
				clear(dst[:inner])
			}
			dst = dst[inner:]
		}
		from = to
	}
}

// update carries out a part of a put, addTo or maxTo: for each group in turn, the updates of the rows that are the part's,
// those of one row in the order of the offsets.
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
func rowOf(p uint64) int   { return int(p >> 32) }
func sliceOf(p uint64) int { return int(p & math.MaxUint32) }
