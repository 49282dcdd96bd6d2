package schedule_test

import (
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// greedy are schedules whose few steps make a check take memory, each in another way. A unit is how much. factor is how
// many bytes are allocated for a byte noted, at most: what grows is allocated again.
var greedy = []struct {
	name   string
	factor float64
	make   func(unit int) *schedule.Schedule
}{
	{"chunks of ranks", 1.15, func(unit int) *schedule.Schedule {
		return greedySchedule(unit/8, 1, 1024)
	}},
	{"slots of many chunks", 1.4, func(unit int) *schedule.Schedule {
		s := greedySchedule(2, 8, unit)
		for t := range 8 {
			greedyMessage(s, t, 0, 1, schedule.In(0, unit), schedule.Recv, schedule.Span{}, schedule.Tmp(t, 0, unit))
		}
		return s
	}},
	{"slots of high numbers", 1.37, func(unit int) *schedule.Schedule {
		s := greedySchedule(16, 1, 1)
		for rank := 0; rank < 16; rank += 2 {
			greedyMessage(s, 0, rank, rank+1, schedule.In(0, 1), schedule.Recv, schedule.Span{},
				schedule.Tmp(unit, 0, 1))
		}
		return s
	}},
	{"messages of one round", 1.15, func(unit int) *schedule.Schedule {
		s := greedySchedule(2, 1, unit)
		for i := range 60 {
			greedyMessage(s, 0, 0, 1, schedule.In(0, unit), schedule.Recv, schedule.Span{}, schedule.Tmp(i, 0, unit))
		}
		return s
	}},
	{"messages to many ranks", 2.6, func(unit int) *schedule.Schedule {
		s := greedySchedule(60, 1, unit)
		for rank := 1; rank < 60; rank++ {
			greedyMessage(s, 0, 0, rank, schedule.In(0, unit), schedule.Recv, schedule.Span{}, schedule.Out(0, unit))
		}
		return s
	}},
	{"partial results", 2.45, func(unit int) *schedule.Schedule {
		s := greedySchedule(8, 1, unit)
		for rank := 1; rank < 8; rank++ {
			greedyMessage(s, 0, 0, rank, schedule.In(0, unit), schedule.RecvReduce, schedule.In(0, unit),
				schedule.Out(0, unit))
		}
		return s
	}},
	{"runs of strided spans", 2.1, func(unit int) *schedule.Schedule {
		s := greedySchedule(2, 1, 4*unit)
		greedyMessage(s, 0, 0, 1, schedule.In(0, 2*unit).Strided(1, 2), schedule.Recv, schedule.Span{},
			schedule.Out(0, 2*unit).Strided(1, 2))
		return s
	}},
	{"partial results, as sets of many ranks", 1.55, func(int) *schedule.Schedule {
		s := greedySchedule(4096, 1, 1)
		s.Again = true
		for rank := 0; rank < 4096; rank += 2 {
			greedyMessage(s, 0, rank, rank+1, schedule.In(0, 1), schedule.RecvReduce, schedule.In(0, 1),
				schedule.Out(0, 1))
		}
		return s
	}},
}

func greedySchedule(size, rounds, chunks int) *schedule.Schedule {
	s := &schedule.Schedule{Collective: schedule.AllReduce, Size: size, Chunks: chunks,
		Programs: make([]schedule.Program, size)}
	for rank := range s.Programs {
		s.Programs[rank] = make(schedule.Program, rounds)
	}
	return s
}

func greedyMessage(s *schedule.Schedule, round, from, to int, what schedule.Span, verb schedule.Verb,
	src, dst schedule.Span) {
	out, in := &s.Programs[from][round].Moves, &s.Programs[to][round].Moves
	*out = append(*out, schedule.Step{Verb: schedule.Send, Peer: to, Src: what})
	*in = append(*in, schedule.Step{Verb: verb, Peer: from, Src: src, Dst: dst})
}

// TestRoomIsOfWhatIsMade: the memory that checks note as taken is that which they allocate, but for what they grow out
// of. The test is not parallel, since it counts what the process allocates.
func TestRoomIsOfWhatIsMade(t *testing.T) {
	for _, g := range greedy {
		t.Run(strings.ReplaceAll(g.name, " ", "_"), func(t *testing.T) {
			s := g.make(5000)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			noted, err := schedule.ExamineIn(s, 1<<40)
			runtime.ReadMemStats(&after)
			made := int64(after.TotalAlloc - before.TotalAlloc)
			if err != nil || noted > made || float64(made) > allocations*g.factor*float64(noted) {
				t.Errorf("%d bytes noted, %d allocated, %v", noted, made, err)
			}
		})
	}
}

// TestRoom: a check that takes more than it may ends with an error, and a right schedule that takes less is proved.
func TestRoom(t *testing.T) {
	t.Parallel()
	for _, g := range greedy {
		s := g.make(5000)
		noted, err := schedule.ExamineIn(s, 1<<40)
		if err != nil {
			t.Fatalf("%s: %v", g.name, err)
		}
		for _, part := range []int64{10, 50} {
			_, err := schedule.ExamineIn(s, noted*part/100)
			if want := "of memory, the most for"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s, in %d %% of the room: error %v, want one with %q", g.name, part, err, want)
			}
		}
	}
	messages := greedy[3].make(5000)
	all, err := schedule.ExamineIn(messages, 1<<40)
	if err != nil {
		t.Fatal(err)
	}
	for part, want := range map[int64]string{
		1:  "schedule: the check takes",
		12: "schedule: rank 0 round 0 move ",      // a message to rank 1
		40: "schedule: rank 1 round 0: the check", // the slots that the round touches
		90: "schedule: rank 1 round 0 move ",      // a message that arrives
	} {
		if _, err := schedule.ExamineIn(messages, all*part/100); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("in %d %% of the room: error %v, want one with %q", part, err, want)
		}
	}
	copies := greedySchedule(1, 1, 5000)
	for i := range 60 {
		copies.Programs[0][0].Then = append(copies.Programs[0][0].Then, schedule.Step{Verb: schedule.Copy, Peer: -1,
			Src: schedule.In(0, 5000), Dst: schedule.Tmp(i, 0, 5000)})
	}
	if _, err := schedule.ExamineIn(copies, 2<<20); err == nil || !strings.HasPrefix(err.Error(),
		"schedule: rank 0 round 0 then ") {
		t.Errorf("copies: error %v", err)
	}
	if err := schedule.Check(greedySchedule(1000, 1, 1<<20)); err == nil || err.Error() != "schedule: the check takes "+
		"more than 384 MiB of memory, the most for 0 steps, want fewer chunks, ranks or slots" {
		t.Error(err)
	}
}
