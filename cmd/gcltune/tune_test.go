package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

// at makes a point of times: "direct 1 1.1, broadcast 2".
func at(n, size int, ways string) point {
	p := point{N: n, Collective: "all-reduce", Size: size}
	for text := range strings.SplitSeq(ways, ", ") {
		words := strings.Fields(text)
		t := timed{Way: words[0]}
		for _, word := range words[1:] {
			var us float64
			if _, err := fmt.Sscan(word, &us); err != nil {
				panic(err)
			}
			t.Times = append(t.Times, us)
		}
		p.Ways = append(p.Ways, t)
	}
	return p
}

// longer is a point at which direct is the faster way, and then some that are as given.
func longer(n int, ways string) []point {
	out := []point{at(2, 8, "direct 1, broadcast 2")}
	for i := range n {
		out = append(out, at(2, 32<<(2*i), ways))
	}
	return out
}

// TestChosen: a way is replaced where another gains more than a change costs, and not before.
func TestChosen(t *testing.T) {
	for _, x := range []struct {
		name   string
		points []point
		want   string
	}{
		{"one point", []point{at(2, 8, "direct 2, broadcast 1")}, "0 broadcast"},
		{"a replacement half way", []point{at(2, 1<<8, "direct 1, broadcast 2"), at(2, 1<<10, "direct 1, broadcast 2"),
			at(2, 1<<14, "direct 2, broadcast 1"), at(2, 1<<16, "direct 2, broadcast 1")}, "0 direct, 4096 broadcast"},
		{"nearer to where they are alike", []point{at(2, 1<<8, "direct 1, broadcast 2"),
			at(2, 1<<10, "direct 1, broadcast 1.1"), at(2, 1<<14, "direct 2, broadcast 1"),
			at(2, 1<<16, "direct 2, broadcast 1")}, "0 direct, 2048 broadcast"},
		{"one that is a little faster", []point{at(2, 8, "direct 1, broadcast 2"), at(2, 32, "direct 1.04, broadcast 1"),
			at(2, 128, "direct 1.04, broadcast 1"), at(2, 512, "direct 1, broadcast 2")}, "0 direct"},
		{"one that is a little faster at several sizes", longer(3, "direct 1.04, broadcast 1"), "0 direct"},
		{"one that is a little faster at many sizes", longer(6, "direct 1.04, broadcast 1"), "0 broadcast"},
		{"a spread that is more than what it gains", []point{at(2, 8, "direct 1, broadcast 1.5"),
			at(2, 32, "direct 1.04, broadcast 0.9 1 1.2"), at(2, 128, "direct 1.04, broadcast 0.9 1 1.2"),
			at(2, 512, "direct 1, broadcast 2")}, "0 direct"},
		{"far faster at two sizes", []point{at(2, 8, "direct 1, broadcast 2"), at(2, 32, "direct 1, broadcast 2"),
			at(2, 128, "direct 3, broadcast 1"), at(2, 512, "direct 3, broadcast 1"),
			at(2, 2048, "direct 1, broadcast 2"), at(2, 8192, "direct 1, broadcast 2")},
			"0 direct, 64 broadcast, 1024 direct"},
		{"far faster at one size", []point{at(2, 8, "direct 1, broadcast 2"), at(2, 32, "direct 1, broadcast 2"),
			at(2, 128, "direct 30, broadcast 1"), at(2, 512, "direct 1, broadcast 2"),
			at(2, 2048, "direct 1, broadcast 2")}, "0 direct"},
		{"far faster at the least", []point{at(2, 8, "direct 30, broadcast 1"), at(2, 32, "direct 1, broadcast 2"),
			at(2, 128, "direct 1, broadcast 2"), at(2, 512, "direct 1, broadcast 90")}, "0 direct"},
		{"far faster at the largest", []point{at(2, 8, "direct 1, broadcast 90"), at(2, 32, "direct 1, broadcast 2"),
			at(2, 128, "direct 1, broadcast 2"), at(2, 512, "direct 30, broadcast 1")}, "0 direct"},
		{"each at one of two sizes", []point{at(2, 8, "direct 1, broadcast 2"), at(2, 32, "direct 3, broadcast 1")},
			"0 broadcast"},
		{"one that does not do it everywhere", []point{at(2, 8, "direct 1"), at(2, 32, "direct 1"),
			at(2, 128, "broadcast 1, direct 2"), at(2, 512, "broadcast 1, direct 2")}, "0 direct, 128 broadcast"},
		{"one that does not do it at all sizes but one", []point{at(2, 8, "direct 1"),
			at(2, 32, "broadcast 1, direct 2")}, "0 direct"},
		{"none that does it at two sizes", []point{at(2, 8, "direct 1"), at(2, 32, "broadcast 1")}, ""},
		{"sizes one apart", []point{at(2, 7, "direct 1, broadcast 2"), at(2, 8, "direct 1, broadcast 2"),
			at(2, 9, "direct 2, broadcast 1"), at(2, 10, "direct 2, broadcast 1")}, "0 direct, 9 broadcast"},
	} {
		var have []string
		for _, c := range chosen(x.points, nil) {
			have = append(have, fmt.Sprint(c.from, " ", c.way))
		}
		if got := strings.Join(have, ", "); got != x.want {
			t.Errorf("%s: %s, want %s", x.name, got, x.want)
		}
	}
}

// TestRulesOf: the points of several numbers of replicas, in any order, as a table.
func TestRulesOf(t *testing.T) {
	got, err := rulesOf([]point{
		at(4, 4096, "direct/Syncful 3, broadcast 5"),
		at(4, 1024, "direct/Syncful 2 2.2 1.9, broadcast 5"),
		at(4, 16, "direct/Syncful 2, broadcast 1, swing 9, direct 8"),
		at(4, 8, "direct/Syncful 2, broadcast 1, swing 9, direct 8"),
		at(2, 8, "direct 1.25"),
	}, "# here\n")
	want := `# here
#
all-reduce  2    0    direct          8 B: 1.25 us; one pass
all-reduce  3-8  0    broadcast       8 B: 1.00 us; direct/Syncful 2.00, direct 8.00; one pass
all-reduce  3-8  128  direct/Syncful  1 KiB: 2.00 us; broadcast 5.00; spread 4 %
`
	if string(got) != want || err != nil {
		t.Errorf("have\n%s%v\nwant\n%s", got, err, want)
	}
	got, err = rulesOf([]point{at(2, 8, "direct 1"), at(16, 8, "swing/Syncless 1, circulant 3"),
		at(16, 16, "swing/Syncless 1, circulant 3"), at(16, 32, "circulant 1, direct 3"),
		at(16, 64, "circulant 1, direct 3")}, "")
	want = `#
all-reduce  2-5    0   direct          8 B: 1.00 us; one pass
all-reduce  6-7    0   circulant       8 B: 3.00 us; one pass
all-reduce  8      0   swing/Syncless  8 B: 1.00 us; circulant 3.00; one pass
all-reduce  8      32  circulant       32 B: 1.00 us; direct 3.00; one pass
all-reduce  9-15   0   circulant       8 B: 3.00 us; one pass
all-reduce  16     0   swing/Syncless  8 B: 1.00 us; circulant 3.00; one pass
all-reduce  16     32  circulant       32 B: 1.00 us; direct 3.00; one pass
all-reduce  17-31  0   circulant       8 B: 3.00 us; one pass
all-reduce  32     0   swing/Syncless  8 B: 1.00 us; circulant 3.00; one pass
all-reduce  32     32  circulant       32 B: 1.00 us; direct 3.00; one pass
`
	if string(got) != want || err != nil {
		t.Errorf("have\n%s%v\nwant\n%s", got, err, want)
	}
	if _, err := rulesOf([]point{at(2, 8, "comet 1")}, ""); err == nil {
		t.Error("a method that there is not")
	}
}

// TestAmong: of ways that make the same calls one is measured. Between two, direct and a ring have one schedule of an
// all-to-all; on peer memory direct goes in one pass.
func TestAmong(t *testing.T) {
	for n, want := range map[int]string{
		2: "auto direct/Syncless direct/Syncful clockwise_ring/Syncful again",
		3: "auto direct/Syncless direct/Syncful clockwise_ring/Syncless clockwise_ring/Syncful again",
	} {
		s := settled(t, "-collective", "alltoall", "-method", "direct,clockwise_ring")
		s.N = n
		err := gcl.Run(t.Context(), n, func(_ context.Context, c *gcl.Comm) error {
			all, err := s.candidates(c)
			if err != nil {
				return err
			}
			ways, as, err := s.among(all, s.Collectives[0])
			if err != nil {
				return err
			}
			var have []string
			for _, w := range ways {
				have = append(have, w.way)
			}
			alike := as["clockwise_ring/Syncless"] == "direct/Syncless"
			if got := strings.Join(have, " "); got != want || alike != (n == 2) {
				return fmt.Errorf("%d replicas: %s, %v, want %s", n, got, as, want)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRanksFor: every number of ranks has the nearest one that was measured, and none is left out or has two.
func TestRanksFor(t *testing.T) {
	for text, want := range map[string]string{
		"2,3,4,6,8,12,16": "2 3 4 5-6 7-9 10-13 14-32", "2": "2-4", "2,16": "2-5 6-32", "8,9": "8 9-18", "4": "4-8",
	} {
		var c counts
		if err := c.Set(text); err != nil {
			t.Fatal(err)
		}
		var have []string
		for i := range c {
			low, high := ranksFor(c, i)
			have = append(have, ranks{low: low, high: high}.String())
		}
		if got := strings.Join(have, " "); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

// TestJudge: what a sweep says of a point.
func TestJudge(t *testing.T) {
	for ways, want := range map[string]string{
		"auto 1, again 1, direct 2":                "broadcast 1 1.00 0.00 true",
		"auto 1, again 1.1, broadcast 0.5":         "broadcast 1 1.00 1.20 true",
		"auto 1, again 1, direct 0.96":             "direct 0.96 1.04 0.00 true",
		"auto 1, again 1, direct 0.9":              "direct 0.9 1.11 0.00 false",
		"auto 1, again 1.2, direct 1":              "direct 1 1.10 0.20 true",
		"auto 1 2 1, again 1 1 3, direct 0.5 0.8":  "direct 0.8 1.88 1.00 true",
		"auto 1 1, again 1 1, direct 0.5 1.5":      "direct 1.5 0.67 0.00 true", // which was lucky once
		"auto 1 1, again 1 1, direct 1.5 0.5":      "broadcast 1 1.00 0.00 true",
		"auto 1 1 1, again 1 1 1, direct 2 0.8 .1": "broadcast 1 1.00 0.00 true",
	} {
		p := at(2, 8, ways)
		p.Ways[0].Takes = "broadcast"
		v, ok := judge(p)
		if got := fmt.Sprintf("%s %v %.2f %.2f %v", v.way, v.best, v.ratio(), v.spread, v.good()); got != want || !ok {
			t.Errorf("%s: %s, %v, want %s", ways, got, ok, want)
		}
	}
	if _, ok := judge(at(2, 8, "auto 1, again 1")); ok {
		t.Error("auto is compared with itself")
	}
}

// little are flags of a run that takes a moment.
var little = strings.Fields("-passes 2 -time 200us -sizes 8,4K -collective allreduce,broadcast")

// TestTune writes a table which auto then goes by.
func TestTune(t *testing.T) {
	t.Run("through a link, with options", func(t *testing.T) {
		dir := t.TempDir()
		file, link := filepath.Join(dir, "real.txt"), filepath.Join(dir, "link.txt")
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, link); err != nil {
			t.Skip("this system or user makes no symbolic links: ", err)
		}
		t.Setenv("GCL_OPTIONS", `{"reproducible": "true"}`)
		got := perform(t, t.Context(), nil,
			append(little, "-table", link, "-n", "2", "-method", "direct", "-passes", "1")...)
		text, err := os.ReadFile(file)
		if got.code != command.OK || err != nil ||
			!strings.HasPrefix(string(text), "# GCL_OPTIONS='{\"reproducible\": \"true\"}' gcltune ") ||
			!strings.Contains(string(text), "\n# One pass, ") || !strings.Contains(string(text), "; one pass\n") {
			t.Errorf("%+v, %v, %s", got, err, text)
		}
		if to, err := os.Readlink(link); to != file {
			t.Errorf("the link leads to %q, %v", to, err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		got = perform(t, t.Context(), nil, append(little, "-table", link, "-n", "2", "-method", "direct")...)
		if _, err := os.Readlink(link); got.code != command.Usage || err != nil ||
			!strings.Contains(got.stderr, "link.txt is a link that leads nowhere") {
			t.Errorf("%+v, %v", got, err)
		}
	})
	file := filepath.Join(t.TempDir(), "own.txt")
	got := perform(t, t.Context(), nil,
		append(little, "-table", file, "-n", "3,2", "-method", "direct,clockwise_ring")...)
	if got.code != command.OK || got.stderr != "" || !strings.HasPrefix(got.stdout, file+" has ") {
		t.Fatal(got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := methods.ParseRules(text)
	if err != nil {
		t.Fatal(err)
	}
	covered := map[string]bool{}
	for _, r := range rules.All() {
		covered[fmt.Sprint(r.Collective, r.Fewest, r.Most)] = true
		if r.Method != methods.Direct && r.Method != methods.ClockwiseRing ||
			r.Implementation == methods.AnyImplementation {
			t.Errorf("%v", r)
		}
	}
	if len(covered) != 4 || !covered["all-reduce 2 2"] || !covered["broadcast 3 6"] {
		t.Errorf("%v in\n%s", covered, text)
	}
	if !strings.HasPrefix(string(text), "# gcltune -passes 2 ") || !strings.Contains(string(text), "transport inproc") {
		t.Errorf("%s", text)
	}
	t.Setenv("GCL_OPTIONS", fmt.Sprintf("{\"tuning\": %q}", file))
	got = perform(t, t.Context(), nil, append(little, "-n", "2")...)
	if got.code != command.OK || !strings.Contains(got.stdout, "\n# all: 4 points; ") {
		t.Error(got)
	}
	t.Setenv("GCL_OPTIONS", `{"method": "direct"}`)
	for _, mode := range [][]string{nil, {"-table", file}} {
		got = perform(t, t.Context(), nil, slices.Concat(little, mode, []string{"-n", "2"})...)
		if got.code != command.Failed ||
			!strings.Contains(got.stderr, "GCL_OPTIONS sets method or collectiveImplementation") {
			t.Error(got)
		}
	}
	if again, err := os.ReadFile(file); err != nil || string(again) != string(text) {
		t.Errorf("the file was touched: %v\n%s", err, again)
	}
}

// TestCompareProcesses starts processes for each number of replicas.
func TestCompareProcesses(t *testing.T) {
	t.Setenv(asGcltune, "")
	for _, network := range networks() {
		file := filepath.Join(t.TempDir(), network+".txt")
		got := perform(t, t.Context(), nil, append(little, "-table", file, "-n", "2,3", "-transport", network)...)
		if got.code != command.OK || got.stderr != "" {
			t.Fatal(got)
		}
		text, err := os.ReadFile(file)
		rules, err2 := methods.ParseRules(text)
		if err != nil || err2 != nil || !strings.Contains(string(text), "\nbroadcast   3-6  0 ") {
			t.Errorf("%v, %v\n%s", err, err2, text)
		}
		by := methods.AnyImplementation
		if network == "shm" { // whose buffers go in one pass by any rule: what is measured is messages
			by = methods.Syncless
		}
		if slices.ContainsFunc(rules.All(), func(r methods.Rule) bool { return r.Implementation != by }) {
			t.Errorf("%v\n%s", err, text)
		}
		got = perform(t, t.Context(), nil, append(little, "-n", "3", "-transport", network)...)
		line := regexp.MustCompile(`(?m)^broadcast +3 +4 KiB +[0-9.]+ +([a-z_]+)(?:/Syncless)? +[0-9.]+ +([a-z_]+)(?:/Syncless)? +[0-9.]+ +[0-9.]+( \*)?$`)
		if got.code != command.OK || got.stderr != "" || !line.MatchString(got.stdout) {
			t.Error(got)
		}
	}
	t.Setenv(asGcltune, "die 1")
	got := perform(t, t.Context(), nil, append(little, "-n", "3", "-transport", "tcp")...)
	if got.code != command.Failed || !strings.Contains(got.stderr, "gcltune: replica 1 (pid ") ||
		strings.Contains(got.stdout, "# all") {
		t.Error(got)
	}
}

// TestCompareFails: a wrong result, the end of the time and an interrupt leave the file as it was, and nothing beside
// it.
func TestCompareFails(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.txt")
	if err := os.WriteFile(file, []byte("# mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var once sync.Once
	for _, x := range []struct {
		ctx    context.Context
		tamper func(int, []byte)
		more   string
		code   int
		want   string
	}{
		{t.Context(), func(replica int, result []byte) {
			if replica == 1 {
				result[0] ^= 1
			}
		}, "", command.Failed, "has 1 wrong elements: nothing is written"},
		{t.Context(), nil, "-limit 1ns", command.Failed, "the time of -limit is over, and not all was measured once"},
		{ctx, func(int, []byte) { once.Do(cancel) }, "", command.Interrupted, "gcltune: interrupted\n"},
	} {
		args := append(append(little, "-table", file, "-n", "2"), strings.Fields(x.more)...)
		got := perform(t, x.ctx, x.tamper, args...)
		if got.code != x.code || !strings.Contains(got.stderr, x.want) || got.stdout != "" {
			t.Errorf("%s: %+v", x.want, got)
		}
	}
	left, err := os.ReadDir(filepath.Dir(file))
	if text, err2 := os.ReadFile(file); err != nil || err2 != nil || string(text) != "# mine\n" || len(left) != 1 {
		t.Errorf("%v, %v, %q, %v", err, err2, text, left)
	}
}

// TestTableIsNotLost: a table that finds no place in the end is on standard output. The times are given: measured ones
// decide for themselves how many rules there are.
func TestTableIsNotLost(t *testing.T) {
	file := filepath.Join(t.TempDir(), "gone", "own.txt")
	var stdout, stderr safeBuffer
	p, s := newProgram(nil, &stdout, &stderr), settled(t, append(little, "-table", file)...)
	points := []point{at(2, 8, "direct 1, broadcast 2"), at(2, 32, "direct 1, broadcast 2"),
		at(2, 4096, "direct 2, broadcast 1"), at(2, 16384, "direct 2, broadcast 1")}
	o := s.origin(nil, time.Now())
	text, err := rulesOf(points, o.heading())
	code := p.writeTable(file, file, text, err, "")
	rules, err := methods.ParseRules([]byte(stdout.String()))
	if code != command.Failed || !strings.Contains(stderr.String(), "no such file or directory") || err != nil ||
		len(rules.All()) != 2 {
		t.Errorf("exit code %d, %v, %v\n%s%s", code, err, rules, stdout.String(), stderr.String())
	}
}

// TestLimitBetweenPasses: a limit that is over after the first pass leaves out the others, without which there is no
// spread.
func TestLimitBetweenPasses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "own.txt")
	var stdout, stderr safeBuffer
	var gone atomic.Int64
	p := newProgram(strings.Fields("-time 200us -sizes 8 -n 2 -collective broadcast -limit 1s -passes 100 -table "+file),
		&stdout, &stderr)
	p.tamper = func(int, []byte) { gone.Store(int64(2 * time.Second)) }
	p.since = func(time.Time) time.Duration { return time.Duration(gone.Load()) }
	got := outcome{p.run(t.Context()), stdout.String(), stderr.String()}
	text, err := os.ReadFile(file)
	if got.code != command.OK || err != nil || !strings.HasSuffix(string(text), "; one pass\n") {
		t.Errorf("%+v, %v\n%s", got, err, text)
	}
}

// TestCompareFlags: what does not go together, and what cannot be written, is an error before anything is measured.
func TestCompareFlags(t *testing.T) {
	dir := t.TempDir()
	for args, want := range map[string]string{
		"-table=":                    "-table has no name of a file",
		"-passes 0":                  "-passes 0, want 1 to 100",
		"-limit 0s":                  "-limit 0s, want more than 0",
		"-time 0s":                   "-time 0s, want more than 0",
		"-json":                      "flag provided but not defined: -json",
		"-w 3":                       "flag provided but not defined: -w",
		"-n 1,2":                     "-n 1, want 2 or more: one replica sends nothing",
		"-n 2,2":                     "-n: 2 is given twice",
		"-n 2,2000":                  "-n 2000, want 1 to 1024",
		"-n 2,4 -root 3":             "-root 3 is not a rank of 2 replicas",
		"-method auto,direct":        "-method auto is not compared: want some of those that make schedules",
		"-implementation Hybrid":     "-implementation Hybrid is not compared",
		"-sizes 8 -max 16":           "-sizes excludes -min, -max, -factor and -step",
		"-table " + dir:              "is a directory, want a file",
		"-table " + dir + "/no/such": "there is no such directory",
		"-table /dev/null":           "-table /dev/null is no file, want one",
		"-n 2,x":                     `invalid value "2,x" for flag -n: parse error`,
		"-n =":                       `invalid value "=" for flag -n: parse error`,
		"-op LOGICAL_AND":            "gcltune: -op LOGICAL_AND -dtype float32: operator LOGICAL_AND takes bool, not float32",
		"more":                       `unexpected argument "more"`,
	} {
		got := perform(t, t.Context(), nil, strings.Fields(args)...)
		if got.code != command.Usage || !strings.Contains(got.stderr, want) || got.stdout != "" {
			t.Errorf("%s: %+v, want %q", args, got, want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	p := newProgram(nil, nil, nil)
	p.given, _ = measure.Read(flags(&p.raw), nil)          // of no flags
	if _, err := p.raw.settings(p.given, 4); err == nil || // in a job that something else has started
		!strings.Contains(err.Error(), "gcltune starts jobs of several numbers of replicas itself") {
		t.Error(err)
	}
}
