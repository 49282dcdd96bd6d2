package schedule_test

import (
	"fmt"
	"reflect"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestDigest: whatever changes in a schedule changes its digest, and nothing else does.
func TestDigest(t *testing.T) {
	t.Parallel()
	build := func() *schedule.Schedule {
		s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 3})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	seen := map[[32]byte]string{build().Digest(): "nothing"}
	if again := build().Digest(); seen[again] == "" {
		t.Error("equal schedules have different digests")
	}
	try := func(what string, change func(s *schedule.Schedule)) {
		s := build()
		change(s)
		if other := seen[s.Digest()]; other != "" {
			t.Errorf("changed in %s it has the digest of the one changed in %s", what, other)
		}
		seen[s.Digest()] = what
	}
	try("collective", func(s *schedule.Schedule) { s.Collective = schedule.AllGather })
	try("size", func(s *schedule.Schedule) { s.Size++ })
	try("root", func(s *schedule.Schedule) { s.Root++ })
	try("chunks", func(s *schedule.Schedule) { s.Chunks++ })
	try("apart", func(s *schedule.Schedule) { s.Apart = true })
	try("again", func(s *schedule.Schedule) { s.Again = true })
	try("a program less", func(s *schedule.Schedule) { s.Programs = s.Programs[:2] })
	try("a round more", func(s *schedule.Schedule) { s.Programs[1] = append(s.Programs[1], schedule.Round{}) })
	try("a step between parts", func(s *schedule.Schedule) {
		r := &s.Programs[0][0]
		r.Then = append(r.Then, r.Moves[len(r.Moves)-1])
		r.Moves = r.Moves[:len(r.Moves)-1]
	})
	for _, field := range []string{"Verb", "Peer"} {
		try(field, func(s *schedule.Schedule) {
			f := reflect.ValueOf(&s.Programs[2][1].Moves[1]).Elem().FieldByName(field)
			if f.CanInt() {
				f.SetInt(f.Int() + 1)
			} else {
				f.SetUint(f.Uint() + 1)
			}
		})
	}
	for _, side := range []string{"Src", "Dst"} {
		for _, field := range []string{"Buf", "Slot", "Base", "First", "Count", "Stride", "Run"} {
			try(side+field, func(s *schedule.Schedule) {
				f := reflect.ValueOf(&s.Programs[2][1].Moves[1]).Elem().FieldByName(side).FieldByName(field)
				if f.CanInt() {
					f.SetInt(f.Int() + 1)
				} else {
					f.SetUint(f.Uint() + 1)
				}
			})
		}
	}
	for _, run := range []int{1, 2} {
		try(fmt.Sprint("runs of ", run), func(s *schedule.Schedule) {
			sp := &s.Programs[2][1].Moves[1].Src
			sp.Stride, sp.Run = 3, run
		})
	}
	none := (*schedule.Schedule)(nil)
	if none.Digest() != (&schedule.Schedule{}).Digest() {
		t.Error("nil has another digest than the zero Schedule")
	}
}
