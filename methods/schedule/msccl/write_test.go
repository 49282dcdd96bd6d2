package msccl_test

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/methods/schedule/msccl"
)

// collectives are those of the format.
var collectives = []schedule.Collective{schedule.AllReduce, schedule.ReduceScatter, schedule.AllGather,
	schedule.AllToAll}

// sizes are those of groups.
func sizes() []int {
	if testing.Short() {
		return []int{1, 2, 3, 4, 7}
	}
	return []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17}
}

// TestRoundTrip writes schedules of every method and reads them back: they do the same, in no more rounds.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	for _, k := range sizes() {
		for _, m := range thinned.Methods(k) {
			for _, c := range collectives {
				for _, other := range []bool{false, true} { // in place, or in rank order
					spec := methods.Spec{Method: m, Collective: c, Size: k, Ring: inOrder(k), Second: inOrder(k)}
					if c == schedule.AllToAll {
						spec.InPlace = other
					} else if c.Contract().Combines {
						spec.RankOrder = other
					} else if other {
						continue
					}
					t.Run(fmt.Sprintf("method=%v/collective=%v/n=%d/other=%v", m, c, k, other), func(t *testing.T) {
						t.Parallel()
						s, err := methods.Build(spec)
						if m.InGallery() && errors.Is(err, errors.ErrUnsupported) {
							t.Skip(err)
						}
						if err != nil {
							t.Fatal(err)
						}
						roundTrip(t, s)
					})
				}
			}
		}
	}
}

// TestRoundTripOfStrides: messages whose chunks lie apart are written as several.
func TestRoundTripOfStrides(t *testing.T) {
	t.Parallel()
	for _, k := range []int{2, 4, 5, 7} {
		for name, g := range map[string]methods.Generator{"bruck": methods.Bruck(), "pat": methods.PAT(0)} {
			for _, c := range collectives {
				s, err := g.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: k}})
				if errors.Is(err, errors.ErrUnsupported) {
					continue
				}
				t.Run(fmt.Sprintf("method=%s/collective=%v/n=%d", name, c, k), func(t *testing.T) {
					if err != nil {
						t.Fatal(err)
					}
					roundTrip(t, s)
				})
			}
		}
	}
}

// roundTrip writes a schedule, reads it back and compares what the two do.
func roundTrip(t *testing.T, s *schedule.Schedule) {
	t.Helper()
	var file bytes.Buffer
	if err := msccl.Write(&file, &msccl.File{Name: t.Name(), Schedule: s}); err != nil {
		t.Fatal(err)
	}
	f, err := msccl.Read(file.Bytes())
	if err != nil {
		t.Fatalf("%v\n%v\n%s", err, s, &file)
	}
	got := f.Schedule
	want, err := schedule.Examine(s)
	if err != nil {
		t.Fatal(err)
	}
	report, err := schedule.Examine(got)
	if err != nil {
		t.Fatalf("%v\nwritten\n%v\nread\n%v", err, s, got)
	}
	if got.Collective != s.Collective || got.Size != s.Size || got.Chunks != s.Chunks || got.Apart != s.Apart {
		t.Errorf("read %v of %d ranks and %d chunks, apart: %v", got.Collective, got.Size, got.Chunks, got.Apart)
	}
	if !slices.Equal(report.Sent, want.Sent) || report.OneOrder != want.OneOrder || report.RankOrder != want.RankOrder {
		t.Errorf("read %+v, wrote %+v", report, want)
	}
	if report.Rounds > want.Rounds {
		t.Errorf("%d rounds of %d\nwritten\n%v\nread\n%v", report.Rounds, want.Rounds, s, got)
	}
}

// inOrder is the ring 0, 1, ..., k-1.
func inOrder(k int) []int {
	out := make([]int, k)
	for i := range out {
		out[i] = i
	}
	return out
}
