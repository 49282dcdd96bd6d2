package main

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// sample is made up.
func sample() []measurement {
	m := measurement{
		Collective: "allreduce", Transport: "inproc",
		Implementation: "Auto", Method: "auto", N: 8, Bytes: 8, Count: 2, DType: "float32", Op: "ADD",
		Root: -1, Place: "oop", P50: 0.7012, P90: 0.9, P99: 12.3456, AlgBW: 0.0114, BusBW: 0.01995,
	}
	ip := m
	ip.Place, ip.P50, ip.Wrong, ip.Allocs = "ip", 1.25, 3, 0.25
	large := m
	large.Bytes, large.Count, large.P50, large.P90, large.P99, large.AlgBW, large.BusBW = 64<<20, 16<<20, 36012.3,
		37000, 38123.9, 1.8635, 3.26113
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
	out := newOutput(s, &b)
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

func TestGolden(t *testing.T) {
	for name, f := range map[string]format{"sample.txt": asTable, "sample.json": asJSON, "sample.csv": asCSV} {
		golden(t, name, printed(t,
			&settings{format: f, places: []place{outOfPlace, inPlace}, time: 100 * time.Millisecond}, sample()))
	}
	golden(t, "oop.txt", printed(t, &settings{places: []place{outOfPlace}, iters: 20, sync: true, reproducible: true},
		sample()[2:3]))
	golden(t, "implementations.txt", printed(t, &settings{places: []place{outOfPlace}, iters: 1}, twoImplementations()))
	if got := string(printed(t, &settings{format: asJSON}, nil)); got != "[]\n" {
		t.Errorf("JSON of nothing: %q", got)
	}
}

// TestFields holds on to the fields of -json, which others read.
func TestFields(t *testing.T) {
	const want = "collective transport implementation method n bytes count dtype op root place p50_us p90_us p99_us " +
		"algbw_gbps busbw_gbps wrong allocs"
	var got []string
	for i := range reflect.TypeFor[measurement]().NumField() {
		got = append(got, reflect.TypeFor[measurement]().Field(i).Tag.Get("json"))
	}
	if strings.Join(got, " ") != want {
		t.Errorf("fields %v, want %s", got, want)
	}
	var out []map[string]any
	if err := json.Unmarshal(printed(t, &settings{format: asJSON}, sample()), &out); err != nil ||
		len(out[0]) != len(got) {
		t.Errorf("%v, %d fields in an object, want %d", err, len(out[0]), len(got))
	}
}

// TestTableWidth checks that the columns of header and rows end in the same places.
func TestTableWidth(t *testing.T) {
	s := &settings{places: []place{outOfPlace, inPlace}, time: time.Second}
	width := 0
	for line := range strings.Lines(string(printed(t, s, sample()))) {
		if line[0] == ' ' || strings.Contains(line, "algbw") {
			if width == 0 {
				width = len(line)
			}
			if len(line) != width {
				t.Errorf("%d wide, want %d: %s", len(line), width, line)
			}
		}
	}
}
