package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
)

// slice is one of a row, with those inside it.
type slice struct {
	name   string
	args   map[string]any
	inside []*slice
}

// read parses a file and nests the slices of each row as Perfetto does.
func read(t *testing.T, file string) map[string][]*slice {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		TraceEvents []struct {
			Name, Ph string
			TS       *float64
			PID, TID *int
			Args     map[string]any
		}
		DisplayTimeUnit string
	}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	names, roots, open, last := map[int]string{}, map[string][]*slice{}, map[int][]*slice{}, map[int]float64{}
	for i, e := range content.TraceEvents {
		if e.TS == nil || e.PID == nil || e.TID == nil {
			t.Fatalf("event %d lacks a field: %+v", i, e)
		}
		row, stack := *e.TID, open[*e.TID]
		if e.Ph != "M" && *e.TS < last[row] {
			t.Errorf("event %d of row %d goes back in time", i, row)
		}
		last[row] = *e.TS
		switch e.Ph {
		case "M":
			names[row] = fmt.Sprint(e.Args["name"])
		case "B":
			s := &slice{name: e.Name, args: e.Args}
			if len(stack) == 0 {
				roots[names[row]] = append(roots[names[row]], s)
			} else {
				top := stack[len(stack)-1]
				top.inside = append(top.inside, s)
			}
			open[row] = append(stack, s)
		case "E":
			if len(stack) == 0 {
				t.Fatalf("event %d ends nothing", i)
			}
			s := stack[len(stack)-1]
			if s.args == nil {
				s.args = map[string]any{}
			}
			for k, v := range e.Args {
				s.args[k] = v
			}
			open[row] = stack[:len(stack)-1]
		default:
			t.Errorf("event %d: phase %q", i, e.Ph)
		}
	}
	for row, stack := range open {
		if len(stack) > 0 {
			t.Errorf("%d slices of row %d have no end", len(stack), row)
		}
	}
	return roots
}

func TestRun(t *testing.T) {
	for _, n := range []int{1, 2, 4} {
		file := filepath.Join(t.TempDir(), "trace.json")
		var said strings.Builder
		if err := run(t.Context(), n, file, nil, &said); err != nil {
			t.Fatal(err)
		}
		rows := read(t, file)
		if len(rows) != n {
			t.Errorf("%d replicas: %d rows", n, len(rows))
		}
		total := 0
		for name, row := range rows {
			var calls []string
			for _, s := range row {
				calls = append(calls, s.name)
				total += 1 + len(s.inside)
				for i, round := range s.inside {
					if round.name != fmt.Sprintf("round %d", i) || len(round.inside) > 0 {
						t.Errorf("%s: %s: round %d is %+v", name, s.name, i, round)
					}
				}
			}
			want := []string{
				`broadcast #1 "weights"`, `all-reduce #2 "grads, peer memory"`,
				`all-reduce #3 "grads, messages round a ring"`,
				`all-reduce #4 "grads, a ring in step"`, `all-reduce #5 "loss"`,
			}
			if !slices.Equal(calls, want) {
				t.Fatalf("%s: %q, want %q", name, calls, want)
			}
			ring := row[2]
			if n > 1 && (len(ring.inside) != 2*(n-1) || ring.args["method"] != "clockwise_ring" ||
				ring.args["path"] != "messages" || ring.args["bytes"] != float64(4<<16)) {
				t.Errorf("%s: %+v", name, ring)
			}
			if n > 1 && ring.inside[0].args["bytes sent and received"] != float64(2*(4<<16)/n) {
				t.Errorf("%s: first round %v", name, ring.inside[0].args)
			}
		}
		if !strings.HasPrefix(said.String(), fmt.Sprintf("%d slices of %d replicas in ", total, n)) {
			t.Errorf("%d replicas, %d slices: %q", n, total, said.String())
		}
	}
}

func TestRunErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	for want, err := range map[string]error{
		"-n 0, want 1 to 64":  run(t.Context(), 0, file, nil, io.Discard),
		"-n 65, want 1 to 64": run(t.Context(), 65, file, nil, io.Discard),
		`argument "x"`:        run(t.Context(), 2, file, []string{"x"}, io.Discard),
		"no such file":        run(t.Context(), 2, filepath.Join(file, "none", "t.json"), nil, io.Discard),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// What was traced of a failure is written.
func TestRunCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "trace.json")
	err := run(ctx, 2, file, nil, io.Discard)
	if !errors.Is(err, context.Canceled) || gcl.Dump(err) == "" {
		t.Fatalf("error %v", err)
	}
	found := false
	for _, row := range read(t, file) {
		for _, s := range row {
			found = found || strings.Contains(fmt.Sprint(s.args["error"]), "canceled")
		}
	}
	if !found {
		t.Error("no slice has the error")
	}
}
