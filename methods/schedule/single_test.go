package schedule_test

import (
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// TestFaultsOfLargeSchedules: a schedule of more than 65,536 chunks of ranks is carried out with sets for one chunk
// only, and the error is that of sets for all chunks.
func TestFaultsOfLargeSchedules(t *testing.T) {
	t.Parallel()
	const n, chunks, wrong = 66, 1000, 700
	pieces := [][2]int{{0, wrong}, {wrong, 1}, {wrong + 1, chunks - wrong - 1}}
	star := func(c schedule.Collective) *schedule.Schedule { // rank n-1 sends it back
		b := schedule.NewBuilder(c, n, 0, chunks)
		for rank := 1; rank < n; rank++ {
			for _, p := range pieces {
				if c == schedule.AllReduce {
					b.Fold(rank-1, rank-1, rank, p[0], p[1])
					b.Copy(n-1, n-1, rank-1, p[0], p[1])
				} else {
					b.Copy(rank-1, rank-1, rank, p[0], p[1])
				}
			}
		}
		s, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, spoil := range map[string]func(*schedule.Schedule){
		"a contribution less": func(s *schedule.Schedule) {
			s.Programs[5][4].Moves[1] = schedule.Step{Verb: schedule.Recv, Peer: 4, Dst: schedule.Out(wrong, 1)}
		},
		"a contribution twice": func(s *schedule.Schedule) {
			s.Programs[5][n-1].Moves[1] = schedule.Step{Verb: schedule.RecvReduce, Peer: n - 1,
				Src: schedule.In(wrong, 1), Dst: schedule.Out(wrong, 1)}
		},
		"a contribution twice and another less": func(s *schedule.Schedule) {
			s.Programs[5][4].Moves[1] = schedule.Step{Verb: schedule.Recv, Peer: 4, Dst: schedule.Out(wrong, 1)}
			s.Programs[5][4].Then = append(s.Programs[5][4].Then, schedule.Step{Verb: schedule.Fold, Peer: -1,
				Src: schedule.Out(wrong, 1), Dst: schedule.Out(wrong, 1)})
		},
		"nothing sends": func(s *schedule.Schedule) {
			s.Programs[4][4].Moves = nil
		},
	} {
		s := star(schedule.AllReduce)
		spoil(s)
		_, want := schedule.ExamineExactly(s)
		if have := schedule.Check(s); want == nil || have == nil || have.Error() != want.Error() {
			t.Errorf("%s: error\n%v\nwant\n%v", name, have, want)
		}
	}
	strides := schedule.NewBuilder(schedule.AllReduce, n, 0, chunks) // every other chunk in a message
	for rank := 1; rank < n; rank++ {
		for first := range 2 {
			strides.FoldStrided(rank-1, rank-1, rank, first, chunks/2, 1, 2)
			strides.CopyStrided(n-1, n-1, rank-1, first, chunks/2, 1, 2)
		}
	}
	apart, err := strides.Build()
	if err != nil || schedule.Check(apart) != nil {
		t.Fatal(err, schedule.Check(apart))
	}
	apart.Programs[5][4].Then = append(apart.Programs[5][4].Then, schedule.Step{Verb: schedule.Fold, Peer: -1,
		Src: schedule.Out(wrong, 1), Dst: schedule.Out(wrong, 1)})
	_, exactly := schedule.ExamineExactly(apart)
	if have := schedule.Check(apart); exactly == nil || have == nil || have.Error() != exactly.Error() ||
		!strings.Contains(have.Error(), "takes a contribution twice: chunk 700 of ranks [0 1 2 3 4 5] and") {
		t.Errorf("strided messages: error\n%v\nwant\n%v", have, exactly)
	}
	s := star(schedule.Broadcast)
	s.Programs[7][6].Moves[1], s.Programs[6][6].Moves[1] = s.Programs[6][6].Moves[1], s.Programs[7][6].Moves[1]
	s.Programs[7][6].Moves[1].Peer, s.Programs[6][6].Moves[1].Peer = 6, 7
	_, want := schedule.ExamineExactly(s)
	if have := schedule.Check(s); want == nil || have == nil || have.Error() != want.Error() {
		t.Errorf("a broadcast: error\n%v\nwant\n%v", have, want)
	}
}

// TestFaultsOfLargeCustoms is the same for a contract of a program's own: a scan.
func TestFaultsOfLargeCustoms(t *testing.T) {
	t.Parallel()
	const n, chunks, wrong = 66, 1000, 700
	for name, spoil := range map[string]func(*schedule.Schedule){
		"ends with chunk 700 of ranks [0 1 2 3 4] as chunk 700": func(s *schedule.Schedule) {
			s.Programs[5][4].Moves[1] = schedule.Step{Verb: schedule.Recv, Peer: 4, Dst: schedule.Out(wrong, 1)}
		},
		"twice: chunk 700 of ranks [0 1 2 3 4 5] and": func(s *schedule.Schedule) {
			s.Programs[5][4].Then = append(s.Programs[5][4].Then, schedule.Step{Verb: schedule.Fold, Peer: -1,
				Src: schedule.Out(wrong, 1), Dst: schedule.Out(wrong, 1)})
		},
		// That is wrong in place alone, since there the Input has what arrived in the round before. It counts to more
		// than there are ranks.
		"with Output being Input: schedule: rank 65 round 65 then 0 (O700+I700): takes a contribution": func(s *schedule.Schedule) {
			last := &s.Programs[n-1]
			arrives := &(*last)[n-2].Moves[1]
			*arrives = schedule.Step{Verb: schedule.Recv, Peer: n - 2, Dst: schedule.Out(wrong, 1)}
			*last = append(*last, schedule.Round{Then: []schedule.Step{{Verb: schedule.Fold, Peer: -1,
				Src: schedule.In(wrong, 1), Dst: schedule.Out(wrong, 1)}}})
		},
	} {
		b := schedule.NewBuilderFor(schedule.Scan(n, chunks))
		for rank := range n - 1 {
			for _, p := range [][2]int{{0, wrong}, {wrong, 1}, {wrong + 1, chunks - wrong - 1}} {
				b.Fold(rank, rank, rank+1, p[0], p[1])
			}
		}
		s, err := b.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := schedule.Check(s); err != nil {
			t.Fatal(err)
		}
		spoil(s)
		_, want := schedule.ExamineExactly(s)
		if have := schedule.Check(s); want == nil || have == nil || have.Error() != want.Error() ||
			!strings.Contains(have.Error(), name) {
			t.Errorf("error\n%v\nwant\n%v\nwith %s", have, want, name)
		}
	}
}

// TestFaultsWithoutRoom: where sets of contributors take too much memory, the error is what sums say.
func TestFaultsWithoutRoom(t *testing.T) {
	t.Parallel()
	idle := greedySchedule(100, 1, 650)
	const want = "schedule: rank 0 ends with nothing as chunk 0 of the output, want chunk 0 of all 100 ranks"
	if err := schedule.CheckIn(idle, 4<<20); err == nil || err.Error() != want {
		t.Error(err)
	}
}
