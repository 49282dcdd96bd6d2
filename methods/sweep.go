package methods

import (
	"slices"

	"gogcl.dev/methods/schedule"
)

// axis is one dimension of ranks that are numbered with the first dimension fastest, as in cost.Torus. A rank's place
// is a digit of its number.
type axis struct{ stride, places int }

// axesOf are those of some dimensions.
func axesOf(dims []int) []axis {
	out, stride := make([]axis, len(dims)), 1
	for i, places := range dims {
		out[i] = axis{stride, places}
		stride *= places
	}
	return out
}

// at is the place of a rank.
func (a axis) at(rank int) int { return rank / a.stride % a.places }

// exchange is what all ranks send at once along an axis in a reduce-scatter: each sends n fragments to the rank that is
// move places further. They are the receiver's own with offset 0, or else begin offset places behind that, and go on
// round the axis.
type exchange struct{ move, offset, n int }

// leg is a reduce-scatter along one axis, round by round: a place ends with its own fragment of what it had before.
// The all-gather takes the same steps back.
type leg struct {
	axis
	rounds [][]exchange
}

// ringLeg goes round a ring, up or down: in each round a place sends one fragment to its neighbour.
func ringLeg(a axis, up bool) leg {
	way := 1
	if !up {
		way = -1
	}
	out := leg{axis: a}
	for t := range a.places - 1 {
		out.rounds = append(out.rounds, []exchange{{way, -way * (t + 2), 1}})
	}
	return out
}

// directLeg sends every fragment straight to its place, in one round.
func directLeg(a axis) leg {
	out := leg{axis: a}
	if a.places > 1 {
		out.rounds = make([][]exchange, 1)
	}
	for d := 1; d < a.places; d++ {
		out.rounds[0] = append(out.rounds[0], exchange{d, 0, 1})
	}
	return out
}

// circulantLeg halves what a place has to do with, round by round: see Circulant.
func circulantLeg(a axis) leg {
	out := leg{axis: a}
	for has := a.places; has > 1; {
		keeps := (has + 1) / 2
		out.rounds = append(out.rounds, []exchange{{keeps, 0, has - keeps}})
		has = keeps
	}
	return out
}

// sweep is a reduce-scatter along some axes, one after the other, and the all-gather that takes the same steps back.
// The chunks that a rank has to do with after each leg lie side by side.
type sweep []leg

// fragment is how many chunks a fragment of a leg has, of one chunk for each of size ranks.
func (s sweep) fragment(i, size int) int {
	for _, l := range s[:i+1] {
		size /= l.places
	}
	return size
}

// sends calls do for each message of the reduce-scatter: n chunks from first on. Of two in a round from one rank to
// another that of the lower chunks comes first, as in a schedule.
func (s sweep) sends(size int, do func(t, from, to, first, n int)) {
	base := make([]int, size) // the first of the chunks that a rank has to do with
	begin := 0
	for i, l := range s {
		fragment := s.fragment(i, size)
		for t, exchanges := range l.rounds {
			for _, e := range exchanges {
				for rank := range size {
					to := ((l.at(rank)+e.move)%l.places + l.places) % l.places
					first := ((to+e.offset)%l.places + l.places) % l.places
					n := min(e.n, l.places-first)
					peer := rank + (to-l.at(rank))*l.stride
					if rest := e.n - n; rest > 0 {
						do(begin+t, rank, peer, base[rank], rest*fragment)
					}
					do(begin+t, rank, peer, base[rank]+first*fragment, n*fragment)
				}
			}
		}
		begin += len(l.rounds)
		for rank := range base {
			base[rank] += l.at(rank) * fragment
		}
	}
}

// splits reports whether fragments that a rank sends at once may begin at the end of the chunks and go on at their
// start. Those go in two messages, which no Flow describes.
func (s sweep) splits() bool {
	for _, l := range s {
		for _, round := range l.rounds {
			if slices.ContainsFunc(round, func(e exchange) bool { return e.n > 1 }) {
				return true
			}
		}
	}
	return false
}

// rounds is how many the reduce-scatter has.
func (s sweep) rounds() int {
	n := 0
	for _, l := range s {
		n += len(l.rounds)
	}
	return n
}

// swept is a Generator whose schedules are sweeps, all as long and at the same time, each with its part of the data. A
// reduce-scatter or an all-gather alone is one sweep whose ranks end with, or begin with, the chunk of their number.
type swept func(r Request) ([]sweep, error)

// Schedule implements Generator.
func (g swept) Schedule(r Request) (*schedule.Schedule, error) {
	sweeps, err := g(r)
	if err != nil {
		return nil, err
	}
	b, err := r.builder(len(sweeps) * r.Size)
	if err != nil {
		return nil, err
	}
	r.sweepAll(sweeps, b.Fold, b.Copy)
	return b.Build()
}

// sweepAll tells of all messages of a request by sweeps.
func (r *Request) sweepAll(sweeps []sweep, fold, copied func(t, from, to, first, n int)) {
	for i, s := range sweeps {
		rounds, begin, part := s.rounds(), 0, i*r.Size
		if r.Collective.Contract().Combines {
			begin = rounds
			s.sends(r.Size, func(t, from, to, first, n int) { fold(t, from, to, part+first, n) })
		}
		if r.Collective != schedule.ReduceScatter {
			s.sends(r.Size, func(t, from, to, first, n int) { copied(begin+rounds-1-t, to, from, part+first, n) })
		}
	}
}

// limits implements bounded.
func (g swept) limits(r Request) error {
	sweeps, err := g(r)
	if err != nil {
		return err
	}
	return r.fits(len(sweeps) * r.Size)
}

// Traffic implements TrafficGenerator.
func (g swept) Traffic(r Request) (*schedule.Traffic, error) {
	sweeps, err := g(r)
	if err != nil {
		return nil, err
	}
	out := &schedule.Traffic{Size: r.Size, Chunks: len(sweeps) * r.Size}
	rounds := sweeps[0].rounds()
	if slices.ContainsFunc(sweeps, sweep.splits) {
		list := func(fold bool) func(t, from, to, first, n int) {
			return func(t, from, to, _, n int) {
				for len(out.Rounds) <= t {
					listed := make([]schedule.Message, 0, 2*r.Size)
					out.Rounds = append(out.Rounds, schedule.Alike{Times: 1, Listed: listed})
				}
				alike := &out.Rounds[t]
				alike.Listed = append(alike.Listed, schedule.Message{From: from, To: to, Chunks: n, Fold: fold})
			}
		}
		r.sweepAll(sweeps, list(true), list(false))
		return out, nil
	}
	if r.Collective.Contract().Combines {
		for t := range rounds {
			out.Rounds = addAlike(out.Rounds, flowsOf(sweeps, r.Size, t, true))
		}
	}
	if r.Collective != schedule.ReduceScatter {
		for t := range rounds {
			out.Rounds = addAlike(out.Rounds, flowsOf(sweeps, r.Size, rounds-1-t, false))
		}
	}
	return out, nil
}

// flowsOf are the messages of round t of a reduce-scatter by sweeps, or the same back.
func flowsOf(sweeps []sweep, size, t int, fold bool) (out []schedule.Flow) {
	for _, s := range sweeps {
		i, t := 0, t
		for ; t >= len(s[i].rounds); i++ {
			t -= len(s[i].rounds)
		}
		for _, e := range s[i].rounds[t] {
			flow := schedule.Flow{Stride: s[i].stride, Radix: s[i].places, Move: e.move,
				Chunks: e.n * s.fragment(i, size), Fold: fold}
			if !fold {
				flow.Move = -e.move
			}
			out = append(out, flow)
		}
	}
	return out
}

// addAlike adds a round. One like the last one is counted with that.
func addAlike(rounds []schedule.Alike, flows []schedule.Flow) []schedule.Alike {
	if last := len(rounds) - 1; last >= 0 && slices.Equal(rounds[last].Flows, flows) {
		rounds[last].Times++
		return rounds
	}
	return append(rounds, schedule.Alike{Times: 1, Flows: flows})
}
