package methods

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// TestDefaultRules: each table of the library is well-formed, in columns, says on which machine it was measured, names
// methods that do their collective for all of their numbers of ranks, and has no weak line.
func TestDefaultRules(t *testing.T) {
	files, err := fs.Glob(tables, "tables/*.txt")
	if err != nil || len(files) != len(tableNames) {
		t.Fatalf("%d files for %d names, %v", len(files), len(tableNames), err)
	}
	for _, name := range tableNames {
		r := DefaultRules(name)
		text, err := tables.ReadFile("tables/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		if r.String() != string(text) {
			t.Errorf("%s is not as Rules.String writes it:\n%s", name, r)
		}
		if cited := r.Cite(&Rule{Line: 3}); cited != "gogcl.dev/methods/tables/"+name+".txt:3" || r.Name() != "" {
			t.Errorf("%s: %s, %q", name, cited, r.Name())
		}
		tuning := Tuning{Rules: r}
		for _, x := range r.All() {
			q := Case{Collective: x.Collective, Ranks: x.Fewest, Bytes: x.FromBytes, Memory: true}
			if o := tuning.obstacle(&x, &q); o != none {
				t.Errorf("%s:%d: %v: %s", name, x.Line, x, o.text(&x, &q))
			}
			if x.Implementation == Syncful && name != "inproc" {
				t.Errorf("%s:%d: %v: the transport has no peer memory", name, x.Line, x)
			}
			for n := x.Fewest; n <= x.Most; n++ {
				ring, second := rings(n)
				if _, err := Build(Spec{Method: x.Method, Collective: x.Collective, Size: n, Ring: ring,
					Second: second}); err != nil {
					t.Errorf("%s:%d: %v: %v", name, x.Line, x, err)
				}
			}
			if x.Measured == "" {
				t.Errorf("%s:%d: %v: it does not say what was measured", name, x.Line, x)
			}
		}
		for _, wrong := range weakLines(r) {
			t.Errorf("%s: %s", name, wrong)
		}
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with where it was measured", name)
		}
	}
	if DefaultRules("mpi") != nil || DefaultRules("") != nil {
		t.Error("a transport without a table has one")
	}
}

// TestLinkTables: each table of links is in columns, begins with where its sizes are from, has a line for every
// collective and number of ranks, and a reason in each line.
func TestLinkTables(t *testing.T) {
	files, err := fs.Glob(tables, "tables/links/*.txt")
	if err != nil || len(files) != len(linkNames) {
		t.Fatalf("%d files for %d names, %v", len(files), len(linkNames), err)
	}
	for _, name := range linkNames {
		text, err := tables.ReadFile("tables/links/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		r := linkTable(name)
		if r.String() != string(text) || !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s is not as Rules.String writes it, or has no comment:\n%s", name, r)
		}
		for _, x := range r.All() {
			if x.Measured == "" {
				t.Errorf("%s:%d: no reason", name, x.Line)
			}
		}
		tuning := Tuning{Links: r}
		for _, c := range schedule.Collectives() {
			for _, ranks := range []int{2, 3, 64, 65, 1 << 16} {
				if tuning.link(&Case{Collective: c, Ranks: ranks}) == nil {
					t.Errorf("%s: no line for %v over %d", name, c, ranks)
				}
			}
		}
	}
}

// TestSmallAllReduceMeetsInMemory: no table has 1 KiB go by messages between two replicas of one process.
func TestSmallAllReduceMeetsInMemory(t *testing.T) {
	tuning := MemoryLinks()
	tuning.Rules = DefaultRules("inproc")
	q := Case{Collective: schedule.AllReduce, Ranks: 2, Bytes: 1 << 10, Memory: true}
	if r := tuning.Rule(&q); r != nil && r.way() != "direct/Syncful" {
		t.Errorf("%s", tuning.WhyRule(r))
	}
}

// leastGain is how many times as long as a line's method the next best one takes, at least, for the line to be in a
// table of the library: a smaller gain is one machine's.
const leastGain = 1.3

// measuredTimes are the first two times of what gcltune says of a line.
var measuredTimes = regexp.MustCompile(`^\d+ \w+: ([\d.]+) us; \S+ ([\d.]+)[,;]`)

// weakLines says which lines are to be taken out of a table that gcltune has measured at its default sizes, 8 B
// to 8 MiB, each four times the one before: lines that gain too little, that are for one of the sizes alone, or that
// repeat the line above.
func weakLines(r *Rules) (out []string) {
	all := r.All()
	for _, x := range all {
		var own, next float64
		if found := measuredTimes.FindStringSubmatch(x.Measured); found != nil {
			own, _ = strconv.ParseFloat(found[1], 64)
			next, _ = strconv.ParseFloat(found[2], 64)
		}
		if gain := next / own; !(gain >= leastGain) {
			out = append(out, fmt.Sprintf("line %d gains %.2f, want %v or more", x.Line, gain, leastGain))
		}
		var above, below *Rule // those of the same ranks
		for i, y := range all {
			switch same := y.Collective == x.Collective && y.Fewest == x.Fewest && y.Most == x.Most; {
			case same && y.Line < x.Line:
				above = &all[i]
			case same && y.Line > x.Line && below == nil:
				below = &all[i]
			}
		}
		if above != nil && above.way() == x.way() {
			out = append(out, fmt.Sprintf("line %d repeats line %d", x.Line, above.Line))
		}
		sizes := 0
		for size := int64(8); size <= 8<<20; size *= 4 {
			if size >= x.FromBytes && (below == nil || size < below.FromBytes) {
				sizes++
			}
		}
		if sizes < 2 {
			out = append(out, fmt.Sprintf("line %d is for %d measured sizes, want 2 or more", x.Line, sizes))
		}
	}
	return out
}

// TestWeakLines has lines that may not be in a table of the library.
func TestWeakLines(t *testing.T) {
	const least, repeats = "line 1 is for 1 measured sizes, want 2 or more", "line 2 repeats line 1"
	for text, want := range map[string][]string{
		"reduce 2 0 direct 8 B: 1.00 us; broadcast 1.30; spread 3 %": nil,
		"reduce 2 0 direct 8 B: 1.00 us; broadcast 1.29; spread 3 %": {"line 1 gains 1.29, want 1.3 or more"},
		"reduce 2 0 direct 8 B: 1.31 us; swing 1.30, pat 9.00; one pass": {
			"line 1 gains 0.99, want 1.3 or more"},
		"reduce 2 0 direct 8 B: 1.00 us; one pass":                  {"line 1 gains NaN, want 1.3 or more"},
		"reduce 2 0 direct":                                         {"line 1 gains NaN, want 1.3 or more"},
		"reduce 2 4MiB direct 8 MiB: 1.00 us; swing 2.00; one pass": {least},
		"reduce 2 0 direct 8 B: 1.00 us; pat 2.00;\nreduce 2 32 direct 32 B: 1.00 us; pat 2.00;": {
			least, repeats},
		"reduce 2 0 direct 8 B: 1.00 us; pat 2.00;\nreduce 3 32 direct 32 B: 1.00 us; pat 2.00;": nil,
		"reduce 2 0 pat 8 B: 1.00 us; swing 2.00;\nreduce 2 33 swing 128 B: 1.00 us; pat 2.00;\n" +
			"reduce 2 129 pat 512 B: 1.00 us; swing 2.00;": {"line 2 is for 1 measured sizes, want 2 or more"},
	} {
		if got := weakLines(mustRules(t, text)); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
