package main

import (
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; run with -update and look at it. Got:\n%s", path, got)
	}
}

// report runs the command on lines.
func report(t *testing.T, lines string, args ...string) (string, error) {
	t.Helper()
	raw := filepath.Join(t.TempDir(), "raw.csv")
	if err := os.WriteFile(raw, []byte(lines), 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	s, err := parseFlags(append(args, raw), io.Discard)
	if err != nil {
		return "", err
	}
	err = s.report(&out)
	return out.String(), err
}

// TestTables summarizes a made-up raw file: round 2 of the all-reduce and all rounds of the broadcast are slow.
func TestTables(t *testing.T) {
	raw := compareGolden(t, "raw.csv", "tables")
	got, err := report(t, raw, "-n", "2", "-best", "2")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "choice.txt", got)
}

// TestSharedMemory: processes that share memory have the tables of goroutines, and their floor.
func TestSharedMemory(t *testing.T) {
	raw, err := os.ReadFile("testdata/raw.csv")
	if err != nil {
		t.Fatal(err)
	}
	goroutines, err1 := report(t, string(raw), "-n", "2")
	processes, err2 := report(t, strings.ReplaceAll(string(raw), ",inproc,", ",shm,"), "-n", "2")
	if goroutines != processes || err1 != nil || err2 != nil || !strings.Contains(processes, "ours/floor") {
		t.Errorf("%v, %v, processes:\n%s\nwant\n%s", err1, err2, processes, goroutines)
	}
}

// TestSockets summarizes two of our transports, which have no floor.
func TestSockets(t *testing.T) {
	compareGolden(t, "sockets_raw.csv", "sockets")
}

// TestMPI summarizes ours over MPI and MPI from C: round 3 is slow, the floor of an all-reduce has two patterns, and
// at 4 MiB nothing but ours is known.
func TestMPI(t *testing.T) {
	compareGolden(t, "mpi_raw.csv", "mpi", "-mpi")
}

// compareGolden compares the text and the table of a raw file with the golden files of a name. It returns the raw file.
func compareGolden(t *testing.T, rawName, name string, args ...string) string {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + rawName)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "table.csv")
	got, err := report(t, string(raw), append(args, "-n", "2", "-o", file)...)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name+".txt", got)
	table, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	golden(t, name+".csv", string(table))
	return string(raw)
}

func TestBadLines(t *testing.T) {
	const ours = "ours,1,25,allreduce,inproc,Auto,auto,2,8,2,float32,ADD,-1,oop,0.5,0.5,0.5,0.016,0.016,0,0"
	if _, err := report(t, ours+"\n", "-n", "2"); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		`a,"b`:                                 "quote",
		"a,b":                                  "too short",
		"ours,1":                               "too short",
		ours[:60]:                              "neither",
		"x" + ours:                             "neither",
		strings.Replace(ours, "0,0", "7,0", 1): "7 wrong values",
		strings.Replace(ours, "auto,2", "auto,4", 1): "another number of replicas",
		strings.Replace(ours, "0.5", "0", 1):         "not a time",
		strings.Replace(ours, "0.5", "x", 1):         `"x"`,
		ours + ",0.25,0":                             "not a time",
		ours + ",0.25,-2":                            "not a time",
		ours + ",0.25,y":                             `"y"`,
		"peer,1,25,openmpi-shm+thp,2,allreduce,f32,oop,8,dirty,100,0,1,1,1,1": "not a time",
		strings.Replace(ours, "ours,1", "ours,a", 1):                          `"a"`,
	} {
		if _, err := report(t, ours+"\n"+line+"\n", "-n", "2"); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "line 2") {
			t.Errorf("%q: %v, want %q", line, err, want)
		}
	}
	for _, args := range [][]string{nil, {"-n", "0"}, {"-n", "2", "more"}, {"-n", "2", "-best", "-1"}, {"-x"}} {
		if _, err := report(t, ours+"\n", args...); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestNumbers(t *testing.T) {
	for _, c := range []struct{ got, want float64 }{
		{median(nil), 0}, {median([]float64{3}), 3}, {median([]float64{3, 1}), 2}, {median([]float64{9, 1, 2}), 2},
		{ratio(1, 2), .5}, {ratio(0, 2), 0}, {ratio(2, 0), 0},
		{geometric(nil), 0}, {geometric([]float64{0}), 0}, {geometric([]float64{2, 8}), 4}, {geometric([]float64{2, 0, 8}), 4},
	} {
		if math.Abs(c.got-c.want) > 1e-12 {
			t.Errorf("%v, want %v", c.got, c.want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add("peer,1,25.5,openmpi-shm+thp:a3,2,bcast,f32,oop,8,b2b,100,0.190,0.1,0.2,0.1,0.1")
	f.Add("floor,1,0,arlimit,2,8,oop,reg,2,0.120,0.100,0.067,0.067")
	f.Fuzz(func(t *testing.T, line string) {
		if s, err := parse(strings.Split(line, ","), 2); err == nil && !(s.micro > 0) && !(s.dirty > 0) {
			t.Fatalf("%+v", s)
		}
	})
}
