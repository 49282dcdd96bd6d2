package popops

import (
	"gogcl.dev/internal/kernel"
)

// scratch is a worker's memory, and what it is doing with it: updates of the rows of one group.
type scratch struct {
	pairs, other []uint64 // for sorting; made when first needed, as the next
	few          []uint64 // for look-ups in their own order
	counts       []uint32
	wide         []byte // a row of float32s, for each of outer
	most         int    // how many pairs memory is for that are sorted at once; see sortedAtOnce

	call    *rowCall
	columns [2]int
	table   []byte // of the group
	slices  []byte // the same
	off     int    // the group's first offset
	open    int    // the row that wide holds, or -1
}

// begin begins with a group.
func (s *scratch) begin(c *rowCall, group int, columns [2]int) {
	s.call, s.columns, s.open, s.off = c, columns, -1, group*c.n
	bytes := c.outer * c.entries * c.inner
	s.table = c.table[group*bytes : (group+1)*bytes]
	bytes = c.n * c.outer * c.inner
	s.slices = c.slices[group*bytes : (group+1)*bytes]
	if need := 2 * c.outer * (columns[1] - columns[0]); c.widen != nil && len(s.wide) < need {
		s.wide = make([]byte, need)
	}
}

// room is room for rowsAtOnce pairs.
func (s *scratch) room() []uint64 {
	if s.few == nil {
		s.few = make([]uint64, 0, rowsAtOnce)
	}
	return s.few
}

// end finishes the group; scratch keeps no memory of the caller's.
func (s *scratch) end() {
	s.close()
	s.call, s.table, s.slices = nil, nil, nil
}

// inOrder carries out the look-ups from to to that are of rows lo to hi, in their order.
func (s *scratch) inOrder(from, to int, lo, hi uint64) {
	span := hi - lo
	for from < to {
		pairs := s.room()
		base := from
		end := min(to, from+rowsAtOnce)
		if host := s.call.off.host; host != nil {
			for i, o := range host[s.off+from : s.off+end] {
				if uint64(o)-lo < span {
					pairs = append(pairs, pairOf(uint32(o), i))
				}
			}
		} else {
			for i, w := range s.call.off.words[s.off+from : s.off+end] {
				if uint64(w)-lo < span {
					pairs = append(pairs, pairOf(w, i))
				}
			}
		}
		from = end
		s.apply(pairs, base)
	}
}

// apply carries out pairs; their slices are counted from slice number base on.
func (s *scratch) apply(pairs []uint64, base int) {
	if len(pairs) == 0 {
		return
	}
	if s.call.widen != nil {
		s.applyWide(pairs, base)
		return
	}
	c := s.call
	at := kernel.Rows{Bytes: s.columns[1] - s.columns[0], DstStride: c.inner, SrcStride: c.outer * c.inner}
	for a := range c.outer {
		table := s.table[a*c.entries*c.inner+s.columns[0] : (a+1)*c.entries*c.inner]
		slices := s.slices[(base*c.outer+a)*c.inner+s.columns[0]:]
		switch c.verb {
		case addTo:
			c.add(table, slices, pairs, at, c.scale)
		case put:
			kernel.CopyRows(table, slices, pairs, at)
		case maxTo:
			for _, p := range pairs {
				row := table[rowOf(p)*at.DstStride:][:at.Bytes]
				c.maximum(row, row, slices[sliceOf(p)*at.SrcStride:][:at.Bytes])
			}
		}
	}
}

// applyWide adds to float32 sums of rows, one row after the other: pairs of one row come together.
func (s *scratch) applyWide(pairs []uint64, base int) {
	c := s.call
	columns := s.columns[1] - s.columns[0]
	at := kernel.Rows{Bytes: columns, SrcStride: c.outer * c.inner} // of a stride of 0: every row is the first
	for len(pairs) > 0 {
		row, n := rowOf(pairs[0]), 1
		for n < len(pairs) && rowOf(pairs[n]) == row {
			n++
		}
		if row != s.open {
			s.close()
			s.open = row
			s.eachOuter(row, c.widen, false)
		}
		for a := range c.outer {
			c.add(s.wide[2*a*columns:], s.slices[(base*c.outer+a)*c.inner+s.columns[0]:], pairs[:n], at, c.scale)
		}
		pairs = pairs[n:]
	}
}

// close rounds the sums of the open row.
func (s *scratch) close() {
	if s.open >= 0 {
		s.eachOuter(s.open, s.call.narrow, true)
		s.open = -1
	}
}

// eachOuter converts a row of the table, from float32 or to it.
func (s *scratch) eachOuter(row int, convert func(dst, src []byte), fromWide bool) {
	c := s.call
	columns := s.columns[1] - s.columns[0]
	for a := range c.outer {
		wide := s.wide[2*a*columns:][:2*columns]
		narrow := s.table[(a*c.entries+row)*c.inner+s.columns[0]:][:columns]
		if fromWide {
			convert(narrow, wide)
		} else {
			convert(wide, narrow)
		}
	}
}
