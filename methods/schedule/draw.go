package schedule

import (
	"fmt"
	"strings"
)

// String is the span in the notation of the drawing: I3, O0-2, S1[5], and of a strided one O1-2:4x6, its first run, its
// stride and how many chunks it has.
func (s Span) String() string {
	chunks := s.numbers()
	switch s.Buf {
	case Input:
		return "I" + chunks
	case Output:
		return "O" + chunks
	}
	if s.Base != s.First {
		return fmt.Sprintf("S%d[%s of %d-]", s.Slot, chunks, s.Base)
	}
	return fmt.Sprintf("S%d[%s]", s.Slot, chunks)
}

// numbers are the chunks of a span in the notation of the drawing.
func (s Span) numbers() string {
	n := s.Count
	if s.Stride != 0 || s.Run != 0 {
		n = s.Run
	}
	chunks := fmt.Sprint(s.First)
	if n != 1 {
		chunks = fmt.Sprintf("%d-%d", s.First, s.First+n-1)
	}
	if s.Stride != 0 || s.Run != 0 {
		chunks += fmt.Sprintf(":%dx%d", s.Stride, s.Count)
	}
	return chunks
}

// String is the step in the notation of the drawing: I3>1, O2<0, O1=I1+<2.
func (st Step) String() string {
	switch st.Verb {
	case Send:
		return fmt.Sprintf("%v>%d", st.Src, st.Peer)
	case Recv:
		return fmt.Sprintf("%v<%d", st.Dst, st.Peer)
	case RecvReduce:
		if st.Src == st.Dst {
			return fmt.Sprintf("%v+<%d", st.Dst, st.Peer)
		}
		return fmt.Sprintf("%v=%v+<%d", st.Dst, st.Src, st.Peer)
	case Copy:
		return fmt.Sprintf("%v=%v", st.Dst, st.Src)
	case Fold:
		return fmt.Sprintf("%v+%v", st.Dst, st.Src)
	}
	return fmt.Sprintf("%v %v %v %d", st.Verb, st.Dst, st.Src, st.Peer)
}

// String draws the schedule: a column for each rank, a block of lines for each round. The package comment explains the
// notation. [Parse] reads the drawing of every schedule whose steps are of a legal form. Of nil it is "no schedule".
func (s *Schedule) String() string {
	if s == nil {
		return "no schedule"
	}
	rounds := s.rounds()
	var rows [][]string // a cell for the round's number, then one for each rank
	header := []string{"round"}
	for rank := range s.Programs {
		header = append(header, fmt.Sprintf("rank %d", rank))
	}
	rows = append(rows, header, nil)
	rows = append(rows, s.Custom.rows(len(s.Programs))...)
	for t := range rounds {
		rows = append(rows, s.drawRound(t)...)
	}
	width := make([]int, len(header))
	for _, row := range rows {
		for i, c := range row {
			width[i] = max(width[i], len(c))
		}
	}

	var b strings.Builder
	b.WriteString(s.title(rounds) + s.marks() + "\n" + s.Custom.sizesText())
	for _, row := range rows {
		line := make([]string, len(width))
		for i, w := range width {
			switch {
			case row == nil:
				line[i] = strings.Repeat("-", w)
			case i == 0:
				line[i] = fmt.Sprintf("%*s", w, row[i])
			default:
				line[i] = fmt.Sprintf("%-*s", w, row[i])
			}
		}
		sep := " | "
		if row == nil {
			sep = "-+-"
		}
		b.WriteString(strings.TrimRight(strings.Join(line, sep), " ") + "\n")
	}
	return b.String()
}

// rounds is the number of rounds of the longest program.
func (s *Schedule) rounds() int {
	n := 0
	for _, p := range s.Programs {
		n = max(n, len(p))
	}
	return n
}

// title is the first line of drawings, without marks.
func (s *Schedule) title(rounds int) string {
	ranks, chunks := counted(s.Size, "rank"), counted(s.Chunks, "chunk")
	return fmt.Sprintf("%v, %s, %s, %s", named(s.Collective, s.Custom), ranks, chunks, counted(rounds, "round"))
}

// marks is the end of the first line: the root if it is not rank 0, and what the schedule asks for.
func (s *Schedule) marks() string {
	out := ""
	if s.Root != 0 {
		out = fmt.Sprint(", root ", s.Root)
	}
	if s.Apart {
		out += markApart
	}
	if s.Again {
		out += markAgain
	}
	if s.Custom != nil && s.Custom.Combines {
		out += markCombines
	}
	return out
}

// The marks of Schedule.Apart, Schedule.Again and CustomContract.Combines.
const (
	markApart    = ", apart"
	markAgain    = ", again"
	markCombines = ", combines"
)

// idle is the cell of an empty round with which a program ends. Other empty rounds have an empty cell.
const idle = "-"

// drawRound returns the rows of one round. The parts before and after "then" are aligned over the ranks.
func (s *Schedule) drawRound(t int) [][]string {
	moves, then := 0, 0
	for _, p := range s.Programs {
		if t < len(p) {
			moves, then = max(moves, len(p[t].Moves)), max(then, len(p[t].Then))
		}
	}
	lines := moves
	if then > 0 {
		lines += 1 + then
	}
	rows := make([][]string, max(lines, 1))
	for i := range rows {
		rows[i] = make([]string, 1+len(s.Programs))
	}
	rows[0][0] = fmt.Sprint(t)
	for rank, p := range s.Programs {
		if t >= len(p) {
			continue
		}
		if t == len(p)-1 && len(p[t].Moves)+len(p[t].Then) == 0 {
			rows[0][1+rank] = idle
		}
		for i, st := range p[t].Moves {
			rows[i][1+rank] = st.String()
		}
		if len(p[t].Then) > 0 {
			rows[moves][1+rank] = "then"
		}
		for i, st := range p[t].Then {
			rows[moves+1+i][1+rank] = st.String()
		}
	}
	return rows
}
