package schedule

import (
	"fmt"
	"unsafe"
)

// tally counts for a Report while a machine runs. A nil tally counts nothing.
type tally struct {
	report *Report
	out    []int32 // by rank: how many it sends to in a round
	latest []int32 // by rank*Chunks + chunk: the index of what the rank had last in had; 0: nothing yet
	had    []had   // had[0] stands for nothing
}

// had is a value that a rank has had.
type had struct {
	value  value
	before int32 // the index of what it had before of the same chunk, or 0
}

// newTally counts into r.
func newTally(r *Report) *tally {
	r.Sent, r.Received = make([]int, r.Size), make([]int, r.Size)
	return &tally{report: r, out: make([]int32, r.Size), latest: make([]int32, r.Size*r.Chunks), had: make([]had, 1)}
}

// enters notes that a rank begins a round.
func (t *tally) enters(r Round) {
	if t == nil {
		return
	}
	n := 0
	for i := range r.Moves {
		if r.Moves[i].Verb != Fold {
			n++
		}
	}
	t.report.InFlight = max(t.report.InFlight, n)
}

// sorted notes the messages of a round.
func (t *tally) sorted(m *mail) {
	if t == nil {
		return
	}
	t.report.Messages += len(m.messages)
	for _, to := range m.receivers {
		in, last := 0, int32(-1)
		for _, i := range m.to(int(to)) {
			msg := &m.messages[i]
			t.report.Sent[msg.from] += msg.src.Count
			t.report.Received[to] += msg.src.Count
			if msg.from != last { // they are sorted
				last = msg.from
				in++
				t.out[last]++
				t.report.Ports = max(t.report.Ports, in, int(t.out[last]))
			}
		}
	}
	for i := range m.messages {
		t.out[m.messages[i].from] = 0
	}
}

// receives notes what arrives at a rank and is kept as it is.
func (t *tally) receives(of *terms, rank, round int, st *Step, values []value) {
	if t == nil {
		return
	}
	for i, v := range values {
		x := of.at(v)
		if x.count == 1 && of.leaf(rank, int(x.chunk)) == v || t.hasHad(rank, int(x.chunk), v) {
			t.finds(&t.report.Waste.Repeated, rank, round, func() string {
				return fmt.Sprintf("%v brings chunk %d, which the rank has had", *st, st.Dst.chunk(i, t.report.Chunks))
			})
		}
	}
}

// hasHad reports whether a rank has had a value of a chunk. Few ranks have many.
func (t *tally) hasHad(rank, chunk int, v value) bool {
	for i := t.latest[rank*t.report.Chunks+chunk]; i > 0; i = t.had[i].before {
		if t.had[i].value == v {
			return true
		}
	}
	return false
}

// writes notes what a rank has.
func (t *tally) writes(of *terms, rank int, values []value) {
	if t == nil {
		return
	}
	for _, v := range values {
		latest := &t.latest[rank*t.report.Chunks+int(of.at(v).chunk)]
		if t.had[*latest].value != v {
			t.had = append(t.had, had{v, *latest})
			of.budget.take(int64(unsafe.Sizeof(had{})))
			*latest = int32(len(t.had) - 1)
		}
	}
}

// unused notes that a rank gives up what nobody read, as text says.
func (t *tally) unused(rank, round int, text func() string) {
	if t != nil {
		t.finds(&t.report.Waste.Unused, rank, round, text)
	}
}

// finds counts a finding, and has the text of the first.
func (t *tally) finds(what *int, rank, round int, text func() string) {
	*what++
	if w := &t.report.Waste; w.First == "" {
		when := "at the end"
		if round != atEnd {
			when = fmt.Sprint("round ", round)
		}
		w.First = fmt.Sprintf("rank %d %s: %s", rank, when, text())
	}
}

// atEnd stands for a round after the last.
const atEnd = -1
