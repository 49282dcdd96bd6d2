package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// agree checks a schedule by sums of contributors and by sets, which must say the same, and returns whether they accept
// it. A schedule is also examined one rank at a time, compact.
func agree(t *testing.T, s *schedule.Schedule) bool {
	t.Helper()
	exact, err := schedule.ExamineExactly(s)
	sums, byThem := schedule.ExamineSums(s)
	if (exact.Waste.First == "") == (sums.Waste.First == "") { // sets say more of what was left in a slot
		sums.Waste.First = exact.Waste.First
	}
	if (err == nil) != (byThem == nil) || !reflect.DeepEqual(exact, sums) {
		t.Fatalf("by sets: %v, %+v\nby sums: %v, %+v\n%v", err, exact, byThem, sums, s)
	}
	for _, again := range []error{schedule.Check(s), schedule.CheckSumsFirst(s)} {
		if fmt.Sprint(again) != fmt.Sprint(err) {
			t.Fatalf("by sets: %v\nby Check: %v\n%v", err, again, s)
		}
	}
	header := *s
	header.Programs = nil
	compact, compactErr := schedule.ExamineByRank(&header, func(rank int) (schedule.Program, error) {
		return s.Programs[rank], nil
	})
	if fmt.Sprint(compactErr) != fmt.Sprint(err) || compact.Waste.First == "" != exact.Waste.None() {
		t.Fatalf("by sets: %v, %+v\npacked: %v, %+v\n%v", err, exact, compactErr, compact, s)
	}
	if compact.Waste.First = exact.Waste.First; !reflect.DeepEqual(compact, exact) {
		t.Fatalf("by sets: %v, %+v\npacked: %v, %+v\n%v", err, exact, compactErr, compact, s)
	}
	return err == nil
}

// TestSumsAgreeWithSets edits schedules of more ranks than a word has bits. Sums must say the same as sets, and Check
// must name the same fault.
func TestSumsAgreeWithSets(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(7, 8))
	accepted, cases := 0, largeCases()
	if testing.Short() {
		cases = 60
	}
	for i := range cases {
		k := 65 + random.IntN(8)
		all := thinned.Constants()
		spec := methods.Spec{Method: all[random.IntN(len(all))], Size: k, Ring: random.Perm(k),
			Second: random.Perm(k), Pieces: 1 + random.IntN(3), RankOrder: random.IntN(4) == 0,
			Collective: schedule.Collectives()[random.IntN(len(schedule.Collectives()))]}
		if spec.Collective == schedule.AllToAll {
			continue // of so many ranks it takes long, and combines nothing
		}
		s, err := methods.Build(spec)
		if err != nil {
			t.Fatal(err)
		}
		for range i % 3 { // every third is right
			edit(s, random)
		}
		if agree(t, s) {
			accepted++
		} else if i%3 == 0 {
			t.Errorf("%v of %v over %d is refused", spec.Method, spec.Collective, k)
		}
	}
	if accepted == 0 || accepted == cases {
		t.Errorf("%d of %d accepted, so that this says little", accepted, cases)
	}
}
