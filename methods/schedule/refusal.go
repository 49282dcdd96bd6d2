package schedule

import (
	"errors"
	"strings"
	"unicode/utf8"
)

// Bounds of schedules that are proved for a drawing. The proof takes about a tenth of a second then.
const (
	maxDrawnSteps  = 1 << 18
	maxDrawnStates = 1 << 20 // chunks on all ranks together
)

// refusal is what drawings show of a schedule that Check refuses. A nil refusal shows nothing.
type refusal struct {
	text        string // the first line of the error
	rank, round int    // the cell; rank -1: it has none
}

// refusal proves the schedule, if that does not take long. It is nil if the schedule is right, or was not tried.
func (s *Schedule) refusal() *refusal {
	if s.steps() > maxDrawnSteps || int64(max(s.Size, 0))*int64(max(s.Chunks, 0)) > maxDrawnStates {
		return nil
	}
	err := Check(s)
	if lack := (*budgetError)(nil); err == nil || errors.As(err, &lack) {
		return nil
	}
	out := &refusal{text: err.Error(), rank: -1}
	if told, is := err.(*cellError); is {
		out.text = told.error.Error() // without the way
	}
	var cell *cellError
	if rounds := s.rounds(); errors.As(err, &cell) && rounds > 0 {
		out.rank, out.round = cell.rank, cell.round
		if cell.round == atEnd {
			out.round = rounds - 1
		}
	}
	return out
}

// at is one more than the rank whose cell of a round is refused, among the first ranks; 0 if none is.
func (r *refusal) at(round, ranks int) int {
	if r == nil || r.round != round || r.rank >= ranks {
		return 0
	}
	return r.rank + 1
}

// The text of a refusal has as many lines at most.
const maxRefusalLines = 4

// lines are the text with a mark before it, broken at spaces so that it is no wider than a drawing.
func (r *refusal) lines(mark string) (out []string) {
	if r == nil {
		return nil
	}
	line := mark
	for word := range strings.FieldsSeq(strings.ToValidUTF8(r.text, "?")) {
		if utf8.RuneCountInString(line)+len(word) >= maxShapeWidth {
			out = append(out, strings.TrimRight(line, " "))
			line = strings.Repeat(" ", len(mark))
		}
		line += clipped(word) + " "
		if len(out) == maxRefusalLines {
			return append(out, strings.Repeat(" ", len(mark))+"...")
		}
	}
	return append(out, strings.TrimRight(line, " "))
}

// captions are the same below a picture.
func (r *refusal) captions() (out []caption) {
	for _, line := range r.lines("refused: ") {
		out = append(out, caption{text: line, wrong: true})
	}
	return out
}
