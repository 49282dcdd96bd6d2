package gcl

import (
	"fmt"
	"strings"

	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// names is what the calls in an error were named on their replicas.
type names flight.Names

// explain is names.explain where no names are known.
func explain(err error) string { return names{}.explain(err) }

// describe spells out a call of a replica: `all-reduce #3 "grads" (ADD float32 x 1024, direct, round 1, group {0, 2})`.
func (n names) describe(replica int, c transport.Call) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s%s (", wire.Name(c), wire.Quote(flight.Names(n).Of(replica, c)))
	switch {
	case c.Collective == wire.Barrier:
	case wire.IsMessage(c.Collective):
		if c.Seq != 0 {
			fmt.Fprintf(&b, "%s, ", describeData(c))
		}
	default:
		fmt.Fprintf(&b, "%s, %v, ", describeData(c), how(c))
	}
	if _, phase := wire.PhaseOf(c.Seq); phase > 0 {
		fmt.Fprintf(&b, "%v phase %d, ", Hybrid, phase)
	}
	if wire.IsMessage(c.Collective) && c.Seq != 0 { // its group is of its two replicas
		fmt.Fprintf(&b, "%s)", wire.RoundName(c.Round))
		return b.String()
	}
	fmt.Fprintf(&b, "%s, group %s)", wire.RoundName(c.Round), flight.Names(n).GroupOf(replica, c))
	return b.String()
}

// isCall reports whether there can be a call with the numbers given. What else has come over a connection is no other
// replica's call.
func isCall(c transport.Call) bool {
	dtype := tensor.DType(c.DType &^ wire.DTypeMarks)
	operator := c.Operator < uint8(numOperators) || c.Operator&wire.OwnOperator != 0
	return c.Collective <= wire.SendRecv && operator && (dtype == 0 || dtype.Valid())
}

// describeData spells out what a call works on: "ADD float32 x 1024".
func describeData(c transport.Call) string {
	var b strings.Builder
	if schedule.Collective(c.Collective).Contract().Combines || c.Collective == wire.Execute && c.Operator != 0 {
		b.WriteString(operatorName(c.Operator) + " ")
	}
	switch dtype := tensor.DType(c.DType &^ wire.DTypeMarks); {
	case byOwnCounts(c) && dtype == 0:
		b.WriteString("tensors")
	case byOwnCounts(c) && c.DType&wire.ManyTensors == 0:
		fmt.Fprintf(&b, "%v", dtype)
	case byOwnCounts(c):
		fmt.Fprintf(&b, "tensors, %v", dtype)
	case c.DType&wire.ManyTensors == 0:
		fmt.Fprintf(&b, "%v x %d", dtype, c.Count)
	case dtype == 0:
		fmt.Fprintf(&b, "tensors, %d elements in all", c.Count)
	default:
		fmt.Fprintf(&b, "tensors, %v x %d in all", dtype, c.Count)
	}
	if c.DType&wire.ByCounts != 0 {
		b.WriteString(" by counts")
	}
	if schedule.Collective(c.Collective).Contract().Rooted() || c.Collective == wire.Execute && c.Root != 0 {
		fmt.Fprintf(&b, ", root %d", int32(c.Root))
	}
	return b.String()
}

// byOwnCounts reports whether a call is an all-to-all by counts, of which each rank has its own.
func byOwnCounts(c transport.Call) bool {
	return c.DType&wire.ByCounts != 0 && schedule.Collective(c.Collective).Contract().Input == schedule.Blocks
}
