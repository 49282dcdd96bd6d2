package cost

import "gogcl.dev/methods/schedule"

// axes finds the rounds of a traffic whose messages along the axes of a torus, the lines through replica 0 in each
// dimension, stand for all of its messages.
type axes struct {
	torus   *torus // nil: never
	strides []int  // by dimension: how far apart neighbours are
}

// newAxes is for the traffic of these members. Each replica of the torus has to be the rank of its number, and
// processors to take no time.
func newAxes(m Model, members []int) axes {
	t, ok := m.Network.(*torus)
	if !ok || len(members) != t.replicas || m.Overhead > 0 || m.FoldBytesPerSecond > 0 {
		return axes{}
	}
	for rank, replica := range members {
		if rank != replica {
			return axes{}
		}
	}
	a := axes{torus: t}
	for i, stride := 0, 1; i < len(t.dims); i++ {
		a.strides = append(a.strides, stride)
		stride *= t.dims[i]
	}
	return a
}

// flows returns, in place of flows, those of the messages along the axes, or nil if these do not stand for all. They do
// if in each flow all ranks send, along one dimension, and how far depends on the place in that dimension alone. Then
// all lines of a dimension have the same messages, in the same order, and no message leaves its line.
//
//	a step of Swing on 4 by 2 replicas    its messages along the axes
//
//	4 ⇄ 5   6 ⇄ 7
//	0 ⇄ 1   2 ⇄ 3                         0 ⇄ 1   2 ⇄ 3
func (a axes) flows(flows []schedule.Flow) []schedule.Flow {
	if a.torus == nil {
		return nil
	}
	along := make([]schedule.Flow, 0, len(flows))
	for _, f := range flows {
		i := a.dimension(f)
		if i < 0 || f.Order != 0 || f.First != 0 || f.Every > 1 || f.Count != 0 && f.Count != a.torus.replicas {
			return nil
		}
		f.Every, f.Count = a.strides[i], a.torus.dims[i]
		along = append(along, f)
	}
	return along
}

// dimension is the one of whose places a flow's digit is a digit, or -1.
func (a axes) dimension(f schedule.Flow) int {
	stride, radix := max(f.Stride, 1), f.Radix
	if radix == 0 {
		radix = a.torus.replicas
	}
	for i, places := range a.torus.dims {
		within := stride / a.strides[i]
		if stride%a.strides[i] == 0 && within > 0 && radix <= places/within && places%(within*radix) == 0 {
			return i
		}
	}
	return -1
}
