package schedule_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// The messages are worked out by hand.
func TestTrafficMessages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		size int
		flow schedule.Flow
		want string // from>to
	}{
		{4, schedule.Flow{Move: 1}, "0>1 1>2 2>3 3>0"},
		{4, schedule.Flow{Move: -1}, "0>3 1>0 2>1 3>2"},
		{4, schedule.Flow{Move: 5}, "0>1 1>2 2>3 3>0"},
		{4, schedule.Flow{Move: 1, First: 2}, "2>3 3>0"},
		{4, schedule.Flow{Move: 1, First: 1, Count: 2}, "1>2 2>3"},
		{8, schedule.Flow{Move: 1, First: 1, Every: 3}, "1>2 4>5 7>0"},
		{8, schedule.Flow{Move: 1, First: 1, Every: 3, Count: 2}, "1>2 4>5"},
		{8, schedule.Flow{Stride: 2, Radix: 2, Move: 1}, "0>2 1>3 2>0 3>1 4>6 5>7 6>4 7>5"},
		{6, schedule.Flow{Stride: 2, Radix: 3, Move: -1}, "0>4 1>5 2>0 3>1 4>2 5>3"},
		{8, schedule.Flow{Move: 3, Alternate: true}, "0>3 1>6 2>5 3>0 4>7 5>2 6>1 7>4"},
		{8, schedule.Flow{Stride: 4, Radix: 2, Move: 1, Alternate: true}, "0>4 1>5 2>6 3>7 4>0 5>1 6>2 7>3"},
		{4, schedule.Flow{Order: 1, Move: 1}, "0>2 1>0 2>3 3>1"}, // round 2 3 1 0, by rank
	}
	for _, tt := range tests {
		tt.flow.Chunks, tt.flow.Fold = 2, true
		traffic := &schedule.Traffic{Size: tt.size, Chunks: 2, Orders: [][]int{{2, 3, 1, 0}},
			Rounds: []schedule.Alike{{Times: 1, Flows: []schedule.Flow{tt.flow}}}}
		if tt.size != 4 {
			traffic.Orders = nil
		}
		if err := traffic.Check(); err != nil {
			t.Errorf("%+v: %v", tt.flow, err)
		}
		messages, err := traffic.Messages(nil, 0)
		var got []string
		for _, m := range messages {
			got = append(got, fmt.Sprintf("%d>%d", m.From, m.To))
			if m.Chunks != 2 || !m.Fold {
				t.Errorf("%+v: %+v", tt.flow, m)
			}
		}
		if strings.Join(got, " ") != tt.want || err != nil {
			t.Errorf("%+v: %v, error %v, want %s", tt.flow, got, err, tt.want)
		}
	}
	// A rank's messages are in the order of the flows, behind those of lower ranks and of the caller.
	traffic := &schedule.Traffic{Size: 2, Chunks: 9, Rounds: []schedule.Alike{{Times: 1, Flows: []schedule.Flow{
		{Move: 1, Chunks: 9}, {Move: 1, Chunks: 8, First: 1}, {Move: 1, Chunks: 7, Count: 1}}}}}
	got, err := traffic.Messages([]schedule.Message{{From: 5}}, 0)
	want := []schedule.Message{{From: 5}, {0, 1, 9, false}, {0, 1, 7, false}, {1, 0, 9, false}, {1, 0, 8, false}}
	if !reflect.DeepEqual(got, want) || err != nil {
		t.Errorf("%v, error %v, want %v", got, err, want)
	}
}

func TestTrafficErrors(t *testing.T) {
	t.Parallel()
	good := func() *schedule.Traffic {
		return &schedule.Traffic{Size: 3, Chunks: 2, Orders: [][]int{{2, 0, 1}},
			Rounds: []schedule.Alike{{Times: 2, Flows: []schedule.Flow{{Order: 1, Move: 1, Chunks: 1}}}}}
	}
	flow := func(f schedule.Flow) func(*schedule.Traffic) {
		return func(t *schedule.Traffic) { t.Rounds[0].Flows[0] = f }
	}
	if err := good().Check(); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		change   func(*schedule.Traffic)
		want     string
		messages bool // an error of Messages too
	}{
		{func(t *schedule.Traffic) { t.Size = 0 }, "traffic of 0 ranks, want 1 to 16777216", true},
		{func(t *schedule.Traffic) { t.Size = 1<<24 + 1 }, "traffic of 16777217 ranks", true},
		{func(t *schedule.Traffic) { t.Chunks = 0 }, "traffic of 0 chunks, want 1 to 4294967296", true},
		{func(t *schedule.Traffic) { t.Orders[0] = nil }, "order 1 of a traffic is empty", true},
		{func(t *schedule.Traffic) { t.Orders[0] = []int{0, 1} }, "order 1 of a traffic is no permutation of 0 to 2", true},
		{func(t *schedule.Traffic) { t.Orders[0] = []int{0, 1, 1} }, "no permutation", false},
		{func(t *schedule.Traffic) { t.Orders[0] = []int{0, 1, 3} }, "no permutation", true},
		{func(t *schedule.Traffic) { t.Orders[0] = []int{0, 1, -1} }, "no permutation", true},
		{func(t *schedule.Traffic) { t.Rounds[0].Times = 0 }, "rounds 0 of a traffic: 0 times, want 1 to 16777216", false},
		{func(t *schedule.Traffic) { t.Rounds[0].Times = 1<<24 + 1 }, "16777217 times", false},
		{flow(schedule.Flow{Order: 2, Move: 1}), "rounds 0 of a traffic, flow 0: order 2 of 1", true},
		{flow(schedule.Flow{Order: -1, Move: 1}), "order -1 of 1", true},
		{flow(schedule.Flow{First: 3, Move: 1}), "0 places, every 1 from place 3 on, of 3", true},
		{flow(schedule.Flow{First: -1, Move: 1}), "0 places, every 1 from place -1 on", true},
		{flow(schedule.Flow{First: 1, Count: 3, Move: 1}), "3 places, every 1 from place 1 on, of 3", true},
		{flow(schedule.Flow{Count: -1, Move: 1}), "-1 places", true},
		{flow(schedule.Flow{Every: -1, Move: 1}), "0 places", true},
		{flow(schedule.Flow{Every: 2, Count: 3, Move: 1}), "3 places, every 2 from place 0 on, of 3", true},
		{flow(schedule.Flow{Stride: -1, Move: 1}), "a digit of stride -1 and radix 0, want 1 to 3, or 0", true},
		{flow(schedule.Flow{Stride: 4, Move: 1}), "stride 4", true},
		{flow(schedule.Flow{Radix: -1, Move: 1}), "radix -1", true},
		{flow(schedule.Flow{Radix: 4, Move: 1}), "radix 4", true},
		{flow(schedule.Flow{Chunks: -1, Move: 1}), "-1 chunks of 2", true},
		{flow(schedule.Flow{Chunks: 3, Move: 1}), "3 chunks of 2", true},
	}
	for _, tt := range tests {
		bad := good()
		tt.change(bad)
		if err := bad.Check(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want one with %q", err, tt.want)
		}
		if _, err := bad.Messages(nil, 0); (err != nil) != tt.messages {
			t.Errorf("%s: Messages returns error %v", tt.want, err)
		}
	}
	for _, tt := range []struct {
		change func(*schedule.Traffic)
		i      int
		want   string
	}{
		{func(*schedule.Traffic) {}, 1, "no rounds 1 in the traffic"},
		{func(*schedule.Traffic) {}, -1, "no rounds -1"},
		{flow(schedule.Flow{Move: 3}), 0, "rounds 0 of a traffic, flow 0: place 0 sends to place 0 of 3"},
		{flow(schedule.Flow{Radix: 2, Move: 1}), 0, "place 2 sends to place 3 of 3"},
	} {
		bad := good()
		tt.change(bad)
		if got, err := bad.Messages(nil, tt.i); err == nil || len(got) > 0 || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v, error %v, want one with %q", got, err, tt.want)
		}
	}
	if err := (*schedule.Traffic)(nil).Check(); err == nil {
		t.Error("nil is a traffic")
	}
}
