package schedule

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unsafe"
)

// TestPackedIsTheSame packs the programs of schedules that are right, and finds the same steps again, in whatever order
// rounds are asked for.
func TestPackedIsTheSame(t *testing.T) {
	if size := unsafe.Sizeof(compactStep{}); size > 48 {
		t.Errorf("a compact step has %d bytes, want 48 at most", size)
	}
	all := right()
	all["rounds without steps"] = twoRanks(Broadcast, 2,
		Program{{}, {}, moves(send(In(0, 2), 1)), {}, then(move(Out(0, 2), In(0, 2))), {}},
		Program{{}, {}, moves(recv(Part(7, 0, 0, 2), 0)), {}, {}, {},
			then(move(Out(0, 1), Part(7, 0, 0, 1)), move(Out(1, 1), Part(7, 0, 1, 1)))})
	for name, s := range all {
		from := &compact{}
		for rank, p := range s.Programs {
			from.programs = append(from.programs, pack(p))
			if got := from.length(rank); got != len(p) {
				t.Errorf("%s: rank %d has %d rounds compact, want %d", name, rank, got, len(p))
			}
		}
		for rank, p := range s.Programs {
			order := make([]int, 0, 2*len(p))
			for i := range p {
				order = append(order, i, len(p)-1-i)
			}
			for _, i := range order {
				if got, want := from.next(rank, i), s.next(rank, i); got != want {
					t.Fatalf("%s: rank %d has steps next from round %d on in round %d, want %d", name, rank, i, got, want)
				}
				if len(p[i].Moves)+len(p[i].Then) == 0 {
					continue
				}
				got := from.round(rank, i)
				if !slices.Equal(got.Moves, p[i].Moves) || !slices.Equal(got.Then, p[i].Then) {
					t.Errorf("%s: rank %d round %d compact is %v, want %v", name, rank, i, got, p[i])
				}
			}
		}
	}
}

// TestIdleRanksCostNothing has a schedule of a million rounds in which two ranks of a thousand do something in the
// first and the last.
func TestIdleRanksCostNothing(t *testing.T) {
	const rounds = 1 << 20
	long := make(Program, rounds)
	short := Program{moves(recv(Out(0, 1), 0))}
	s := &Schedule{Collective: Broadcast, Size: 3, Chunks: 1}
	made := 0
	report, err := ExamineByRank(s, func(rank int) (Program, error) {
		made++
		switch rank {
		case 1:
			return short, nil
		case 2:
			clear(long)
			long[rounds-1] = moves(recv(Out(0, 1), 0))
			return long, nil
		}
		long[0] = both(steps(send(In(0, 1), 1)), move(Out(0, 1), In(0, 1)))
		long[rounds-1] = moves(send(In(0, 1), 2))
		return long, nil
	})
	if err != nil || report.Rounds != rounds || report.Messages != 2 || made != 3 {
		t.Errorf("report %+v of %d programs, error %v; want %d rounds and 2 messages of 3", report, made, err, rounds)
	}
}

func TestExamineByRankRefuses(t *testing.T) {
	no := errors.New("no program for that rank")
	idle := func(int) (Program, error) { return nil, nil }
	head := Schedule{Collective: AllReduce, Size: 2, Chunks: 1}
	with := func(change func(s *Schedule)) *Schedule {
		s := head
		change(&s)
		return &s
	}
	for _, c := range []struct {
		s       *Schedule
		program func(int) (Program, error)
		want    string
	}{
		{nil, idle, "schedule: no schedule"},
		{&head, nil, "schedule: no function that makes programs"},
		{with(func(s *Schedule) { s.Programs = make([]Program, 2) }), idle,
			"schedule: 2 programs beside a function that makes them"},
		{with(func(s *Schedule) { s.Size = 1<<16 + 1 }), idle, "schedule: size 65537, want 1 to 65536"},
		{with(func(s *Schedule) { s.Size = 0 }), idle, "schedule: size 0, want 1 or more"},
		{with(func(s *Schedule) { s.Chunks = 0 }), idle, "schedule: 0 chunks, want 1 or more"},
		{&head, func(int) (Program, error) { return nil, no }, no.Error()},
		{&head, func(rank int) (Program, error) { return Program{moves(send(In(0, 1), rank))}, nil },
			"schedule: rank 0 round 0 move 0 (I0>0): peer 0 of 2 ranks"},
		{&head, idle, "schedule: rank 0 ends with nothing as chunk 0 of the output, want chunk 0 of all 2 ranks"},
	} {
		if _, err := ExamineByRank(c.s, c.program); err == nil || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("error %v, want %q", err, c.want)
		}
	}
}
