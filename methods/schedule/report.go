package schedule

import (
	"fmt"
	"slices"
	"strings"
)

// Report says what a schedule is that gives the right results. Chunks are counted as often as they are sent.
type Report struct {
	Collective Collective
	Custom     *CustomContract // of the Collective Custom; else nil
	Size       int             // ranks
	Chunks     int

	Rounds   int // of the longest program
	Messages int // of all ranks
	InFlight int // the most messages that one rank sends and receives in one round
	Ports    int // the most ranks that one rank sends to, or receives from, in one round
	Scratch  int // chunks in the slots of the rank that has most

	Sent, Received []int // chunks, by rank

	// Again says that a contribution may count more than once: by Schedule.Again, or in the collective.
	Again bool

	// OneOrder says that all ranks that hold an element of the result hold the same expression: the operands are
	// combined in one order, up to exchanging the two sides of an operator. Of a Custom collective that is said of the
	// ranks that want the same contributions to the element.
	OneOrder bool

	// RankOrder says that this order is the left fold over ranks 0, 1, 2, ..., or those of them that contribute.
	RankOrder bool

	// Order is where OneOrder fails first, or else RankOrder, as in "chunk 0 is (0+1)+2 at rank 0 and 0+(1+2) at rank
	// 1". "": both hold, or the collective combines nothing. It does not spell the orders out above 16 ranks, of more
	// than 4,096 expressions, and where a contribution may count again.
	Order string

	Waste Waste
	Least Bounds // for comparison
}

// Waste is what a schedule does for nothing.
type Waste struct {
	// Repeated is how many chunks came to a rank that had had them before, or as its own, and were kept as they came. A
	// partial result that is folded does not count.
	Repeated int

	// Unused is how many chunks were written and then overwritten, or left in Scratch, before anyone read them. It is
	// counted with Output apart from Input.
	Unused int

	First string // the first of either: rank, round, step
}

// None reports whether nothing was wasted.
func (w Waste) None() bool { return w.Repeated == 0 && w.Unused == 0 }

// String says how much was wasted, and where first.
func (w Waste) String() string {
	if w.None() {
		return "none"
	}
	text := fmt.Sprintf("%s sent again, %s never used", counted(w.Repeated, "chunk"), counted(w.Unused, "chunk"))
	if w.First != "" {
		text += ", first " + w.First
	}
	return text
}

// String is a table: what the schedule has beside the least that any can have, and who sends how much.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v, %s, %s\n", named(r.Collective, r.Custom), counted(r.Size, "rank"), counted(r.Chunks, "chunk"))
	row := func(name string, have int, least string) {
		line := fmt.Sprintf("%-24s %10d %10s", name, have, least)
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	fmt.Fprintf(&b, "%-24s %10s %10s\n", "", "schedule", "least")
	row("rounds", r.Rounds, fmt.Sprint(r.Least.Rounds))
	row("messages", r.Messages, "")
	row("most in flight at a rank", r.InFlight, "")
	row("peers at once", r.Ports, "")
	row("chunks of scratch", r.Scratch, "")
	row("most chunks sent", most(r.Sent), fmt.Sprint(r.Least.Sent))
	row("most chunks received", most(r.Received), fmt.Sprint(r.Least.Received))
	fmt.Fprintf(&b, "%-24s %s\n", "chunks sent, by rank", byRank(r.Sent))
	fmt.Fprintf(&b, "%-24s %s\n", "chunks received, by rank", byRank(r.Received))
	if r.Collective.Contract().Combines || r.Custom != nil && r.Custom.Combines {
		fmt.Fprintf(&b, "%-24s %s\n", "order", r.order())
	}
	fmt.Fprintf(&b, "%-24s %v\n", "waste", r.Waste)
	return b.String()
}

func (r Report) order() string {
	switch {
	case r.RankOrder:
		return "that of the ranks"
	case r.OneOrder:
		return "one on all ranks"
	}
	if r.CheckOrder() == nil { // it does not matter
		return "differs by rank"
	}
	return "differs by rank: " + r.Order
}

// CheckOrder returns an error, with Order, if ranks combine an element in different orders, so that a floating-point
// sum may have different bits at each of them. Check lets that pass; gcl does not carry such a schedule out. Where a
// contribution may count again, as for Min and Max, orders do not matter.
func (r Report) CheckOrder() error {
	c := r.Collective.Contract()
	if r.OneOrder || r.Again || !c.Combines && (r.Custom == nil || !r.Custom.Combines) {
		return nil
	}
	return fmt.Errorf("ranks combine an element in different orders, so that they may end with different bits: %s",
		r.Order)
}

// CheckWaste returns an error, with the Waste, if the schedule does anything for nothing. Its results are right all the
// same: Check and Examine accept it, and gcl carries it out.
func (r Report) CheckWaste() error {
	if r.Waste.None() {
		return nil
	}
	return fmt.Errorf("data moves for nothing: %v", r.Waste)
}

func most(counts []int) int {
	if len(counts) == 0 {
		return 0
	}
	return slices.Max(counts)
}

// listed is how many ranks a table lists one by one.
const listed = 16

// byRank lists counts, or says between what they are.
func byRank(counts []int) string {
	switch {
	case len(counts) == 0:
		return ""
	case slices.Max(counts) == slices.Min(counts):
		return fmt.Sprintf("%d each", counts[0])
	case len(counts) > listed:
		return fmt.Sprintf("%d to %d", slices.Min(counts), slices.Max(counts))
	}
	return strings.Trim(fmt.Sprint(counts), "[]")
}
