package schedule

import "testing"

// TestLocalStepsThatCross: a copy that moves chunks up within one memory is refused, since long ones go piece by piece.
// But for that the schedule is an all-to-all of three ranks.
func TestLocalStepsThatCross(t *testing.T) {
	t.Parallel()
	s := &Schedule{Collective: AllToAll, Size: 3, Chunks: 3, Apart: true, Programs: []Program{
		{both(steps(send(In(1, 1), 1), send(In(2, 1), 2), recv(Out(0, 1), 1), recv(Out(1, 1), 2)),
			move(Out(1, 2), Out(0, 2)), move(Out(0, 1), In(0, 1)))},
		{both(steps(send(In(0, 1), 0), send(In(2, 1), 2), recv(Out(0, 1), 0), recv(Out(2, 1), 2)),
			move(Out(1, 1), In(1, 1)))},
		{both(steps(send(In(0, 1), 0), send(In(1, 1), 1), recv(Out(0, 1), 0), recv(Out(1, 1), 1)),
			move(Out(2, 1), In(2, 1)))},
	}}
	mustFail(t, s, "schedule: rank 0 round 0 then 0 (O1-2=O0-1): it reads chunks that it has written")
	s.Programs[0][0].Then = steps(move(Out(2, 1), Out(1, 1)), move(Out(1, 1), Out(0, 1)), move(Out(0, 1), In(0, 1)))
	if err := Check(s); err != nil {
		t.Errorf("one chunk after the other: %v", err)
	}
}

// TestSlotThatBeginsAnew: a fold that reads chunks of a slot and writes them where the slot has other places is
// refused. But for that the schedule is an all-reduce of two ranks.
func TestSlotThatBeginsAnew(t *testing.T) {
	t.Parallel()
	of := func(base int) *Schedule {
		return twoRanks(AllReduce, 3,
			Program{
				then(move(Part(0, 1, 1, 2), In(1, 2))),
				both(steps(send(In(0, 3), 1), fold(Tmp(1, 0, 1), In(0, 1), 1),
					fold(Part(0, base, 1, 2), Part(0, 1, 1, 2), 1)),
					move(Out(0, 1), Tmp(1, 0, 1)), move(Out(1, 2), Part(0, base, 1, 2))),
			},
			Program{{}, both(steps(fold(Tmp(0, 0, 3), In(0, 3), 0), send(In(0, 1), 0), send(In(1, 2), 0)),
				move(Out(0, 3), Tmp(0, 0, 3)))})
	}
	if err := Check(of(1)); err != nil {
		t.Error(err)
	}
	mustFail(t, of(0), "move 2 begins slot 0 with chunk 0, another with chunk 1 in one round")
}
