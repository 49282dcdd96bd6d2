package gcl

import (
	"cmp"
	"fmt"
	"strings"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// partLength is how long a part of a call is, in its elements if they have one type.
func partLength(c transport.Call, bytes int) string {
	if dtype := tensor.DType(c.DType &^ wire.DTypeMarks); dtype.Valid() {
		return fmt.Sprintf("%d elements", bytes/dtype.Size())
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// circle says in what calls differ that wait for each other, each for the next: first that alone, of the first two that
// differ, then all of them. Calls whose descriptions are alike may still go different ways: one over peer memory, say,
// since its options ask for the method, and another by messages, since a rule of the tuning says so.
func (n names) circle(e *transport.DeadlockError) string {
	if !isCircle(e) {
		return "replicas wait for each other"
	}
	lead, of, phases := "", "", false // whether they are phases of different groups
	waits := make([]string, len(e.Replicas))
	for i, r := range e.Replicas {
		next := (i + 1) % len(e.Replicas)
		waits[i] = fmt.Sprintf("replica %d in %s waits for replica %d", r, n.describe(r, e.Calls[i]), e.Replicas[next])
		a, b := e.Calls[i], e.Calls[next]
		if numberOf(a) == numberOf(b) && phaseOf(a) > 0 && phaseOf(b) > 0 && a.Group != b.Group {
			b.Seq, b.Group, b.Digest, b.Method, phases = a.Seq, a.Group, a.Digest, a.Method, true
		}
		b.Round = a.Round // each waits where it is
		first, second := r, e.Replicas[next]
		if first > second {
			first, second, a, b = second, first, b, a
		}
		switch {
		case lead != "" || a == b:
		case a.Group != b.Group: // which may be right, each by itself
			lead = fmt.Sprintf("orders of calls differ: replica %d is in group %s, replica %d in group %s", first,
				flight.Names(n).GroupOf(first, a), second, flight.Names(n).GroupOf(second, b))
		default:
			lead, of = n.lead(first, a, second, b)
		}
	}
	switch {
	case lead != "":
	case wire.IsMessage(e.Calls[0].Collective):
		lead = "messages wait for each other in a circle: want SendRecv, or that one of the replicas receives first"
	case phases:
		lead = "members or lists differ of the groups whose phases these are: the calls are alike otherwise"
	default:
		lead = "options differ (Method or MaxBroadcastSize): the calls are alike and go different ways"
	}
	lead += "; " + strings.Join(waits, ", ")
	if of != "" {
		lead += "; " + of
	}
	return lead
}

// isCircle reports whether an error has a call for each replica. One from another process may have anything.
func isCircle(e *transport.DeadlockError) bool {
	return len(e.Replicas) > 0 && len(e.Calls) == len(e.Replicas)
}

// hiddenDifference is what may differ when the description of two calls does not show it, or shows no more than what
// follows, and of what it consists: other options or rules may lead to another method, and another schedule to parts of
// other lengths. The digest of a broadcast of few bytes holds what shows too, and that of a generator's method its
// schedule.
func hiddenDifference(a, b transport.Call) (what, of string) {
	many := a.DType&wire.ManyTensors != 0
	shown := a
	shown.Digest, shown.Round = b.Digest, b.Round
	if (a.Method == wire.OwnMethod) == (b.Method == wire.OwnMethod) {
		shown.Method = b.Method
	}
	if a.Collective == wire.Execute {
		shown.Count = b.Count
	}
	if wire.IsMessage(a.Collective) || wire.IsMessage(b.Collective) {
		return "", ""
	}
	_, phase := wire.PhaseOf(a.Seq)
	if _, other := wire.PhaseOf(b.Seq); phase > 0 && other > 0 {
		shown.Group = b.Group // the same members may make phases of several groups
	}
	switch {
	case a.Digest == b.Digest, a.DType&wire.DTypeMarks != b.DType&wire.DTypeMarks, !many && shown != b:
		return "", ""
	}
	of = "options: " + strings.Join(agreedFields(), ", ") + ", or the topology or network"
	if a.Collective != wire.Execute && bySchedule(a.Method, b.Method) {
		of += ", or the schedules that their methods make of the same request"
	}
	if a.Operator&wire.OwnOperator != 0 {
		of += ", or the operators: in name, type or properties"
	}
	if phase > 0 {
		of += ", or the groups whose phases these are"
	} else if wire.ByLists(a.Group) {
		of += ", or the lists of their groups"
	}
	switch {
	case a.Collective == wire.Execute:
		return "schedules or options", of
	case many:
		what, of = "tensors, mapping or options", "tensors: in number, order, dtypes or shapes; "+of
	default:
		what = "options (or roots of earlier broadcasts)"
	}
	switch {
	case a.DType&wire.ByCounts == 0 || byOwnCounts(a):
		return what, of
	case many:
		return "counts, " + what, of
	}
	return "counts or " + what, of
}

// aspect is something in which two calls can differ.
type aspect struct {
	name, does string // "lengths", and what a replica does with a length: "gives"
	differ     func(a, b transport.Call) bool
	of         func(n names, replica int, c transport.Call) string
	follows    bool // from what hiddenDifference names, if that is something
}

// aspects are in the order in which they are looked at: what is compared first decides whether the next can be. What is
// alike in all of them is told by hiddenDifference.
var aspects = []aspect{
	{
		name: "kinds of calls", does: "is in",
		differ: func(a, b transport.Call) bool {
			return wire.IsMessage(a.Collective) != wire.IsMessage(b.Collective)
		},
		of: func(_ names, _ int, c transport.Call) string { return wire.Name(c) },
	},
	{
		name: "phases", does: "is in",
		differ: func(a, b transport.Call) bool { return phaseOf(a) != phaseOf(b) },
		of: func(_ names, _ int, c transport.Call) string {
			if phase := phaseOf(c); phase > 0 {
				return fmt.Sprintf("%v phase %d", Hybrid, phase)
			}
			return "no phase"
		},
	},
	{ // the same members may make phases of several groups: hiddenDifference
		name: "groups", does: "is in",
		differ: func(a, b transport.Call) bool { return a.Group != b.Group && phaseOf(a) == 0 },
		of:     func(n names, replica int, c transport.Call) string { return flight.Names(n).GroupOf(replica, c) },
	},
	{ // each group counts its own
		name: "places in the order of calls", does: "is in",
		differ: func(a, b transport.Call) bool { return numberOf(a) != numberOf(b) },
		of:     func(_ names, _ int, c transport.Call) string { return fmt.Sprintf("call %d", numberOf(c)) },
	},
	{
		name: "collectives", does: "calls",
		differ: func(a, b transport.Call) bool { return a.Collective != b.Collective },
		of:     func(_ names, _ int, c transport.Call) string { return wire.CollectiveName(c.Collective) },
	},
	{
		name: "operands", does: "gives",
		differ: func(a, b transport.Call) bool { return a.DType&wire.DTypeMarks != b.DType&wire.DTypeMarks },
		of: func(_ names, _ int, c transport.Call) string {
			what := "one slice"
			if c.DType&wire.ManyTensors != 0 {
				what = "tensors"
			}
			if c.DType&wire.ByCounts != 0 {
				what += " by counts"
			}
			return what
		},
	},
	{
		name: "operators", does: "gives",
		differ: func(a, b transport.Call) bool { return a.Operator != b.Operator },
		of: func(_ names, _ int, c transport.Call) string {
			if c.Collective == wire.Execute && c.Operator == 0 { // whether it combines is up to the schedule
				return fmt.Sprintf("none, or %v", Operator(0))
			}
			return operatorName(c.Operator)
		},
	},
	{
		name: "dtypes", does: "gives",
		differ: func(a, b transport.Call) bool { return a.DType != b.DType },
		of: func(_ names, _ int, c transport.Call) string {
			if dtype := tensor.DType(c.DType &^ wire.DTypeMarks); dtype != 0 {
				return dtype.String()
			}
			return "several, or no tensor"
		},
	},
	{
		name: "roots", does: "gives",
		differ: func(a, b transport.Call) bool { return a.Root != b.Root },
		of:     func(_ names, _ int, c transport.Call) string { return fmt.Sprintf("root %d", int32(c.Root)) },
	},
	{ // of an all-to-all each rank has its own
		name: "counts", does: "gives",
		differ: func(a, b transport.Call) bool {
			return a.DType&wire.ByCounts != 0 && !byOwnCounts(a) && a.Count != b.Count
		},
		of: func(_ names, _ int, c transport.Call) string {
			return fmt.Sprintf("counts of %d elements in all", c.Count)
		},
	},
	{
		name: "lengths", does: "gives",
		differ: func(a, b transport.Call) bool {
			return a.DType&wire.ByCounts == 0 && a.Collective != wire.Execute && a.Count != b.Count
		},
		of: length,
	},
	{
		name: "lengths", does: "gives", follows: true,
		differ: func(a, b transport.Call) bool { return a.Collective == wire.Execute && a.Count != b.Count },
		of:     length,
	},
	{
		name: "methods", does: "goes by", follows: true,
		differ: func(a, b transport.Call) bool { return a.Method != b.Method },
		of:     func(_ names, _ int, c transport.Call) string { return how(c) },
	},
	{
		name: "rounds", does: "is in", follows: true,
		differ: func(a, b transport.Call) bool { return a.Round != b.Round },
		of:     func(_ names, _ int, c transport.Call) string { return wire.RoundName(c.Round) },
	},
}

func numberOf(c transport.Call) uint64 { number, _ := wire.PhaseOf(c.Seq); return number }
func phaseOf(c transport.Call) uint64  { _, phase := wire.PhaseOf(c.Seq); return phase }

// length is how long the data of a call is. What a scatter is compared by is the whole of it, which its root gives.
func length(_ names, _ int, c transport.Call) string {
	switch {
	case c.DType&wire.ManyTensors != 0:
		return fmt.Sprintf("%d elements in all", c.Count)
	case schedule.Collective(c.Collective) == schedule.Scatter:
		return fmt.Sprintf("%d elements for all ranks", c.Count)
	}
	return fmt.Sprintf("%d elements", c.Count)
}

// differ says in what two calls differ: first that alone, then both calls.
func (n names) differ(e *transport.MismatchError) string {
	first, second := e.Replica, e.Peer
	a, b := e.Mine, e.Theirs
	if first > second {
		first, second, a, b = second, first, b, a
	}
	if a == b {
		return fmt.Sprintf("%s; both in %s", n.lengths(e), n.describe(first, a))
	}
	lead, of := n.lead(first, a, second, b)
	text := fmt.Sprintf("%s; %s and %s", lead, n.describe(first, a), n.describe(second, b))
	if of != "" {
		text += "; " + of
	}
	return text
}

// lead says in what alone the calls of two replicas differ, and of what that consists, if it is what hiddenDifference
// names.
func (n names) lead(first int, a transport.Call, second int, b transport.Call) (lead, of string) {
	hidden, of := hiddenDifference(a, b)
	for _, x := range aspects {
		if !x.differ(a, b) || x.follows && hidden != "" {
			continue
		}
		shared := ""
		if x.name == "lengths" || x.name == "counts" {
			shared = dataOf(a)
		}
		return fmt.Sprintf("%s differ: replica %d %s %s, replica %d %s %s%s", x.name, first, x.does,
			x.of(n, first, a), second, x.does, x.of(n, second, b), shared), of
	}
	return fmt.Sprintf("%s differ between replica %d and replica %d", cmp.Or(hidden, "calls"), first, second), of
}

// dataOf is the dtype and the operator of a call, as far as it has one of each: " (float32, ADD)".
func dataOf(c transport.Call) string {
	var words []string
	if dtype := tensor.DType(c.DType &^ wire.DTypeMarks); dtype != 0 {
		words = append(words, dtype.String())
	}
	if schedule.Collective(c.Collective).Contract().Combines {
		words = append(words, operatorName(c.Operator))
	}
	if len(words) == 0 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// lengths says which lengths the two sides of a transfer have.
func (n names) lengths(e *transport.MismatchError) string {
	what, unit := "lengths of a message", func(bytes int) string { return fmt.Sprintf("%d bytes", bytes) }
	if byOwnCounts(e.Mine) {
		what, unit = "counts", func(bytes int) string { return partLength(e.Mine, bytes) }
	}
	return fmt.Sprintf("%s differ: replica %d sends %s, replica %d expects %s", what, e.Peer, unit(e.TheirsBytes),
		e.Replica, unit(e.MineBytes))
}
