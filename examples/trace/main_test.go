package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// slice is one of a row, with those inside it.
type slice struct {
	name   string
	args   map[string]any
	inside []*slice
}

// read parses a file and nests the slices of each row as Perfetto does: an entry of rows for each replica. Arrows are
// the ids of those that begin and end.
func read(t *testing.T, file string) (rows map[string][]*slice, arrows int) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var content struct {
		TraceEvents []struct {
			Name, Ph, ID string
			TS, Dur      float64
			PID          int
			Args         map[string]any
		}
	}
	if err := json.Unmarshal(text, &content); err != nil {
		t.Fatal(err)
	}
	type open struct {
		*slice
		end float64
	}
	names, stacks, ids := map[int]string{}, map[int][]open{}, map[string]int{}
	rows = map[string][]*slice{}
	for i, e := range content.TraceEvents {
		switch e.Ph {
		case "M":
			if e.Name == "process_name" {
				names[e.PID], _, _ = strings.Cut(fmt.Sprint(e.Args["name"]), " on ")
			}
		case "X", "i":
			stack := stacks[e.PID]
			for len(stack) > 0 && stack[len(stack)-1].end <= e.TS {
				stack = stack[:len(stack)-1]
			}
			s := &slice{name: e.Name, args: e.Args}
			if len(stack) == 0 {
				rows[names[e.PID]] = append(rows[names[e.PID]], s)
			} else {
				top := stack[len(stack)-1]
				top.inside = append(top.inside, s)
			}
			stacks[e.PID] = append(stack, open{s, e.TS + e.Dur})
		case "s", "f":
			ids[e.ID]++
		default:
			t.Errorf("event %d: phase %q", i, e.Ph)
		}
	}
	for id, ends := range ids {
		if ends != 2 {
			t.Errorf("arrow %s has %d ends", id, ends)
		}
	}
	return rows, len(ids)
}

// onePass has auto take one pass over peer memory, whatever was measured: by an empty table.
func onePass(t *testing.T) { t.Setenv("GCL_OPTIONS", `{"tuning": "\n"}`) }

func TestRun(t *testing.T) {
	onePass(t)
	for _, n := range []int{1, 2, 4} {
		file := filepath.Join(t.TempDir(), "trace.json")
		var said strings.Builder
		if err := trace(t.Context(), n, file, &said); err != nil {
			t.Fatal(err)
		}
		rows, arrows := read(t, file)
		if len(rows) != n || arrows != 2*n*(n-1) { // of the one that goes by messages, round a ring
			t.Errorf("%d replicas: %d rows, %d arrows", n, len(rows), arrows)
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
				`broadcast #1 "weights"`, `all-reduce #2 "grads"`,
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
			if n > 1 && (ring.inside[0].args["bytes sent"] != float64((4<<16)/n) ||
				ring.inside[0].args["bytes received"] != float64((4<<16)/n)) {
				t.Errorf("%s: first round %v", name, ring.inside[0].args)
			}
		}
		if !strings.HasPrefix(said.String(), fmt.Sprintf("%d slices of %d replicas in ", total, n)) {
			t.Errorf("%d replicas, %d slices: %q", n, total, said.String())
		}
	}
}

// TestMain runs the program instead of the tests where TestProcesses has started this binary as a replica.
func TestMain(m *testing.M) {
	file := os.Getenv("TRACE_TEST_FILE")
	if file == "" {
		os.Exit(m.Run())
	}
	if err := trace(context.Background(), 2, file, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestProcesses runs two processes, each of which writes a file, and joins the files.
func TestProcesses(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "trace.json")
	var processes [2]*exec.Cmd
	var said [2]strings.Builder
	for rank := range processes {
		p := exec.CommandContext(t.Context(), os.Args[0])
		p.Env = append(os.Environ(), "TRACE_TEST_FILE="+file, "WORLD_SIZE=2", fmt.Sprint("RANK=", rank),
			"GCL_RENDEZVOUS=dir:"+dir, "GCL_SECRET=a secret of this test")
		p.Stdout, p.Stderr = &said[rank], &said[rank]
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		processes[rank] = p
	}
	var files []string
	for rank, p := range processes {
		err := p.Wait()
		want := fmt.Sprintf("slices of replica %d in ", rank)
		if err != nil || !strings.Contains(said[rank].String(), want) {
			t.Fatalf("replica %d: %v, %s", rank, err, said[rank].String())
		}
		files = append(files, filepath.Join(dir, fmt.Sprintf("trace-%d.json", rank)))
	}
	if err := join(file, files, io.Discard); err != nil {
		t.Fatal(err)
	}
	if rows, arrows := read(t, file); len(rows) != 2 || arrows == 0 {
		t.Errorf("%d rows, %d arrows", len(rows), arrows)
	}
	if err := join(file, nil, io.Discard); err == nil {
		t.Error("no error without files")
	}
}

func TestRunErrors(t *testing.T) {
	file := filepath.Join(t.TempDir(), "trace.json")
	for args, want := range map[string]struct {
		code   int
		stderr string
	}{
		"-n 0":                               {command.Usage, "-n 0, want 1 to 64"},
		"-n 65":                              {command.Usage, "-n 65, want 1 to 64"},
		"x":                                  {command.Usage, `argument "x"`},
		"-join " + file:                      {command.Usage, "there is no file to join"},
		"-join " + file + " " + file:         {command.Failed, "no such file"},
		"-n 2 -o " + file + "/none/trace.js": {command.Failed, "no such file"},
	} {
		var out, errs strings.Builder
		if code := run(t.Context(), strings.Fields(args), &out, &errs); code != want.code || out.Len() > 0 ||
			!strings.HasPrefix(errs.String(), "trace: ") || !strings.Contains(errs.String(), want.stderr) {
			t.Errorf("%s: exit code %d, printed %q, %q, want %+v", args, code, &out, &errs, want)
		}
	}
}

// What was traced of a failure is written.
func TestRunCancelled(t *testing.T) {
	onePass(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := filepath.Join(t.TempDir(), "trace.json")
	err := trace(ctx, 2, file, io.Discard)
	if !errors.Is(err, context.Canceled) || gcl.Dump(err) == "" {
		t.Fatalf("error %v", err)
	}
	found := false
	rows, _ := read(t, file)
	for _, row := range rows {
		for _, s := range row {
			found = found || strings.Contains(fmt.Sprint(s.args["error"]), "canceled")
		}
	}
	if !found {
		t.Error("no slice has the error")
	}
}
