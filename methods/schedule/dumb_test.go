package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// dumb carries out a schedule on numbers, as badly as a transport may: whatever is in flight moves one element at a
// time, in any order; a send takes what is in its buffer at that moment, and ends with its receive; replicas are in
// different rounds. Only the links of a fold keep their order. It shares nothing with the checker but the types.
type dumb struct {
	*schedule.Schedule
	random   *rand.Rand
	bounds   []int // of the chunks, in elements
	replicas []dumbReplica
}

type dumbReplica struct {
	input, output []int64 // indexed as the larger buffer is, where they are smaller
	slots         map[int][]int64
	round         int
	moved         []int // how many elements of each move of the round are done
}

// try runs s for n elements in the larger buffer and returns what is wrong with the result. Ranks go by messages, each
// for itself, or round by round together.
func try(s *schedule.Schedule, n int, inPlace, together bool, random *rand.Rand) error {
	d := &dumb{Schedule: s, random: random, bounds: make([]int, s.Chunks+1)}
	if s.Custom != nil {
		return d.tryCustom(n, inPlace, together)
	}
	for f := range s.Chunks {
		switch s.Collective {
		case schedule.ReduceScatter, schedule.AllGather, schedule.Gather, schedule.Scatter:
			_, d.bounds[f+1] = chunks.SplitPadded(n, s.Size, s.Chunks, f)
		default:
			_, d.bounds[f+1] = chunks.Split(n, s.Chunks, f)
		}
	}
	inputs := make([][]int64, s.Size)
	for rank := range s.Size {
		inputs[rank] = make([]int64, n)
		for i := range inputs[rank] {
			inputs[rank][i] = random.Int64()
		}
		lo, hi := d.has(rank)
		r := dumbReplica{input: make([]int64, n), slots: map[int][]int64{}}
		copy(r.input[lo:hi], inputs[rank][lo:hi])
		r.output = r.input
		if !inPlace {
			r.output = make([]int64, n)
		}
		d.replicas = append(d.replicas, r)
	}
	if err := d.run(together); err != nil {
		return err
	}
	for rank := range s.Size {
		for i := range n {
			want, ok := d.want(inputs, rank, i)
			if got := d.replicas[rank].output[i]; ok && got != want {
				return fmt.Errorf("rank %d has %d as element %d of %d, want %d", rank, got, i, n, want)
			}
		}
	}
	return nil
}

// run carries out the programs.
func (d *dumb) run(together bool) error {
	if together {
		d.together()
	} else {
		d.apart()
	}
	for rank, r := range d.replicas {
		if r.round < len(d.Programs[rank]) {
			return fmt.Errorf("rank %d is stuck in round %d", rank, r.round)
		}
	}
	return nil
}

// tryCustom is try for a contract of a program's own, with n elements in a chunk of size 1. Buffers have nothing but
// what the contract lists.
func (d *dumb) tryCustom(n int, inPlace, together bool) error {
	own := d.Custom
	for f := range d.Chunks {
		d.bounds[f+1] = d.bounds[f] + n*own.Size(f)
	}
	inputs := make([][]int64, d.Size) // all chunks, also those that a rank does not have
	for rank := range d.Size {
		for range d.bounds[d.Chunks] {
			inputs[rank] = append(inputs[rank], d.random.Int64())
		}
		r := dumbReplica{slots: map[int][]int64{}}
		for _, f := range own.Inputs[rank] {
			r.input = append(r.input, inputs[rank][d.bounds[f]:d.bounds[f+1]]...)
		}
		if r.output = r.input; !inPlace || len(own.Inputs[rank]) == 0 {
			r.output = make([]int64, d.start(own.Outputs[rank], d.Chunks))
		}
		d.replicas = append(d.replicas, r)
	}
	if err := d.run(together); err != nil {
		return err
	}
	for rank, list := range own.Outputs {
		at := 0
		for place, f := range list {
			for i := d.bounds[f]; i < d.bounds[f+1]; i++ {
				want := int64(0)
				for _, r := range own.Contributors(rank, place) {
					want += inputs[r][i]
				}
				if got := d.replicas[rank].output[at]; got != want {
					return fmt.Errorf("rank %d has %d in chunk %d, want %d", rank, got, f, want)
				}
				at++
			}
		}
	}
	return nil
}

// start is where a chunk lies in a buffer that holds the chunks of a list; of one that it does not hold, the end.
func (d *dumb) start(list []int, chunk int) int {
	at := 0
	for _, f := range list {
		if f == chunk {
			break
		}
		at += d.bounds[f+1] - d.bounds[f]
	}
	return at
}

// has is the part of the larger buffer that a rank has input for.
func (d *dumb) has(rank int) (lo, hi int) {
	per := d.Chunks / d.Size
	switch {
	case d.Collective == schedule.AllGather || d.Collective == schedule.Gather:
		return d.bounds[rank*per], d.bounds[(rank+1)*per]
	case (d.Collective == schedule.Broadcast || d.Collective == schedule.Scatter) && rank != d.Root:
		return 0, 0
	}
	return 0, d.bounds[d.Chunks]
}

// want is element i of a rank's output, if it has one.
func (d *dumb) want(inputs [][]int64, rank, i int) (v int64, ok bool) {
	n, per := len(inputs[0]), d.Chunks/d.Size
	switch d.Collective {
	case schedule.AllReduce, schedule.ReduceScatter, schedule.Reduce:
		for _, in := range inputs {
			v += in[i]
		}
		if d.Collective == schedule.Reduce {
			return v, rank == d.Root
		}
		return v, d.Collective == schedule.AllReduce || d.bounds[rank*per] <= i && i < d.bounds[(rank+1)*per]
	case schedule.AllGather, schedule.Gather:
		from := 0
		for d.bounds[(from+1)*per] <= i {
			from++
		}
		return inputs[from][i], d.Collective == schedule.AllGather || rank == d.Root
	case schedule.AllToAll:
		block := n / d.Size
		return inputs[i/block][rank*block+i%block], true
	case schedule.Scatter:
		return inputs[d.Root][i], d.bounds[rank*per] <= i && i < d.bounds[(rank+1)*per]
	case schedule.Broadcast:
		return inputs[d.Root][i], true
	default:
		panic(fmt.Sprintf("no row for %v", d.Collective))
	}
}

// apart carries out the schedule by messages.
func (d *dumb) apart() {
	for rank := range d.replicas {
		d.enter(rank)
	}
	for d.step() {
	}
}

// together carries out the schedule as replicas do that read each other's memory: a receiver takes an element from
// where it lies at the sender, at any time of the round, whether the sender has gone on to its local steps or not. A
// barrier ends the round. After the last one come its local steps.
func (d *dumb) together() {
	rounds := 0
	for _, p := range d.Programs {
		rounds = max(rounds, len(p))
	}
	for t := range rounds {
		var left []int // ranks that have something to do
		for rank, p := range d.Programs {
			if t < len(p) {
				d.replicas[rank].round, d.replicas[rank].moved = t, make([]int, len(p[t].Moves))
				left = append(left, rank)
			}
		}
		for len(left) > 0 {
			k := d.random.IntN(len(left))
			rank := left[k]
			open := d.receives(rank)
			if len(open) > 0 {
				d.carryOut(open[d.random.IntN(len(open))])
				continue
			}
			left = append(left[:k], left[k+1:]...)
			if t < rounds-1 {
				d.then(rank)
			}
		}
	}
	for rank, p := range d.Programs {
		if len(p) == rounds && rounds > 0 {
			d.then(rank)
		}
		d.replicas[rank].round = len(p)
	}
}

// then carries out the local steps of a rank's round.
func (d *dumb) then(rank int) {
	for _, st := range d.Programs[rank][d.replicas[rank].round].Then {
		for i := range d.length(st.Dst) {
			d.local(rank, st, i)
		}
	}
}

// enter begins the round of a rank, passing those that have no moves.
func (d *dumb) enter(rank int) {
	r, p := &d.replicas[rank], d.Programs[rank]
	for ; r.round < len(p); r.round++ {
		r.moved = make([]int, len(p[r.round].Moves))
		if !d.done(rank) {
			return
		}
		d.then(rank)
	}
}

// done says whether all moves of a rank's round are.
func (d *dumb) done(rank int) bool {
	r := &d.replicas[rank]
	for i, st := range d.Programs[rank][r.round].Moves {
		if r.moved[i] < d.length(span(st)) {
			return false
		}
	}
	return true
}

// span is the one by which a step's length is known.
func span(st schedule.Step) schedule.Span {
	if st.Verb == schedule.Send {
		return st.Src
	}
	return st.Dst
}

func (d *dumb) length(sp schedule.Span) int {
	if sp.Stride == 0 {
		return d.bounds[sp.First+sp.Count] - d.bounds[sp.First]
	}
	n := 0
	for i := range sp.Count {
		f := d.chunk(sp, i)
		n += d.bounds[f+1] - d.bounds[f]
	}
	return n
}

// chunk is the number of chunk i of a span.
func (d *dumb) chunk(sp schedule.Span, i int) int {
	if sp.Stride == 0 {
		return sp.First + i
	}
	f, run := sp.First, 0
	for range i {
		if run++; run == sp.Run {
			f, run = f-sp.Run+1+sp.Stride, 0
		} else {
			f++
		}
		f = (f + d.Chunks) % d.Chunks
	}
	return f
}

// choice is a move of which an element may go: a receive, and where it comes from, or a local step.
type choice struct{ rank, move, from, send int }

// receives lists what may move at a rank.
func (d *dumb) receives(rank int) (open []choice) {
	r := &d.replicas[rank]
	if r.round >= len(d.Programs[rank]) {
		return nil
	}
	moves := d.Programs[rank][r.round].Moves
	received := map[int]int{}
	for i, st := range moves {
		if st.Verb == schedule.Send {
			continue
		}
		c := choice{rank: rank, move: i, from: -1}
		talks := st.Verb != schedule.Fold
		if talks {
			c.from, c.send = st.Peer, d.sendOf(st.Peer, rank, r.round, received[st.Peer])
			received[st.Peer]++
		}
		behind := i > 0 && (st.Verb == schedule.Fold || st.Src == st.Dst) && moves[i-1].Verb != schedule.Send &&
			moves[i-1].Dst == st.Dst
		if r.moved[i] == d.length(st.Dst) || talks && c.send < 0 || behind && r.moved[i-1] <= r.moved[i] {
			continue
		}
		open = append(open, c)
	}
	return open
}

// carryOut moves one element.
func (d *dumb) carryOut(c choice) {
	r := &d.replicas[c.rank]
	st, i := d.Programs[c.rank][r.round].Moves[c.move], r.moved[c.move]
	r.moved[c.move]++
	if c.from < 0 {
		d.local(c.rank, st, i)
		return
	}
	from := &d.replicas[c.from]
	v := *d.at(c.from, d.Programs[c.from][from.round].Moves[c.send].Src, i)
	from.moved[c.send]++
	if st.Verb == schedule.RecvReduce {
		v += *d.at(c.rank, st.Src, i)
	}
	*d.at(c.rank, st.Dst, i) = v
}

// step moves one element of anything that may move, and says whether there was something.
func (d *dumb) step() bool {
	var open []choice
	for rank := range d.replicas {
		open = append(open, d.receives(rank)...)
	}
	if len(open) == 0 {
		return false
	}
	c := open[d.random.IntN(len(open))]
	d.carryOut(c)
	for _, rank := range []int{c.rank, c.from} {
		if rank >= 0 && d.done(rank) {
			d.then(rank)
			d.replicas[rank].round++
			d.enter(rank)
		}
	}
	return true
}

// sendOf finds the k-th send from one rank to another, if the sender is in that round; else -1.
func (d *dumb) sendOf(from, to, round, k int) int {
	if r := &d.replicas[from]; r.round != round || round >= len(d.Programs[from]) {
		return -1
	}
	for i, st := range d.Programs[from][round].Moves {
		if st.Verb == schedule.Send && st.Peer == to {
			if k == 0 {
				return i
			}
			k--
		}
	}
	return -1
}

// local carries out one element of a Copy or a Fold.
func (d *dumb) local(rank int, st schedule.Step, i int) {
	v := *d.at(rank, st.Src, i)
	if st.Verb == schedule.Fold {
		v += *d.at(rank, st.Dst, i)
	}
	*d.at(rank, st.Dst, i) = v
}

// at finds element i of a span.
func (d *dumb) at(rank int, sp schedule.Span, i int) *int64 {
	r := &d.replicas[rank]
	f := sp.First
	for k := 0; sp.Stride != 0; k++ {
		f = d.chunk(sp, k)
		if n := d.bounds[f+1] - d.bounds[f]; i >= n {
			i -= n
			continue
		}
		break
	}
	switch sp.Buf {
	case schedule.Input:
		if d.Custom != nil {
			return &r.input[d.start(d.Custom.Inputs[rank], f)+i]
		}
		return &r.input[d.bounds[f]+i]
	case schedule.Output:
		if d.Custom != nil {
			return &r.output[d.start(d.Custom.Outputs[rank], f)+i]
		}
		return &r.output[d.bounds[f]+i]
	}
	if r.slots[sp.Slot] == nil {
		r.slots[sp.Slot] = make([]int64, d.bounds[d.Chunks])
	}
	return &r.slots[sp.Slot][d.bounds[f]-d.bounds[sp.Base]+i]
}

// clone copies a schedule down to its steps.
func clone(s *schedule.Schedule) *schedule.Schedule {
	out := *s
	out.Programs = make([]schedule.Program, len(s.Programs))
	for rank, p := range s.Programs {
		for _, r := range p {
			out.Programs[rank] = append(out.Programs[rank], schedule.Round{
				Moves: append([]schedule.Step(nil), r.Moves...), Then: append([]schedule.Step(nil), r.Then...)})
		}
	}
	return &out
}

// edit changes one thing about s, which may leave it right.
func edit(s *schedule.Schedule, random *rand.Rand) {
	rank := random.IntN(s.Size)
	p := &s.Programs[rank]
	if len(*p) == 0 {
		return
	}
	t := random.IntN(len(*p))
	r := &(*p)[t]
	list := &r.Moves
	if len(r.Moves) == 0 || len(r.Then) > 0 && random.IntN(3) == 0 {
		list = &r.Then
	}
	if len(*list) == 0 {
		return
	}
	i, j := random.IntN(len(*list)), random.IntN(len(*list))
	st := &(*list)[i]
	switch random.IntN(13) {
	case 0, 1, 2:
		(*list)[i], (*list)[j] = (*list)[j], (*list)[i]
	case 3: // earlier or later
		moved := *st
		*list = append((*list)[:i:i], (*list)[i+1:]...)
		u := random.IntN(len(*p))
		if list == &r.Moves {
			(*p)[u].Moves = append((*p)[u].Moves, moved)
		} else {
			(*p)[u].Then = append((*p)[u].Then, moved)
		}
	case 4:
		*list = append((*list)[:i:i], (*list)[i+1:]...)
	case 5: // an empty round more at one rank, or at all
		at := random.IntN(len(*p) + 1)
		for other := range s.Programs {
			if q := s.Programs[other]; other == rank || at <= len(q) && random.IntN(4) > 0 {
				s.Programs[other] = append(q[:at:at], append(schedule.Program{{}}, q[at:]...)...)
			}
		}
	case 6: // two rounds in one, at all
		for other, q := range s.Programs {
			if t+1 < len(q) {
				q[t].Moves = append(q[t].Moves, q[t+1].Moves...)
				q[t].Then = append(q[t].Then, q[t+1].Then...)
				s.Programs[other] = append(q[:t+1:t+1], q[t+2:]...)
			}
		}
	case 7: // other memory
		for _, sp := range []*schedule.Span{&st.Src, &st.Dst} {
			if sp.Count > 0 && random.IntN(2) == 0 {
				sp.Buf, sp.Slot, sp.Base = schedule.Buffer(random.IntN(3)), 0, 0
				if sp.Buf == schedule.Scratch {
					sp.Slot, sp.Base = random.IntN(3), random.IntN(sp.First+1)
				}
			}
		}
	case 8: // a fold that starts at the other operand, or in another way
		switch st.Verb {
		case schedule.RecvReduce:
			st.Src = st.Dst
		case schedule.Recv:
			st.Verb, st.Src = schedule.RecvReduce, schedule.In(st.Dst.First, st.Dst.Count)
		case schedule.Copy:
			st.Verb = schedule.Fold
		case schedule.Fold:
			st.Verb = schedule.Copy
		}
	case 9: // a copy more
		f := random.IntN(s.Chunks)
		r.Then = append(r.Then, schedule.Step{Verb: schedule.Copy, Peer: -1, Src: schedule.In(f, 1),
			Dst: schedule.Tmp(random.IntN(3), f, 1)})
	case 10: // a local step from then to the moves, or back
		if st.Verb == schedule.Fold {
			moved := *st
			*list = append((*list)[:i:i], (*list)[i+1:]...)
			if list == &r.Moves {
				r.Then = append(r.Then, moved)
			} else {
				r.Moves = append(r.Moves, moved)
			}
		}
	case 12: // a stride, or another
		for _, sp := range []*schedule.Span{&st.Src, &st.Dst} {
			if sp.Count > 1 && random.IntN(4) > 0 {
				sp.Run, sp.Stride = 1+random.IntN(sp.Count), random.IntN(s.Chunks)
				if sp.Stride == 0 {
					sp.Run = 0
				}
			}
		}
	case 11: // a longer or shorter message
		for _, sp := range []*schedule.Span{&st.Src, &st.Dst} {
			if sp.Count > 0 {
				sp.Count += random.IntN(3) - 1
			}
		}
	}
}

// TestWhatIsAcceptedWorks edits correct schedules at random, a few edits at a time, and carries out those that Check
// accepts, which must give the right result whatever the order in which elements move.
func TestWhatIsAcceptedWorks(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	var bases []*schedule.Schedule
	for k := 2; k <= 4; k++ {
		ring := random.Perm(k)
		for _, m := range thinned.Constants() {
			for _, c := range schedule.Collectives() {
				for _, rankOrder := range []bool{false, true} {
					for _, inPlace := range []bool{false, true} {
						s, err := methods.Build(methods.Spec{Method: m, Collective: c, Size: k, Ring: ring,
							Second: ring, Pieces: 2, RankOrder: rankOrder, InPlace: inPlace})
						if err != nil {
							t.Fatal(err)
						}
						bases = append(bases, s)
					}
				}
			}
		}
	}
	for k := 2; k <= 6; k++ { // whose messages have chunks that lie apart
		for _, g := range []methods.Generator{methods.Bruck(), methods.PAT(0), methods.PAT(2)} {
			for _, c := range []schedule.Collective{schedule.AllGather, schedule.AllToAll, schedule.ReduceScatter} {
				if s, err := g.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: k}}); err == nil {
					bases = append(bases, s)
				} else if !errors.Is(err, errors.ErrUnsupported) {
					t.Fatal(err)
				}
			}
		}
	}
	for range 20 { // about one base in ten
		for name, s := range schedule.Customs() {
			if name != "again" { // numbers are added
				bases = append(bases, s)
			}
		}
	}
	for _, s := range bases {
		if err := schedule.Check(s); err != nil {
			t.Fatalf("refused: %v\n%v", err, s)
		}
		works(t, s, random)
	}
	// Parts of the cases run side by side, each with numbers of its own.
	const parts = 16
	var accepted [parts]int
	t.Run("edited", func(t *testing.T) {
		for part := range parts {
			t.Run(fmt.Sprintf("part=%d", part), func(t *testing.T) {
				t.Parallel()
				accepted[part] = editedWork(t, bases, editedCases()/parts, rand.New(rand.NewPCG(1, uint64(3+part))))
			})
		}
	})
	total := 0
	for _, n := range accepted {
		total += n
	}
	t.Logf("%d of %d edited schedules accepted", total, editedCases())
	if total < editedCases()/100 {
		t.Errorf("only %d edited schedules are accepted, so that this says little", total)
	}
}

// editedWork edits one of the bases after the other at random, carries out what Check accepts, and returns the number
// of those.
func editedWork(t *testing.T, bases []*schedule.Schedule, cases int, random *rand.Rand) (accepted int) {
	for range cases {
		s := clone(bases[random.IntN(len(bases))])
		for range 1 + random.IntN(3) {
			edit(s, random)
		}
		if !agree(t, s) {
			continue
		}
		accepted++
		works(t, s, random)
	}
	return accepted
}

// works carries out a schedule that Check accepts, for several lengths.
func works(t *testing.T, s *schedule.Schedule, random *rand.Rand) {
	lengths := []int{0, 1, s.Size + 1, 3*s.Chunks + 2}
	switch s.Collective {
	case schedule.AllToAll, schedule.AllGather, schedule.Gather, schedule.Scatter:
		// the blocks of all ranks are of one length
		lengths = []int{0, s.Size, 7 * s.Size}
	case schedule.Custom:
		lengths = []int{0, 1, 3}
	}
	for _, n := range lengths {
		for _, inPlace := range []bool{false, true} {
			if inPlace && s.NeedsApart() {
				continue
			}
			for _, together := range []bool{false, true} {
				if err := try(s, n, inPlace, together, random); err != nil {
					t.Fatalf("Check accepts, but with Output being Input %v, together %v: %v\n%v",
						inPlace, together, err, s)
				}
			}
		}
	}
}

// TestOverwritingGoesWrong shows what the rule is for that local steps overwrite nothing that their round sends: a
// schedule that breaks it, and is right by messages, goes wrong where ranks read each other's memory.
func TestOverwritingGoesWrong(t *testing.T) {
	t.Parallel()
	send := func(src schedule.Span, to int) schedule.Step {
		return schedule.Step{Verb: schedule.Send, Peer: to, Src: src}
	}
	recv := func(dst schedule.Span, from int) schedule.Step {
		return schedule.Step{Verb: schedule.Recv, Peer: from, Dst: dst}
	}
	move := func(dst, src schedule.Span) schedule.Step {
		return schedule.Step{Verb: schedule.Copy, Peer: -1, Src: src, Dst: dst}
	}
	in, out, slot := schedule.In, schedule.Out, schedule.Tmp(0, 0, 1)
	s := &schedule.Schedule{Collective: schedule.Broadcast, Size: 2, Chunks: 1, Programs: []schedule.Program{
		{
			{Then: []schedule.Step{move(slot, in(0, 1))}},
			{Moves: []schedule.Step{send(slot, 1)}, Then: []schedule.Step{move(slot, out(0, 1))}},
			{Then: []schedule.Step{move(out(0, 1), in(0, 1))}},
		},
		{{}, {Moves: []schedule.Step{recv(out(0, 1), 0)}}, {}},
	}}
	if err := schedule.Check(s); err == nil {
		t.Error("Check accepts it")
	}
	random, wrong := rand.New(rand.NewPCG(5, 6)), 0
	for range 100 {
		if err := try(s, 5, false, false, random); err != nil {
			t.Fatalf("by messages: %v", err)
		}
		if try(s, 5, false, true, random) != nil {
			wrong++
		}
	}
	if wrong == 0 {
		t.Error("it never goes wrong where ranks read each other's memory")
	}
}

// TestDumbFindsFaults shows that the dumb executor is no rubber stamp: of the edited schedules that Check refuses it
// finds many wrong by itself.
func TestDumbFindsFaults(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	base, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 3})
	if err != nil {
		t.Fatal(err)
	}
	refused, wrong := 0, 0
	for range 2000 {
		s := clone(base)
		s.Programs[random.IntN(3)][random.IntN(2)].Moves[random.IntN(4)].Peer = random.IntN(3)
		if schedule.Check(s) == nil {
			continue
		}
		refused++
		if try(s, 11, false, false, random) != nil {
			wrong++
		}
	}
	if refused == 0 || wrong < refused*9/10 {
		t.Errorf("Check refuses %d, and %d of them give a wrong result or none", refused, wrong)
	}
}
