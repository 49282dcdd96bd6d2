package schedule_test

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// ringAllReduce is the example of the Builder's comment.
func ringAllReduce(b *schedule.Builder, k int) {
	for t := range k - 1 {
		for rank := range k {
			b.Fold(t, rank, (rank+1)%k, (rank-t-1+k)%k, 1)
		}
	}
	for t := range k - 1 {
		for rank := range k {
			b.Copy(k-1+t, rank, (rank+1)%k, (rank-t+k)%k, 1)
		}
	}
}

// TestBuilderMakesTheRing: the three loops give the schedule of clockwise_ring, step for step, for all ranks and for
// one.
func TestBuilderMakesTheRing(t *testing.T) {
	for k := 2; k <= 9; k++ {
		ring := make([]int, k)
		for i := range ring {
			ring[i] = i
		}
		want, err := methods.Build(methods.Spec{Method: methods.ClockwiseRing, Collective: schedule.AllReduce, Size: k,
			Ring: ring})
		if err != nil {
			t.Fatal(err)
		}
		b := schedule.NewBuilder(schedule.AllReduce, k, 0, k)
		ringAllReduce(b, k)
		have, err := b.Build()
		if err != nil || have.String() != want.String() || !reflect.DeepEqual(have.Programs, want.Programs) {
			t.Errorf("%d ranks: %v\n%v\nwant\n%v", k, err, have, want)
		}
		for rank := range k {
			b := schedule.NewBuilder(schedule.AllReduce, k, 0, k).Only(rank)
			ringAllReduce(b, k)
			if have, err := b.Build(); err != nil || !reflect.DeepEqual(have.Programs[rank], want.Programs[rank]) {
				t.Errorf("%d ranks, rank %d alone: %v", k, rank, err)
			}
		}
	}
}

// exchange is an all-reduce of one chunk among 2^d ranks, in which each rank sends what it folds into.
func exchange(b *schedule.Builder, k int) {
	for t, d := 0, 1; d < k; t, d = t+1, 2*d {
		for rank := range k {
			b.Fold(t, rank, rank^d, 0, 1)
		}
	}
}

// TestBuilderSchedulesAreProved has patterns in which chunks are sent while they are written, lie apart, pass through
// ranks that do not keep them, or are folded several at once.
func TestBuilderSchedulesAreProved(t *testing.T) {
	for _, c := range []struct {
		name                string
		collective          schedule.Collective
		size, root, chunks_ int
		add                 func(b *schedule.Builder)
	}{
		{"partners", schedule.AllReduce, 8, 0, 1, func(b *schedule.Builder) { exchange(b, 8) }},
		{"all to one and back", schedule.AllReduce, 4, 0, 2, func(b *schedule.Builder) {
			for rank := 1; rank < 4; rank++ {
				b.Fold(0, rank, 0, 0, 2)
			}
			for rank := 1; rank < 4; rank++ {
				b.Copy(1, 0, rank, 0, 2)
			}
		}},
		{"all to one, two chunks, each from the last rank first",
			schedule.AllReduce, 4, 0, 2, func(b *schedule.Builder) {
				for rank := 3; rank > 0; rank-- {
					for f := range 2 {
						b.Fold(0, rank, 0, (f+rank)%2, 1)
					}
				}
				for rank := 1; rank < 4; rank++ {
					b.Copy(1, 0, rank, 0, 2)
				}
			}},
		{"gathered by pairs", schedule.AllGather, 4, 0, 4, func(b *schedule.Builder) {
			for rank := range 4 {
				b.Copy(0, rank, rank^1, rank, 1)
			}
			for rank := range 4 {
				b.Copy(1, rank, rank^2, rank&^1, 2) // the own chunk lies in the input, the other in the output
			}
		}},
		{"down a chain", schedule.Broadcast, 4, 1, 3, func(b *schedule.Builder) {
			for f := range 3 {
				b.Copy(f, 1, 2, f, 1)
				b.Copy(f+1, 2, 3, f, 1)
				b.Copy(f+2, 3, 0, f, 1)
			}
		}},
		{"owners by way of a neighbour", schedule.ReduceScatter, 3, 0, 3, func(b *schedule.Builder) {
			for t := range 2 {
				for rank := range 3 {
					b.Fold(t, rank, (rank+1)%3, (rank-t+2)%3, 1)
				}
			}
		}},
		{"owners by way of two neighbours", schedule.ReduceScatter, 4, 0, 4, func(b *schedule.Builder) {
			for t := range 3 {
				for rank := range 4 {
					b.Fold(t, rank, (rank+1)%4, (rank-t+3)%4, 1) // a slot's second chunk comes before its first
				}
			}
		}},
		{"alone", schedule.AllGather, 1, 0, 1, func(b *schedule.Builder) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := schedule.NewBuilder(c.collective, c.size, c.root, c.chunks_)
			c.add(b)
			s, err := b.Build()
			if err != nil {
				t.Fatal(err)
			}
			if err := schedule.Check(s); err != nil {
				t.Errorf("%v\n%v", err, s)
			}
		})
	}
}

// TestBuilderOfRandomTrees: broadcasts over random trees, and all-reduces that go up one random tree and down another,
// are what they say.
func TestBuilderOfRandomTrees(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		k, chunks := 2+r.IntN(9), 1+r.IntN(4)
		order := r.Perm(k)
		parent := func(i int) int { return order[r.IntN(i)] }
		b := schedule.NewBuilder(schedule.AllReduce, k, 0, chunks)
		round := 0
		for i := k - 1; i > 0; i-- {
			b.Fold(round, order[i], parent(i), 0, chunks)
			round += 1 - r.IntN(1+i%2) // some together
			if r.IntN(2) == 0 {
				round++
			} else if i > 1 {
				round++
			}
		}
		round++
		for i := 1; i < k; i++ {
			b.Copy(round, parent(i), order[i], 0, chunks)
			round++
		}
		s, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(s); err != nil {
			t.Fatalf("%v\n%v", err, s)
		}
	}
}

// TestBuilderOfRandomStrides: all-reduces up one random tree and down another, and reduces up one. Each edge carries
// the chunks in strided messages of its own, from any chunk on round the last.
func TestBuilderOfRandomStrides(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	strided := 0
	for range 300 {
		k, run, classes, times := 2+r.IntN(5), 1+r.IntN(3), 1+r.IntN(4), 1+r.IntN(3)
		chunks, order, round := run*classes*times, r.Perm(k), 0
		b := schedule.NewBuilder(schedule.AllReduce, k, 0, chunks)
		reduce := r.IntN(2) == 0 // to a root: the others have scratch memory alone
		if reduce {
			b = schedule.NewBuilder(schedule.Reduce, k, order[0], chunks)
		}
		// edge calls send for a partition of the chunks: into classes, or into neighbours.
		edge := func(send func(first, n, run, stride int)) {
			if r.IntN(3) == 0 {
				cut := 1 + r.IntN(chunks)
				send(0, cut, cut, 1)
				if cut < chunks {
					send(cut, chunks-cut, chunks, 1)
				}
				return
			}
			for _, class := range r.Perm(classes) {
				first := (class + r.IntN(times)*classes) * run
				send(first, run*times, run, run*classes)
			}
		}
		for i := k - 1; i > 0; i-- {
			to := order[r.IntN(i)]
			edge(func(first, n, run, stride int) { b.FoldStrided(round, order[i], to, first, n, run, stride) })
			round++
		}
		for i := 1; i < k && !reduce; i++ {
			from := order[r.IntN(i)]
			edge(func(first, n, run, stride int) { b.CopyStrided(round, from, order[i], first, n, run, stride) })
			round++
		}
		s, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(s); err != nil {
			t.Fatalf("%v\n%v", err, s)
		}
		if strings.Contains(s.String(), ":") {
			strided++
		}
	}
	if strided < 100 {
		t.Errorf("%d of 300 have strides, so that this says little", strided)
	}
}

// TestBuilderOfRandomExchanges: partners fold each other's chunks, each chunk in an order of partners of its own, and
// neighbouring chunks go in one message or in two. What a message takes together lies apart, and the same chunk may be
// part of two messages while its successor arrives.
func TestBuilderOfRandomExchanges(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		k, chunks := 4<<r.IntN(2), 2+r.IntN(5)
		distances := make([][]int, chunks) // by chunk and round, 0: it rests
		for f := range distances {
			for d := 1; d < k; d *= 2 {
				distances[f] = append(distances[f], d)
			}
			distances[f] = append(distances[f], 0)
			r.Shuffle(len(distances[f]), func(i, j int) { d := distances[f]; d[i], d[j] = d[j], d[i] })
		}
		b := schedule.NewBuilder(schedule.AllReduce, k, 0, chunks)
		for _, t := range r.Perm(len(distances[0])) {
			for _, rank := range r.Perm(k) {
				for f, n := 0, 0; f < chunks; f += n {
					d := distances[f][t]
					for n = 1; f+n < chunks && distances[f+n][t] == d && r.IntN(3) > 0; n++ {
					}
					if d > 0 {
						b.Fold(t, rank, rank^d, f, n)
					}
				}
			}
		}
		s, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(s); err != nil {
			t.Fatalf("%v\n%v", err, s)
		}
	}
}

func TestBuilderErrors(t *testing.T) {
	begin := func() *schedule.Builder { return schedule.NewBuilder(schedule.AllReduce, 3, 0, 3) }
	gather := func() *schedule.Builder { return schedule.NewBuilder(schedule.AllGather, 3, 0, 3) }
	with := func(b *schedule.Builder, add func(b *schedule.Builder)) *schedule.Builder {
		add(b)
		return b
	}
	for _, c := range []struct {
		want string
		b    *schedule.Builder
	}{
		{"a Builder that NewBuilder has not made", nil},
		{"a Builder that NewBuilder has not made", &schedule.Builder{}},
		{"schedule: round 1048576 of a message from rank 0 to rank 1, want 0 to 1048575", with(begin(), func(b *schedule.Builder) { b.Copy(1<<20, 0, 1, 0, 1) })},
		{"schedule: size 0, want 1", schedule.NewBuilder(schedule.AllReduce, 0, 0, 1)},
		{"schedule: unknown collective 99", schedule.NewBuilder(99, 2, 0, 1)},
		{"schedule: root 1 of all-reduce over 2 ranks", schedule.NewBuilder(schedule.AllReduce, 2, 1, 1)},
		{"schedule: 3 chunks of all-gather are not a multiple of 2 ranks", schedule.NewBuilder(schedule.AllGather, 2, 0, 3)},
		{"a builder does not take all-to-all", schedule.NewBuilder(schedule.AllToAll, 2, 0, 2)},
		{"schedule: rank 3 of 3", begin().Only(3)},
		{"schedule: round -1 of a message from rank 0 to rank 1, want 0 to 1048575", with(begin(), func(b *schedule.Builder) { b.Copy(-1, 0, 1, 0, 1) })},
		{"round 0: a message from rank 0 to rank 3 of 3", with(begin(), func(b *schedule.Builder) { b.Copy(0, 0, 3, 0, 1) })},
		{"round 0: a message from rank 1 to rank 1 of 3", with(begin(), func(b *schedule.Builder) { b.Fold(0, 1, 1, 0, 1) })},
		{"round 0: from rank 0 to rank 1: 2 chunks from chunk 2 on of 3", with(begin(), func(b *schedule.Builder) { b.Copy(0, 0, 1, 2, 2) })},
		{"from rank 0 to rank 1: 0 chunks", with(begin(), func(b *schedule.Builder) { b.Copy(0, 0, 1, 2, 0) })},
		{"round 0: a fold in all-gather, which combines nothing", with(gather(), func(b *schedule.Builder) { b.Fold(0, 0, 1, 0, 1) })},
		{"round 0: rank 0 does not hold chunk 1 when the round begins", with(gather(), func(b *schedule.Builder) { b.Copy(0, 0, 1, 1, 1) })},
		{"round 0: chunks 1 to 2 come to rank 2, and another message of the round goes into some of them",
			with(begin(), func(b *schedule.Builder) {
				b.Fold(0, 1, 2, 1, 2)
				b.Fold(0, 0, 2, 1, 1)
			})},
		{"round 0: chunks 0 to 0 come to rank 1, and another message of the round goes into some of them",
			with(begin(), func(b *schedule.Builder) {
				b.Fold(0, 0, 1, 0, 1)
				b.Copy(0, 2, 1, 0, 1)
			})},
		{"round 0: rank 1 does not hold chunk 0 when the round begins", with(gather(), func(b *schedule.Builder) {
			b.Copy(0, 0, 1, 0, 1)
			b.Copy(0, 1, 2, 0, 1)
		})},
		{"schedule: round 2: from rank 0 to rank 1: runs of 1 chunks, each 3 after the one before: want at least 1, and strides of less than the 3",
			with(begin(), func(b *schedule.Builder) { b.CopyStrided(2, 0, 1, 0, 2, 1, 3) })},
		{"schedule: round 2: from rank 0 to rank 1: runs of 0 chunks", with(begin(), func(b *schedule.Builder) { b.FoldStrided(2, 0, 1, 0, 2, 0, 1) })},
		{"schedule: round 0: from rank 0 to rank 1: it has a chunk twice", with(begin(), func(b *schedule.Builder) {
			b.FoldStrided(0, 0, 1, 0, 3, 2, 1)
		})},
		{"from rank 0 to rank 1: 4 chunks from chunk 0 on of 3", with(begin(), func(b *schedule.Builder) {
			b.FoldStrided(0, 0, 1, 0, 4, 1, 1)
		})},
		{"round 0: chunks 2:1x2 come to rank 1, and another message of the round goes into some of them", with(begin(),
			func(b *schedule.Builder) {
				b.Fold(0, 2, 1, 0, 1)
				b.FoldStrided(0, 0, 1, 2, 2, 1, 1)
			})},
		{"round 0: rank 0 does not hold chunk 2 when the round begins", with(gather(), func(b *schedule.Builder) {
			b.CopyStrided(0, 0, 1, 0, 2, 1, 2)
		})},
		{"a Builder that NewBuilder has not made", with(nil, func(b *schedule.Builder) {
			b.CopyStrided(0, 0, 1, 0, 2, 1, 2)
		})},
		{"schedule: size 65537, want 1 to 65536", schedule.NewBuilder(schedule.AllReduce, 1<<16+1, 0, 1)},
		{"schedule: root -1 of broadcast over 2 ranks", schedule.NewBuilder(schedule.Broadcast, 2, -1, 1)},
		{"schedule: rank -1 of 3", begin().Only(-1)},
		{"a Builder that NewBuilder has not made", (*schedule.Builder)(nil).Only(0)},
		{"a Builder that NewBuilder has not made", with(nil, func(b *schedule.Builder) { b.Copy(0, 0, 1, 0, 1) })},
		{"a Builder that NewBuilder has not made", with(&schedule.Builder{}, func(b *schedule.Builder) { b.Fold(0, 0, 1, 0, 1) })},
		{"round 0: chunks 0 to 1 come to rank 1, and another message of the round goes into some of them; want the " +
			"same chunks in both",
			with(begin(), func(b *schedule.Builder) {
				b.Fold(0, 0, 1, 0, 1)
				b.Fold(0, 2, 1, 0, 2)
			})},
		{"from rank 0 to rank 1: 1 chunks from chunk -1 on of 3", with(begin(), func(b *schedule.Builder) { b.Copy(0, 0, 1, -1, 1) })},
		{"round 7: rank 0 does not hold chunk 1 when the round begins", with(gather(), func(b *schedule.Builder) {
			b.Copy(7, 0, 1, 1, 1) // the first error counts
			b.Copy(9, 0, 1, 2, 1)
		})},
		{"schedule: Only(1) after a message, want it before the first", with(begin(), func(b *schedule.Builder) {
			b.Copy(0, 0, 1, 0, 1)
			b.Only(1)
		})},
		{"schedule: 0 ports, want 1 or more", begin().Ports(0)},
		{"schedule: -1 ports, want 1 or more", begin().Ports(-1)},
		{"schedule: Ports(2) after a message, want it before the first", with(begin(), func(b *schedule.Builder) {
			b.Copy(0, 0, 1, 0, 1)
			b.Ports(2)
		})},
		{"schedule: Ports(2) after a message", with(begin().Only(2), func(b *schedule.Builder) {
			b.Copy(0, 0, 1, 0, 1) // of which rank 2 has nothing
			b.Ports(2)
		})},
		{"schedule: rank 3 of 3", begin().Only(3).Ports(0)}, // the first error counts
		{"schedule: round 1048576 of a message that may go in round 1048575, want at most round 1048575",
			with(begin().Ports(1), func(b *schedule.Builder) {
				b.Copy(1<<20-1, 0, 1, 0, 1)
				b.Copy(1<<20-1, 0, 2, 1, 1)
			})},
		{"round 0: rank 0 does not hold chunk 1 when the round begins", with(gather().Ports(1), func(b *schedule.Builder) {
			b.Copy(0, 0, 1, 1, 1)
		})},
		{"a Builder that NewBuilder has not made", (*schedule.Builder)(nil).Ports(1)},
		{"a Builder that NewBuilder has not made", with((&schedule.Builder{}).Ports(1), func(b *schedule.Builder) { b.Copy(0, 0, 1, 0, 1) })},
	} {
		_, err := c.b.Build()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one with %q", err, c.want)
		}
	}
	if _, err := schedule.NewBuilder(schedule.AllToAll, 2, 0, 2).Build(); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v is not errors.ErrUnsupported", err)
	}
}

// TestBuilderCopiesWhatIsLentNoMore: rank 0 puts chunks side by side when round 1 ends, and rounds 1 and 2 send one of
// them from the Input. Its copy into the Output waits for round 3.
func TestBuilderCopiesWhatIsLentNoMore(t *testing.T) {
	b := schedule.NewBuilder(schedule.AllGather, 4, 0, 4)
	for to := 2; to < 4; to++ { // each tells the other, and 0 and 1
		b.Copy(0, to, to^1, to, 1)
		b.Copy(1, to, 0, to, 1)
		b.Copy(1, to, 1, to, 1)
	}
	b.Copy(0, 1, 0, 1, 1) // 0 holds I0 and O1
	b.Copy(1, 0, 1, 0, 1) // round 1 sends I0
	b.Copy(2, 0, 2, 0, 1) // round 2 sends I0 again
	b.Copy(2, 0, 3, 0, 2) // and 0 and 1 in one message
	b.Copy(3, 0, 2, 1, 1)
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		t.Fatalf("%v\n%v", err, s)
	}
}

// TestBuilderJoinsInTheOutput: a rank's own chunk joins what has arrived beside it in the Output, if they are to go on
// together, and not in Scratch.
func TestBuilderJoinsInTheOutput(t *testing.T) {
	b := schedule.NewBuilder(schedule.AllGather, 4, 0, 4)
	for rank := range 4 {
		b.Copy(0, rank, rank^1, rank, 1)
		b.Copy(1, rank, rank^2, rank&2, 2)
	}
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := schedule.Check(s); err != nil {
		t.Error(err)
	}
	want := `all-gather, 4 ranks, 4 chunks, 2 rounds
round | rank 0 | rank 1 | rank 2 | rank 3
------+--------+--------+--------+-------
    0 | I0>1   | I1>0   | I2>3   | I3>2
      | O1<1   | O0<0   | O3<3   | O2<2
      | then   | then   | then   | then
      | O0=I0  | O1=I1  | O2=I2  | O3=I3
    1 | O0-1>2 | O0-1>3 | O2-3>0 | O2-3>1
      | O2-3<2 | O2-3<3 | O0-1<0 | O0-1<1
`
	if have := s.String(); have != want {
		t.Errorf("%s\nwant\n%s", have, want)
	}
}
