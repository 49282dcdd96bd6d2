package schedule

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// firstLine is an error without the way of its chunk.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// builtFrom is the schedule of a Builder.
func builtFrom(t *testing.T, c Collective, ranks int, messages func(b *Builder)) *Schedule {
	t.Helper()
	b := NewBuilder(c, ranks, 0, ranks)
	messages(b)
	s, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// builtProgram is a schedule of one chunk.
func builtProgram(c Collective, size int, programs ...Program) *Schedule {
	return &Schedule{Collective: c, Size: size, Chunks: 1, Programs: programs}
}

// TestWay has a schedule for each sentence that a way can end with.
func TestWay(t *testing.T) {
	t.Parallel()
	twice := allReduce2()
	for _, c := range []struct {
		name string
		s    *Schedule
		want string // below the first line
	}{
		{"the whole goes no further", builtFrom(t, AllReduce, 3, func(b *Builder) {
			b.Fold(0, 1, 0, 0, 3)
			b.Fold(1, 0, 2, 0, 3)
		}), `the way of chunk 0:
  round 0: 1 folds into 0
  round 1: 0 folds into 2
  the whole is at rank 2 since round 1; nobody sends it on`},
		{"the whole does not go to all", builtFrom(t, AllReduce, 3, func(b *Builder) {
			b.Fold(0, 1, 0, 0, 3)
			b.Fold(1, 0, 2, 0, 3)
			b.Copy(2, 2, 0, 0, 3)
		}), `the way of chunk 0:
  round 0: 1 folds into 0, 1 copies I0 to O0
  round 1: 0 folds into 2
  the whole is at rank 2 since round 1, rank 0 since round 2; nobody sends it to rank 1`},
		{"a message leaves too early", builtFrom(t, AllReduce, 3, func(b *Builder) {
			b.Fold(0, 0, 1, 0, 3)
			b.Fold(0, 2, 0, 0, 3)
			b.Copy(1, 1, 0, 0, 3)
			b.Copy(2, 1, 2, 0, 3)
		}), `the way of chunk 0:
  round 0: 2 folds into 0 (S0[0]), 0 folds into 1
  round 1: 1 sends to 0
  the contribution of rank 2 is in S0[0] of rank 0 since round 0; nobody sends it on`},
		{"a slot is sent too early", builtProgram(Broadcast, 3,
			Program{{}, moves(send(In(0, 1), 1))},
			Program{moves(send(Tmp(0, 0, 1), 2)), moves(recv(Tmp(0, 0, 1), 0)), then(move(Out(0, 1), Tmp(0, 0, 1)))},
			Program{moves(recv(Out(0, 1), 1))}), `the way of chunk 0:
  rank 1 first writes S0[0] in round 1, after the step that reads it`},
		{"it does not go back", builtProgram(AllReduce, 3,
			nil,
			Program{moves(fold(Out(0, 1), In(0, 1), 2)), moves(send(Out(0, 1), 2))},
			Program{moves(send(In(0, 1), 1)), moves(recv(Out(0, 1), 1))}), `the way of chunk 0:
  round 0: 2 folds into 1
  round 1: 1 sends to 2
  nobody sends the contribution of rank 0 on
  the contribution of rank 1 is in O0 of rank 2 since round 1; nobody sends it to rank 0
  the contribution of rank 2 is in O0 of rank 1 since round 0; nobody sends it to rank 0`},
		{"nobody sends", twoRanks(AllReduce, 1, nil, nil), `the way of chunk 0:
  nobody sends the contribution of rank 0 on
  nobody sends the contribution of rank 1 on`},
		{"contributions are overwritten", builtFrom(t, AllReduce, 6, func(b *Builder) {
			for rank := range 5 {
				b.Fold(rank, rank+1, rank, 0, 6)
			}
			for rank := range 4 {
				b.Copy(5+rank, 5, rank, 0, 6)
			}
		}), `the way of chunk 0:
  round 0: 1 folds into 0
  round 1: 2 folds into 1
  round 2: 3 folds into 2
  round 5: 5 sends to 0
  round 6: 5 sends to 1
  round 7: 5 sends to 2
  nobody sends the contribution of rank 0 on
  the contribution of rank 1 is in O0 of rank 0 since round 0, until round 5 overwrites it: 5 sends to 0
  the contribution of rank 2 is in O0 of rank 1 since round 1, until round 6 overwrites it: 5 sends to 1
  the contribution of rank 3 is in O0 of rank 2 since round 2, until round 7 overwrites it: 5 sends to 2
  ... and 1 contribution more`},
		{"a chunk does not come", builtFrom(t, AllGather, 3, func(b *Builder) {
			b.Copy(0, 0, 1, 0, 1)
			b.Copy(0, 1, 2, 1, 1)
			b.Copy(1, 1, 2, 0, 1)
			b.Copy(2, 2, 0, 2, 1)
			b.Copy(3, 2, 1, 2, 1)
		}), `the way of chunk 1 of rank 1:
  it is at rank 1 from the start, rank 2 since round 0; nobody sends it to rank 0`},
		{"the result is overwritten", twoRanks(AllReduce, 1, append(allReduce2().Programs[0],
			then(move(Out(0, 1), In(0, 1)))), twice.Programs[1]), `the way of chunk 0:
  round 0: 1 sends to 0 (S0[0]), 0 copies I0 to O0, 0 folds S0[0] into O0
  round 1: 0 copies I0 to O0
  rank 0 has the whole in O0 since round 0, until round 1 overwrites it: 0 copies I0 to O0`},
		{"a block in another place", twoRanks(AllToAll, 2,
			Program{both(steps(send(In(1, 1), 1), recv(Tmp(0, 1, 1), 1)), move(Out(0, 1), In(0, 1)))},
			Program{both(steps(send(In(0, 1), 0), recv(Out(0, 1), 0)), move(Out(1, 1), In(1, 1)))}),
			`the way of chunk 0 of rank 1:
  round 0: 1 sends to 0 (S0[1]) as chunk 1
  rank 0 has it in S0[1] since round 0, and does not put it into O1`},
		{"the root's own", fromRank1(twoRanks(Broadcast, 1, Program{moves(recv(Out(0, 1), 1))},
			Program{moves(send(In(0, 1), 0))})), `the way of chunk 0 of rank 1:
  rank 1 has it in I0 from the start, and does not put it into O0`},
		{"a slot in place of the output", twoRanks(Broadcast, 1, Program{both(steps(send(In(0, 1), 1)),
			move(Out(0, 1), In(0, 1)))}, Program{moves(recv(Tmp(0, 0, 1), 0))}), `the way of chunk 0 of rank 0:
  round 0: 0 sends to 1 (S0[0])
  rank 1 has it in S0[0] since round 0, and does not put it into O0`},
		{"a slot that gets another layout", twoRanks(Broadcast, 2, Program{both(steps(send(In(0, 1), 1), send(In(1, 1), 1)),
			move(Out(0, 2), In(0, 2))), moves(send(In(1, 1), 1))},
			Program{moves(recv(Tmp(0, 0, 1), 0), recv(Out(1, 1), 0)), moves(recv(Tmp(0, 1, 1), 0))}),
			`the way of chunk 0 of rank 0:
  round 0: 0 sends to 1 (S0[0])
  rank 1 has it in S0[0] since round 0, until round 1 gives the slot another layout`},
		{"twice by a fold", twoRanks(AllReduce, 1, Program{twice.Programs[0][0], then(reduce(Out(0, 1), Tmp(0, 0, 1)))},
			twice.Programs[1]), `the way of chunk 0:
  round 0: 1 sends to 0 (S0[0]), 0 copies I0 to O0, 0 folds S0[0] into O0
  round 1: 0 folds S0[0] into O0, which has the contribution of rank 1 since round 0`},
		{"twice in place, one's own", twoRanks(AllReduce, 1,
			Program{moves(fold(Out(0, 1), In(0, 1), 1)), moves(send(In(0, 1), 1))},
			Program{moves(send(In(0, 1), 0)), moves(fold(Out(0, 1), In(0, 1), 0))}), `the way of chunk 0:
  round 0: 1 folds into 0
  round 1: 0 folds into 1, which has the contribution of rank 1 from the start`},
		{"chunks mixed up", twoRanks(AllToAll, 4, Program{both(steps(send(In(2, 2), 1), fold(Out(2, 2), In(2, 2), 1)),
			move(Out(0, 2), In(0, 2)))}, allToAll2().Programs[1]), `the way of chunk 2:
  round 0: 1 folds into 0: chunk 0 meets chunk 2`},
		{"never written", twoRanks(AllGather, 2, Program{then(move(Out(0, 1), In(0, 1))), moves(send(Out(0, 2), 1))},
			Program{{}, moves(recv(Tmp(0, 0, 2), 0))}), `the way of chunk 1:
  rank 0 never writes O1`},
		{"written too late", twoRanks(AllGather, 2, Program{moves(send(Out(1, 1), 1)), moves(recv(Out(1, 1), 1))},
			Program{moves(recv(Out(1, 1), 0)), moves(send(In(1, 1), 0))}), `the way of chunk 1:
  rank 0 first writes O1 in round 1, after the step that reads it`},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := Check(c.s)
			if err == nil {
				t.Fatal("no error")
			}
			_, have, _ := strings.Cut(err.Error(), "\n")
			if diff := cmp.Diff(c.want, have); diff != "" {
				t.Errorf("the way (-want +got):\n%s\nof\n%s\n%v", diff, firstLine(err), c.s)
			}
		})
	}
}

// TestWayIsShort has a way of hundreds of rounds, and one of hundreds of steps in a round.
func TestWayIsShort(t *testing.T) {
	t.Parallel()
	long := builtFrom(t, Reduce, 200, func(b *Builder) {
		for rank := 1; rank < 199; rank++ {
			b.Fold(rank, rank, rank+1, 0, 200)
		}
		b.Fold(199, 199, 1, 0, 200) // not to the root
	})
	wide := builtFrom(t, AllReduce, 200, func(b *Builder) {
		for rank := 1; rank < 200; rank++ {
			b.Fold(0, rank, 0, 0, 200)
		}
	})
	for want, s := range map[string]*Schedule{"  ... 186 rounds ...\n": long, ", ... 194 steps ..., ": wide} {
		err := Check(s)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Fatalf("error %v\nwant %q", err, want)
		}
		if _, way, _ := strings.Cut(err.Error(), "\n"); len(way) > 2<<10 || strings.Count(way, "\n") > 20 {
			t.Errorf("the way has %d bytes:\n%s", len(way), way)
		}
	}
}

// TestWayKeepsTheError: the way changes neither the first line nor what an error is.
func TestWayKeepsTheError(t *testing.T) {
	t.Parallel()
	s := twoRanks(AllReduce, 1, nil, nil)
	e := examination{schedule: s}
	_, plain := e.twice(s, false, true)
	err := Check(s)
	var wrong *chunkError
	if plain == nil || err == nil || firstLine(err) != plain.Error() || !errors.As(err, &wrong) {
		t.Errorf("error %v\nwant one that begins with %v", err, plain)
	}
}
