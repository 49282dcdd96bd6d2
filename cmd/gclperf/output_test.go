package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/measure"
)

// sample is made up.
func sample() []measurement {
	m := measurement{
		Collective: "allreduce", Transport: "inproc",
		Implementation: "Auto", Method: "auto", N: 8, Bytes: 8, Count: 2, DType: "float32", Op: "ADD",
		Root: -1, Place: "oop", P50: 0.7012, P90: 0.9, P99: 12.3456, AlgBW: 0.0114, BusBW: 0.01995, Load: 0.25,
		Dirty: -1, CPU: 1.375, Path: "small", OfBound: -1,
		Origin: measure.Origin{Version: "v1.2.3", Date: "2026-11-23T03:04:05Z", Machine: "Fast, Inc. linux/amd64",
			Cores: 8, GOMAXPROCS: 4, Settings: `-time 100ms -c 1 GCL_OPTIONS={"method": "auto"}`},
	}
	ip := m
	ip.Place, ip.P50, ip.Wrong, ip.Allocs = "ip", 1.25, 3, 0.25
	large := m
	large.Bytes, large.Count, large.P50, large.P90, large.P99, large.AlgBW, large.BusBW = 64<<20, 16<<20, 36012.3,
		37000, 38123.9, 1.8635, 3.26113
	large.CPU, large.Path = 123456.7, "peer memory"
	largeIP := large
	largeIP.Place = "ip"
	bc := large
	bc.Collective, bc.Op, bc.Root, bc.Method = "broadcast", "none", 3, "direct"
	bcIP := bc
	bcIP.Place = "ip"
	return []measurement{m, ip, large, largeIP, bc, bcIP}
}

// twoImplementations is one method in two ways.
func twoImplementations() []measurement {
	by := [2]measurement{sample()[0], sample()[0]}
	by[0].Implementation, by[1].Implementation = "Syncless", "Syncful"
	return by[:]
}

func printed(t *testing.T, s *settings, all []measurement) []byte {
	t.Helper()
	var b bytes.Buffer
	out := newOutput(s, s.format, &b, false)
	for _, m := range all {
		if err := out.add(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.end(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// outOfPlace are the measurements of one place.
func outOfPlace(all []measurement) []measurement {
	return slices.DeleteFunc(all, func(m measurement) bool { return m.Place != "oop" })
}

// comparison is the table that puts transports side by side.
func comparison(text []byte) []byte {
	_, rest, _ := bytes.Cut(text, []byte("# How many times"))
	return rest
}

var both = []measure.Place{measure.OutOfPlace, measure.InPlace}

func TestGolden(t *testing.T) {
	for name, f := range map[string]format{"sample.txt": asTable, "sample.json": asJSON, "sample.csv": asCSV} {
		golden(t, name, printed(t,
			&settings{format: f, places: both, time: 100 * time.Millisecond, tries: 1}, sample()))
	}
	golden(t, "oop.txt", printed(t, &settings{places: both[:1], iters: 20, sync: true, reproducible: true, tries: 1,
		verbose: true}, sample()[2:3]))
	golden(t, "implementations.txt", printed(t, &settings{places: both[:1], iters: 1, tries: 1},
		twoImplementations()))
	golden(t, "transports.txt", printed(t, &settings{places: both[:1], iters: 1, tries: 1},
		outOfPlace(threeTransports())))
	golden(t, "some.txt", comparison(printed(t, &settings{places: both, iters: 1, tries: 1}, threeTransports())))
	rewritten := sample()[:4]
	for i := range rewritten {
		rewritten[i].Dirty = rewritten[i].P50 * float64(i+1)
	}
	golden(t, "dirty.txt", printed(t, &settings{places: both, time: time.Second, dirty: true, tries: 1}, rewritten))
	processors := sample()[:4]
	processors[1].CPU = -1
	golden(t, "cpu.txt", printed(t, &settings{places: both, time: time.Second, cpu: true, tries: 1}, processors))
	unchecked := sample()[:2]
	unchecked[0].Wrong, unchecked[1].Wrong = -1, -1
	golden(t, "verbose.txt", printed(t, &settings{places: both, time: time.Second, verbose: true}, unchecked))
	if got := string(printed(t, &settings{format: asJSON}, nil)); got != "[]\n" {
		t.Errorf("JSON of nothing: %q", got)
	}
}

// TestFields holds on to the fields of -json, which others read.
func TestFields(t *testing.T) {
	const want = "collective transport implementation method n bytes count dtype op root place p50_us p90_us p99_us " +
		"algbw_gbps busbw_gbps wrong allocs load dirty_p50_us cpu_us path of_bound version date machine cores gomaxprocs settings"
	got := fieldNames()
	if strings.Join(got, " ") != want {
		t.Errorf("fields %v, want %s", got, want)
	}
	var out []map[string]any
	if err := json.Unmarshal(printed(t, &settings{format: asJSON}, sample()), &out); err != nil ||
		len(out[0]) != len(got) {
		t.Errorf("%v, %d fields in an object, want %d", err, len(out[0]), len(got))
	}
}

// TestTableWidth checks that the columns of header and rows end in the same places, and not beyond the 120th.
func TestTableWidth(t *testing.T) {
	s := &settings{places: both, time: time.Second, tries: 1, verbose: true}
	all := sample()
	for i := range all {
		all[i].Op, all[i].Bytes, all[i].Count = "LOGICAL_AND", 1<<30, 1<<28
		all[i].Load = -1 // not known
		all[i].Allocs = []float64{0.0021187, 123.456789, 1234567}[i%3]
		all[i].P50, all[i].P99 = 12345678, 1234567
	}
	width := 0
	for line := range strings.Lines(string(printed(t, s, all))) {
		if len(line) > 120+len("\n") {
			t.Errorf("%d wide: %s", len(line)-1, line)
		}
		if line[0] == ' ' || strings.Contains(line, "algbw") || strings.Contains(line, "allocs") {
			if width == 0 {
				width = len(line)
			}
			if len(line) != width {
				t.Errorf("%d wide, want %d: %s", len(line), width, line)
			}
		}
	}
}
