package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// Replay is how long a schedule takes the replicas in members, by rank, on a network with fair links, for a larger
// buffer of so many bytes. All ranks begin at once, and each enters a round when it is done with the one before: there
// is no barrier, as in [cost.Model.Price] there is one. No data is moved, so that bytes may be as many as one likes. It
// takes about a microsecond for a message.
//
// A message is on its way when both its ends have come to its round, and taken when it has arrived, also in a chain of
// folds, where on endpoints it waits for those before it. As for Price the sends of a schedule count, and its
// receives do not, which [schedule.Schedule.Check] compares.
//
// Errors: those of Price, the context's cause, and a time of more than 146 years.
func Replay(ctx context.Context, m cost.Model, s *schedule.Schedule, members []int, bytes int64) (time.Duration,
	error) {
	estimate, err := m.Price(s, members, bytes) // which checks all that there is
	if err != nil {
		return 0, fmt.Errorf("sim: %w", err)
	}
	lengths, err := cost.LengthsOf(s, bytes)
	if err != nil {
		return 0, fmt.Errorf("sim: %w", err)
	}
	r := newReplay(m, members, estimate.Rounds)
	r.shape = func(round int) (*shape, error) {
		return r.shapeOf(func(add func(from, to int, bytes float64), fold func(rank int, bytes float64)) error {
			for rank, p := range s.Programs {
				if round >= len(p) {
					continue
				}
				for _, steps := range [...][]schedule.Step{p[round].Moves, p[round].Then} {
					for i := range steps {
						switch st := &steps[i]; st.Verb {
						case schedule.Send:
							add(rank, st.Peer, float64(lengths.Of(st.Src)))
						case schedule.RecvReduce, schedule.Fold:
							fold(rank, float64(lengths.Of(st.Dst)))
						}
					}
				}
			}
			return nil
		})
	}
	return r.run(ctx)
}

// ReplayTraffic is [Replay] of the schedule that a traffic describes, whose messages are counted as in
// [cost.Model.PriceTraffic]: for many ranks, of which a schedule has too many steps. Errors: those of PriceTraffic and
// of Replay.
func ReplayTraffic(ctx context.Context, m cost.Model, t *schedule.Traffic, members []int, bytes int64) (time.Duration,
	error) {
	estimate, err := m.PriceTraffic(t, members, bytes)
	if err != nil {
		return 0, fmt.Errorf("sim: %w", err)
	}
	r := newReplay(m, members, estimate.Rounds)
	last := 0 // of t.Rounds: that of the last shape
	var made *shape
	var messages []schedule.Message
	end := 0 // the round after those of t.Rounds[last]
	if len(t.Rounds) > 0 {
		end = t.Rounds[0].Times
	}
	r.shape = func(round int) (*shape, error) { // rounds are asked for in order, each once
		for round >= end {
			last++
			end += t.Rounds[last].Times
			made = nil
		}
		if made != nil {
			return made, nil
		}
		if messages, err = t.Messages(messages[:0], last); err != nil {
			return nil, err
		}
		made, err = r.shapeOf(func(add func(from, to int, bytes float64), fold func(rank int, bytes float64)) error {
			for _, msg := range messages {
				length := float64(bytes) * float64(msg.Chunks) / float64(t.Chunks)
				add(msg.From, msg.To, length)
				if msg.Fold {
					fold(msg.To, length)
				}
			}
			return nil
		})
		return made, err
	}
	return r.run(ctx)
}

// shape is a round: its messages, and what each rank has to do in it. Rounds that are alike share one.
type shape struct {
	messages []message
	first    []int32   // by rank: of its messages, those that it sends or receives are list[first[rank]:first[rank+1]]
	list     []int32   // numbers of messages
	work     []float64 // by rank: seconds of its processor
}

// message is one of a round.
type message struct {
	from, to int32
	bytes    float64
}

// round is one that some ranks have entered and not all have left.
type round struct {
	*shape
	met  []bool // by message: one of its ends has come
	left int    // ranks that have left
}

// start is a message both ends of which have come.
type start struct{ round, message int32 }

// replay is a schedule in progress.
type replay struct {
	simulator
	model   cost.Model
	members []int
	shape   func(round int) (*shape, error)

	rounds []*round // nil: nobody is there yet, or nobody any more
	at     []int32  // by rank: its round
	open   []int32  // by rank: messages of its round that have not arrived
	done   int      // ranks
	ready  []int    // ranks that enter a round at this instant
	starts []start
}

func newReplay(m cost.Model, members []int, rounds int) *replay {
	n := len(members)
	r := &replay{model: m, members: members, rounds: make([]*round, rounds), at: make([]int32, n),
		open: make([]int32, n)}
	r.simulator = newSimulator(m.Network, false, r.arrive)
	return r
}

// shapeOf makes a shape of the messages and folds that list tells of.
func (r *replay) shapeOf(list func(add func(from, to int, bytes float64), fold func(rank int, bytes float64)) error) (
	*shape, error) {
	n := len(r.members)
	s := &shape{first: make([]int32, n+1), work: make([]float64, n)}
	err := list(func(from, to int, bytes float64) {
		s.messages = append(s.messages, message{int32(from), int32(to), bytes})
		s.first[from+1]++
		s.first[to+1]++
	}, func(rank int, bytes float64) {
		if r.model.FoldBytesPerSecond > 0 {
			s.work[rank] += bytes / r.model.FoldBytesPerSecond
		}
	})
	if err != nil {
		return nil, err
	}
	for rank := range n {
		s.work[rank] += float64(s.first[rank+1]) * r.model.Overhead.Seconds()
		s.first[rank+1] += s.first[rank]
	}
	s.list = make([]int32, 2*len(s.messages))
	next := slices.Clone(s.first)
	for i, m := range s.messages {
		for _, rank := range [...]int32{m.from, m.to} {
			s.list[next[rank]] = int32(i)
			next[rank]++
		}
	}
	return s, nil
}

// run is how long all takes.
func (r *replay) run(ctx context.Context) (time.Duration, error) {
	if ctx == nil {
		return 0, errors.New("sim: a nil context")
	}
	for rank := range r.members {
		r.ready = append(r.ready, rank)
	}
	for steps := 0; ; steps++ {
		if err := r.enter(); err != nil {
			return 0, fmt.Errorf("sim: %w", err)
		}
		if steps%1024 == 0 && ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		if !r.step() {
			break
		}
	}
	if r.err != nil {
		return 0, fmt.Errorf("sim: %w", r.err)
	}
	if r.done < len(r.members) {
		return 0, fmt.Errorf("sim: %d of %d ranks get to the end", r.done, len(r.members))
	}
	return duration(r.now), nil
}

// enter has the ranks that are done with a round enter the next. The messages that can go then go in the order of the
// senders, as Price has it: which cable of several a message takes hangs on that.
func (r *replay) enter() error {
	slices.Sort(r.ready)
	for i := 0; i < len(r.ready); i++ {
		rank := r.ready[i]
		at := int(r.at[rank])
		if at == len(r.rounds) {
			r.done++
			continue
		}
		on := r.rounds[at]
		if on == nil {
			s, err := r.shape(at)
			if err != nil {
				return err
			}
			on = &round{shape: s, met: make([]bool, len(s.messages))}
			r.rounds[at] = on
		}
		mine := on.list[on.first[rank]:on.first[rank+1]]
		r.open[rank] = int32(len(mine))
		for _, m := range mine {
			if on.met[m] {
				r.starts = append(r.starts, start{int32(at), m})
			}
			on.met[m] = true
		}
		if len(mine) == 0 {
			r.work(rank)
		}
	}
	r.ready = r.ready[:0]
	slices.SortFunc(r.starts, func(a, b start) int {
		if a.round != b.round {
			return int(a.round) - int(b.round)
		}
		return int(a.message) - int(b.message)
	})
	for _, s := range r.starts {
		m := r.rounds[s.round].messages[s.message]
		f := r.flow()
		f.message = s.message
		f.round = s.round
		if err := r.send(f, r.members[m.from], r.members[m.to], m.bytes, 0); err != nil {
			return err
		}
	}
	r.starts = r.starts[:0]
	return nil
}

// arrive notes that a message has arrived.
func (r *replay) arrive(f *flow) {
	m := r.rounds[f.round].messages[f.message]
	for _, rank := range [...]int32{m.from, m.to} {
		if r.open[rank]--; r.open[rank] == 0 {
			r.work(int(rank))
		}
	}
	r.recycle(f)
}

// work has the processor of a rank do its part of the round, after which the rank leaves it.
func (r *replay) work(rank int) {
	if seconds := r.rounds[r.at[rank]].shape.work[rank]; seconds > 0 {
		r.after(seconds, func() { r.leaveRound(rank) })
		return
	}
	r.leaveRound(rank)
}

func (r *replay) leaveRound(rank int) {
	on := r.rounds[r.at[rank]]
	if on.left++; on.left == len(r.members) {
		r.rounds[r.at[rank]] = nil
	}
	r.at[rank]++
	r.ready = append(r.ready, rank)
}
