package main

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"gogcl.dev/gcl"
)

// timeline collects what replicas tell. A replica is told of one thing at a time, on its own goroutine, so each writes
// to a row of its own without a lock. (With a Dup it would be a row for each connection.)
type timeline struct {
	start time.Time
	rows  [][]event
}

// event is one of the Trace Event Format, which both programs read: the beginning "B" or the end "E" of a slice, where
// a slice that begins within another is drawn inside; or "M", the name of a row.
type event struct {
	Name  string         `json:"name,omitempty"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"` // microseconds
	PID   int            `json:"pid"`
	TID   int            `json:"tid"` // the row
	Args  map[string]any `json:"args,omitempty"`
}

func newTimeline(replicas int, start time.Time) *timeline {
	t := &timeline{start: start, rows: make([][]event, replicas)}
	for r := range t.rows {
		t.rows[r] = append(t.rows[r],
			event{Name: "thread_name", Phase: "M", TID: r, Args: map[string]any{"name": fmt.Sprintf("replica %d", r)}})
	}
	return t
}

// add notes an event of a replica, now.
func (t *timeline) add(replica int, phase, name string, args map[string]any) {
	now := float64(time.Since(t.start).Nanoseconds()) / 1e3
	t.rows[replica] = append(t.rows[replica], event{Name: name, Phase: phase, Time: now, TID: replica, Args: args})
}

// trace returns the functions that collect.
func (t *timeline) trace() *gcl.Trace {
	sent := make([]int, len(t.rows)) // by replica, of the round in progress
	return &gcl.Trace{
		CollectiveStart: func(c gcl.TraceCall) {
			t.add(c.Replica, "B", c.String(),
				map[string]any{"dtype": c.DType.String(), "elements": c.Elements, "bytes": c.Bytes})
		},
		RoundStart: func(c gcl.TraceCall, round int) {
			sent[c.Replica] = 0
			t.add(c.Replica, "B", fmt.Sprintf("round %d", round), nil)
		},
		Segment: func(c gcl.TraceCall, _ int, s gcl.TraceSegment) { sent[c.Replica] += s.Bytes },
		RoundEnd: func(c gcl.TraceCall, _ int, _ error) {
			t.add(c.Replica, "E", "", map[string]any{"bytes sent and received": sent[c.Replica]})
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) {
			args := map[string]any{"method": c.Method.String(), "implementation": c.Implementation.String(),
				"path": c.Path.String()}
			if err != nil {
				args["error"] = err.Error()
			}
			t.add(c.Replica, "E", "", args)
		},
	}
}

// slices is how many there are.
func (t *timeline) slices() int {
	n := 0
	for _, row := range t.rows {
		for _, e := range row {
			if e.Phase == "B" {
				n++
			}
		}
	}
	return n
}

// write writes the file.
func (t *timeline) write(w io.Writer) error {
	var all []event
	for _, row := range t.rows {
		all = append(all, row...)
	}
	return json.NewEncoder(w).Encode(map[string]any{"traceEvents": all, "displayTimeUnit": "ns"})
}
