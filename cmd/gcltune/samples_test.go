package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

// of are samples of a machine over tcp.
func of(name string, points ...point) samples {
	return samples{origin{Origin: measure.Origin{Settings: "gcltune", Date: "2026-11-26T00:00:00Z", Version: "v1"},
		Name: name, Transport: "tcp", Operator: "ADD", DType: "float32", Passes: 3}, points}
}

// TestSeveral: of several machines' samples a table has what gains on each, at two sizes on end or more, over what auto
// takes without a rule. Between four that is recursive_doubling up to 64 KiB, and direct above.
func TestSeveral(t *testing.T) {
	fast := of("fast", at(4, 8, "recursive_doubling 10, direct 20, broadcast 5"),
		at(4, 1<<10, "recursive_doubling 10, direct 20, broadcast 5"),
		at(4, 64<<10, "recursive_doubling 10, direct 9, broadcast 5"),
		at(4, 128<<10, "recursive_doubling 10, direct 9, broadcast 5, swing 1"),
		at(4, 1<<20, "recursive_doubling 10, broadcast 9"), // without what auto takes
		at(4, 2<<20, "recursive_doubling 10, direct 9, broadcast 1"))
	slow := of("slow", at(4, 8, "recursive_doubling 100, direct 60, broadcast 90"),
		at(4, 1<<10, "recursive_doubling 100, direct 60, broadcast 70"),
		at(4, 64<<10, "recursive_doubling 100, direct 90, broadcast 60 70 65"),
		at(4, 128<<10, "recursive_doubling 100, direct 90, broadcast 45, swing 10"),
		at(4, 1<<20, "recursive_doubling 100, broadcast 10"),
		at(4, 2<<20, "recursive_doubling 100, direct 90, broadcast 10"), at(4, 4<<20, "direct 1"))
	got, err := tableOf([]samples{fast, slow})
	const heading = `# What is 1.3 times as fast as what auto takes without a rule, and by more than the spread, on each machine.
# gcltune
# fast, 2026-11-26T00:00:00Z, transport tcp, gogcl.dev v1
# Medians of up to 3 passes, ADD float32. docs/design/tuning.md says how the methods were chosen.
# gcltune
# slow, 2026-11-26T00:00:00Z, transport tcp, gogcl.dev v1
# Medians of up to 3 passes, ADD float32. docs/design/tuning.md says how the methods were chosen.
#
`
	const want = heading + `all-reduce  4-8  1KiB  broadcast  1 KiB: 5.00 us, recursive_doubling 10.00 on fast; ` +
		`70.00 us, recursive_doubling 100.0 on slow
all-reduce  4-8  1MiB  direct     as without a rule
`
	if string(got) != want || err != nil {
		t.Errorf("have\n%s%v\nwant\n%s", got, err, want)
	}
	for _, p := range slow.points { // within the spread
		for i := range p.Ways {
			p.Ways[i].Times = append(p.Ways[i].Times, p.Ways[i].Times[0]*4, p.Ways[i].Times[0]/4)
		}
	}
	none := strings.TrimSuffix(heading, "#\n")
	if got, err = tableOf([]samples{fast, slow}); string(got) != none || err != nil {
		t.Errorf("have\n%s%v\nwant\n%s", got, err, none)
	}
}

// TestTableWithoutAMethod: where a way is chosen that does not do a number of ranks, that number has no rules.
func TestTableWithoutAMethod(t *testing.T) {
	text, err := tableBy([]point{at(3, 8, "direct 1")}, "# here\n", func([]point, []string) []choice {
		return []choice{{0, "swing", "as it was"}}
	})
	const want = "# here\n#\nall-reduce  4  0  swing  as it was\n"
	if string(text) != want || err != nil {
		t.Errorf("%s%v, want %s", text, err, want)
	}
}

// TestSeveralFails: what are no samples of several machines over one transport is an error.
func TestSeveralFails(t *testing.T) {
	p := at(2, 8, "direct 1")
	other := of("b", p)
	other.Transport = "unix"
	for want, all := range map[string][]samples{
		"two files of samples are of one machine, a: want one of each":         {of("a", p), of("b", p), of("a", p)},
		"samples over tcp and over unix: want one transport":                   {of("a", p), other},
		"samples of a machine without a name, which may be that of the others": {of("a", p), of("", p)},
	} {
		if text, err := tableOf(all); err == nil || err.Error() != want {
			t.Errorf("%v, %s, want %s", err, text, want)
		}
	}
}

// TestSamples: what -samples writes -from reads, and makes the same table of it.
func TestSamples(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	file, table, again := in("own.jsonl"), in("own.txt"), in("again.txt")
	got := perform(t, t.Context(), nil,
		append(little, "-samples", file, "-table", table, "-n", "2", "-method", "direct,broadcast")...)
	if got.code != command.OK || !strings.HasPrefix(got.stdout, file+" has 4 points, measured in ") ||
		!strings.Contains(got.stdout, table+" has ") {
		t.Fatal(got)
	}
	got = perform(t, t.Context(), nil, "-from", file, "-table", again)
	a, err := os.ReadFile(table)
	b, err2 := os.ReadFile(again)
	if got.code != command.OK || err != nil || err2 != nil || string(a) != string(b) ||
		!strings.HasSuffix(got.stdout, ", made of "+file+"\n") {
		t.Errorf("%+v, %v, %v\n%s\n%s", got, err, err2, a, b)
	}
	got = perform(t, t.Context(), nil, "-from", file+","+file, "-table", again)
	if got.code != command.Failed || !strings.Contains(got.stderr, "two files of samples are of one machine") {
		t.Error(got)
	}
	bad := filepath.Join(dir, "bad")
	for text, want := range map[string]string{
		"":                          "bad is no file of samples: its first line: EOF",
		"{\"colour\": 1}":           "bad is no file of samples: its first line: json: unknown field",
		"{}":                        "bad has no points",
		"{}\n{\"N\": 2}":            "after 0 points: 2 replicas, 0 bytes and 0 ways, want 2 to 1024",
		"{}\n{\"N\": 2, \"Size\":8": "after 0 points: unexpected EOF",
		`{}` + "\n" + `{"N": 2, "Size": 8, "Collective": "x", "Ways": [{"Way": "direct", "Times": [0]}]}`: "direct of x with " +
			"times of [0], want one or more, each above 0",
	} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got := perform(t, t.Context(), nil, "-from", bad, "-table", again)
		if got.code != command.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%q: %+v, want %s", text, got, want)
		}
	}
	for args, want := range map[string]string{
		"-from x":                                "-from wants -table, the file for the rules",
		"-from x -table " + again:                "no such file or directory",
		"-from x -n 2 -table " + again:           "-n does not go with -from, which measures nothing",
		"-from x -table " + dir:                  "is a directory, want a file",
		"-samples=":                              "-samples has no name of a file",
		"-samples " + dir:                        "is a directory, want a file",
		"-samples " + again + " -table " + again: "-samples and -table are one file, ",
	} {
		got := perform(t, t.Context(), nil, strings.Fields(args)...)
		if got.code != command.Usage || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v, want %s", args, got, want)
		}
	}
}

// TestBuiltIn: each table of the library is what gcltune makes of the samples beside it, or of those of all machines.
func TestBuiltIn(t *testing.T) {
	const tables = "../../methods/tables"
	files, err := filepath.Glob(tables + "/*/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	byTransport := map[string][]samples{}
	for _, file := range files {
		s, err := readSamples(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		if s.Transport != name || methods.RulesOn(s.Name, name) == methods.DefaultRules(name) {
			t.Errorf("%s has samples of %s over %s", file, s.Name, s.Transport)
		}
		text, err := tableOf([]samples{s})
		if err != nil {
			t.Errorf("%s: %v", file, err)
		}
		want[strings.TrimSuffix(file, ".jsonl")+".txt"] = string(text)
		byTransport[name] = append(byTransport[name], s)
	}
	for name, all := range byTransport {
		if len(all) < 2 { // on one machine it may be the machine
			continue
		}
		text, err := tableOf(all)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if rules, err := methods.ParseRules(text); err == nil && len(rules.All()) > 0 {
			want[filepath.Join(tables, "all", name+".txt")] = string(text)
		}
	}
	have, err := filepath.Glob(tables + "/*/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	have = slices.DeleteFunc(have, func(file string) bool { return filepath.Base(filepath.Dir(file)) == "links" })
	if len(have) != len(want) {
		t.Errorf("%d tables, and samples of %d", len(have), len(want))
	}
	for _, file := range have {
		if text, err := os.ReadFile(file); err != nil || string(text) != want[file] {
			t.Errorf("%s, %v, is not what its samples make: go run ./cmd/gcltune -from", file, err)
		}
	}
}
