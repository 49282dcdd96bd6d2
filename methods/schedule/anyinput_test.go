package schedule_test

import (
	"strings"
	"testing"

	"gogcl.dev/internal/anyinput"
	"gogcl.dev/methods/schedule"
)

// TestAnyInput: no call panics.
func TestAnyInput(t *testing.T) {
	t.Parallel()
	anyinput.Check(t, anyinput.API{
		Functions: map[string]any{
			"Check": schedule.Check, "Collectives": schedule.Collectives, "Examine": schedule.Examine,
			"ExamineByRank": schedule.ExamineByRank,
			"In":            schedule.In, "NewBuilder": schedule.NewBuilder, "Out": schedule.Out, "Parse": schedule.Parse,
			"Part": schedule.Part, "Tmp": schedule.Tmp, "Scan": schedule.Scan,
			"ExclusiveScan": schedule.ExclusiveScan, "Exchange": schedule.Exchange,
			"Experts": schedule.Experts, "NewBuilderFor": schedule.NewBuilderFor,
		},
		Types: []any{schedule.Alike{}, schedule.Bounds{}, schedule.Waste{}, schedule.Buffer(0), schedule.Builder{},
			schedule.Collective(0), schedule.Contract{}, schedule.CustomContract{}, schedule.Flow{},
			schedule.Holding(0), schedule.Message{}, schedule.Program{},
			schedule.Report{}, schedule.Round{}, schedule.Schedule{}, schedule.Span{}, schedule.Step{},
			schedule.Traffic{}, schedule.Verb(0)},
		Values: []any{
			&schedule.Schedule{Collective: schedule.AllReduce, Size: 2, Chunks: 2,
				Programs: make([]schedule.Program, 2)},
			schedule.NewBuilder(schedule.AllReduce, 3, 0, 3), schedule.AllReduce, schedule.In(0, 1), schedule.Out(1, 1),
			schedule.Step{Verb: schedule.Send, Peer: 1, Src: schedule.In(0, 1)},
			schedule.Step{Verb: schedule.RecvReduce, Peer: 0, Src: schedule.In(0, 1), Dst: schedule.Out(0, 1)},
			schedule.Out(2, 2).Strided(1, 1),
			schedule.Step{Verb: schedule.Fold, Peer: -1, Src: schedule.In(0, 2).Strided(1, 2), Dst: schedule.Out(0, 2)},
			schedule.Round{Moves: []schedule.Step{{Verb: schedule.Send, Peer: 1}, {Verb: schedule.Recv, Peer: -1}}},
			&schedule.Traffic{Size: 4, Chunks: 4,
				Rounds: []schedule.Alike{{Times: 3, Flows: []schedule.Flow{{Move: 1, Chunks: 1}}}}},
			schedule.Scan(2, 2), &schedule.Schedule{Collective: schedule.Custom, Size: 2, Chunks: 2,
				Programs: make([]schedule.Program, 2), Custom: schedule.Scan(2, 2)},
			&strings.Builder{},
		},
	})
}
