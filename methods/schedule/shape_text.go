package schedule

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of Shape, in letters.
const (
	maxShapeWidth = 112
	maxTracks     = 102 // width of all tracks of a column
)

// Shape draws who sends to whom: a row for each rank, a column for each round, a line for each sender and receiver. The
// package comment explains the marks. The text of a nil Schedule is "no schedule".
//
// Lines stand beside each other in tracks. Two equal lines in opposite directions are one line with two ends. The lines
// of a rank that sends to all others are one line with several ends. Copies and folds within a rank are not drawn.
//
// The drawing is at most 112 letters wide. Where the rounds need more, equal rounds that follow each other become one
// column, and columns that still find no room stand below the others.
//
// Any Schedule has a drawing, also one that [Check] refuses. An exclamation mark stands on either side of the cell, a
// rank in a round, that the error names. The cell of a chunk that never comes is in the last round. The first line of
// the error stands below the drawing. A schedule of more than 262,144 steps, or more than a million chunks on all ranks
// together, is not proved for its drawing. Text below it says what is not drawn: ranks from 32 on,
// rounds after 256 columns, lines for which a column has no room, and messages that no rank can receive.
func (s *Schedule) Shape() string {
	if s == nil {
		return "no schedule"
	}
	sh := shapeOf(s)
	label := max(len("chunks"), len(fmt.Sprint("rank ", sh.ranks-1)))
	columns := layOut(sh.single(), sh.ranks)
	if width := widthOf(columns); columns == nil || label+width > maxShapeWidth {
		columns = layOut(sh.columns, sh.ranks)
	}
	counts := slices.ContainsFunc(columns, func(c tracked) bool { return c.each > 1 })

	var b strings.Builder
	b.WriteString(sh.title + "\n")
	left, wrong, mark := 0, false, "refused: "
	for len(columns) > 0 {
		n := 1
		for n < len(columns) && label+widthOf(columns[:n+1]) <= maxShapeWidth {
			n++
		}
		writeRows(&b, columns[:n], sh.ranks, label, counts)
		for _, c := range columns[:n] {
			left += c.left
			if c.wrong > 0 {
				mark = "!: "
			}
			wrong = wrong || slices.ContainsFunc(c.arcs, func(a arc) bool { return a.end == mismatch })
		}
		columns = columns[n:]
	}
	if wrong {
		sh.notes = append(sh.notes, "×: send and receive do not match")
	}
	if left > 0 {
		sh.notes = append(sh.notes, "not drawn: "+counted(left, "line")+" for which a column has no room")
	}
	for _, note := range slices.Concat(sh.refused.lines(mark), sh.notes) {
		b.WriteString(note + "\n")
	}
	return b.String()
}

// writeRows writes a row for each rank, with lines that go on between them.
func writeRows(b *strings.Builder, columns []tracked, ranks, label int, counts bool) {
	row := func(name string, text func(tracked) string) {
		var line strings.Builder
		fmt.Fprintf(&line, "%-*s", label, name)
		for _, c := range columns {
			t := text(c)
			line.WriteString(" " + t + strings.Repeat(" ", c.width-utf8.RuneCountInString(t)))
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	row("round", func(c tracked) string { return " " + c.name() })
	if counts {
		row("chunks", func(c tracked) string {
			if n := c.each; n > 0 {
				return fmt.Sprint(" ", n)
			}
			return ""
		})
	}
	for r := range ranks {
		row(fmt.Sprint("rank ", r), func(c tracked) string { return c.at(r) })
		if r < ranks-1 {
			row("", func(c tracked) string { return c.below(r) })
		}
	}
}

// tracked is a column with its lines in tracks.
type tracked struct {
	column
	each   int64 // chunks of every arc; 0 if they differ
	width  int   // in letters
	tracks []track
	left   int // bars without a track
}

// track is bars one below the other.
type track struct {
	bars  []bar
	used  uint64 // a bit for each rank
	width int    // of a mark, and of the longest number behind one
}

// bar is a vertical line, with marks where it begins and ends.
type bar struct {
	lo, hi int // ranks
	marks  map[int]rune
	label  string // the number of chunks, or nothing
	at     int    // the rank that has it behind its mark
}

// layOut puts the lines of columns into tracks.
func layOut(columns []column, ranks int) []tracked {
	var out []tracked
	for _, c := range columns {
		out = append(out, newTracked(c, ranks))
	}
	return out
}

// widthOf is how wide columns are beside each other, with a space before each.
func widthOf(columns []tracked) int {
	n := 0
	for _, c := range columns {
		n += 1 + c.width
	}
	return n
}

// newTracked puts the arcs of a column into tracks. Lines by sender alone, which take fewer, stand in where there is no
// room for all.
func newTracked(c column, ranks int) tracked {
	to := map[int]int{} // by sender: receivers
	for i, a := range c.arcs {
		if i == 0 || c.arcs[i-1].from != a.from || c.arcs[i-1].to != a.to && c.arcs[i-1].chunks == a.chunks {
			to[a.from]++
		}
	}
	var toAll, others []arc
	for _, a := range c.arcs {
		if ranks > 2 && to[a.from] == ranks-1 {
			toAll = append(toAll, a)
		} else {
			others = append(others, a)
		}
	}
	out := tracked{column: c, each: c.each()}
	narrow := out
	out.place(append(bySender(toAll, out.each), exchanges(others, out.each)...))
	if out.left == 0 {
		return out
	}
	narrow.place(bySender(c.arcs, out.each))
	if narrow.left < out.left {
		return narrow
	}
	return out
}

// place puts each bar into the first track in which it meets no other, and finds how wide the column is.
func (c *tracked) place(bars []bar) {
	c.width = 1
	for _, b := range bars {
		mask := uint64(1)<<(b.hi+1) - 1<<b.lo
		i := slices.IndexFunc(c.tracks, func(t track) bool { return t.used&mask == 0 })
		wide := 1 + len(b.label)
		more := wide + 1
		if i >= 0 {
			more = max(0, wide-c.tracks[i].width)
		}
		if c.width+more > maxTracks {
			c.left++
			continue
		}
		c.width += more
		if i < 0 {
			i = len(c.tracks)
			c.tracks = append(c.tracks, track{})
		}
		t := &c.tracks[i]
		t.used |= mask
		t.width = max(t.width, wide)
		t.bars = append(t.bars, b)
	}
	c.width = max(c.width, 3, len(c.name())+2, len(fmt.Sprint(c.each))+2)
}

// newBar begins a bar at the sender of an arc. each is the number of chunks that the heading tells, or 0.
func newBar(a arc, each int64) bar {
	b := bar{lo: a.from, hi: a.from, marks: map[int]rune{a.from: '●'}, at: a.from}
	if each == 0 && a.chunks != 1 {
		b.label = fmt.Sprint(a.chunks)
	}
	return b
}

// end draws the bar to the receiver of an arc.
func (b *bar) end(a arc) {
	b.lo, b.hi = min(b.lo, a.to), max(b.hi, a.to)
	switch {
	case a.end == folded:
		b.marks[a.to] = '⊕'
	case a.end == mismatch:
		b.marks[a.to] = '×'
	case a.from < a.to:
		b.marks[a.to] = '▼'
	default:
		b.marks[a.to] = '▲'
	}
}

// exchanges makes a bar of each arc, or of one and its like in the other direction. Short ones are first.
func exchanges(arcs []arc, each int64) []bar {
	known := map[arc]bool{}
	for _, a := range arcs {
		known[a] = true
	}
	var out []bar
	for _, a := range arcs {
		back := a
		back.from, back.to = a.to, a.from
		both := a.end != mismatch && known[back]
		if both && a.from > a.to {
			continue
		}
		b := newBar(a, each)
		b.end(a)
		if both {
			b.end(back)
		}
		out = append(out, b)
	}
	slices.SortStableFunc(out, func(a, b bar) int { return (a.hi - a.lo) - (b.hi - b.lo) })
	return out
}

// bySender makes a bar of the arcs of a sender with the same number of chunks.
func bySender(arcs []arc, each int64) []bar {
	type sending struct {
		from   int
		chunks int64
	}
	last := map[sending]int{}
	var out []bar
	for _, a := range arcs {
		k := sending{a.from, a.chunks}
		i, is := last[k]
		if !is || out[i].marks[a.to] != 0 {
			i = len(out)
			last[k] = i
			out = append(out, newBar(a, each))
		}
		out[i].end(a)
	}
	return out
}

// at is the row of a rank.
func (c tracked) at(rank int) string {
	line := []rune(strings.Repeat("─", c.width))
	x := 1
	for _, t := range c.tracks {
		for _, b := range t.bars {
			if mark, is := b.marks[rank]; is {
				line[x] = mark
				if rank == b.at {
					copy(line[x+1:], []rune(b.label))
				}
			} else if b.lo < rank && rank < b.hi {
				line[x] = '│'
			}
		}
		x += t.width + 1
	}
	if c.wrong == rank+1 {
		line[0], line[len(line)-1] = '!', '!'
	}
	return string(line)
}

// below is the row between a rank and the next.
func (c tracked) below(rank int) string {
	line := []rune(strings.Repeat(" ", c.width))
	x := 1
	for _, t := range c.tracks {
		for _, b := range t.bars {
			if b.lo <= rank && rank < b.hi {
				line[x] = '│'
			}
		}
		x += t.width + 1
	}
	return string(line)
}
