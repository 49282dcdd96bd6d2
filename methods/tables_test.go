package methods

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// eachTable calls f with the tables of folders in methods/tables, links or all others.
func eachTable(t *testing.T, ofLinks bool, f func(folder, name, text string, r *Rules)) {
	files, err := fs.Glob(tables, "tables/*/*.txt")
	if err != nil || len(files) != len(builtIn()) {
		t.Fatalf("%d files, %d tables, %v", len(files), len(builtIn()), err)
	}
	for _, file := range files {
		text, err := tables.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := strings.TrimSuffix(strings.TrimPrefix(file, "tables/"), ".txt")
		r := builtIn()[at]
		folder, name, _ := strings.Cut(at, "/")
		if (folder == "links") != ofLinks {
			continue
		}
		if r.String() != string(text) || !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s is not as Rules.String writes it, or has no comment:\n%s", at, r)
		}
		if cited := r.Cite(&Rule{Line: 3}); cited != "gogcl.dev/methods/"+file+":3" || r.Name() != "" {
			t.Errorf("%s: %s, %q", at, cited, r.Name())
		}
		for _, x := range r.All() {
			if x.Measured == "" {
				t.Errorf("%s:%d: %v: it does not say what was measured, or why", at, x.Line, x)
			}
		}
		f(folder, name, string(text), r)
	}
}

// machineOf finds the machine in what gcltune writes above a table.
var machineOf = regexp.MustCompile(`(?m)^# (.*, \d+ cores?), 20`)

// TestRulesOn: each table of a machine is found by the machine's name, is for a transport, and names methods that do
// their collective for all of their numbers of ranks.
func TestRulesOn(t *testing.T) {
	eachTable(t, false, func(folder, name, text string, r *Rules) {
		at := folder + "/" + name
		if !slices.Contains([]string{"inproc", "shm", "tcp", "unix", "mpi"}, name) {
			t.Errorf("%s: no transport has this name", at)
		}
		if machine := machineOf.FindStringSubmatch(text); folder != "all" {
			if machine == nil || RulesOn(machine[1], name) != r {
				t.Errorf("%s is not the table of %q", at, machine)
			}
		} else if DefaultRules(name) != r || RulesOn("Some CPU linux/amd64, 3 cores", name) != r {
			t.Errorf("%s is not the table of other machines", at)
		}
		tuning := Tuning{Rules: r}
		for _, x := range r.All() {
			q := Case{Collective: x.Collective, Ranks: x.Fewest, Bytes: x.FromBytes, Memory: true}
			if o := tuning.obstacle(&x, &q); o != none {
				t.Errorf("%s:%d: %v: %s", at, x.Line, x, o.text(&x, &q))
			}
			if x.Implementation == Syncful && name != "inproc" && name != "shm" {
				t.Errorf("%s:%d: %v: the transport has no peer memory", at, x.Line, x)
			}
			for n := x.Fewest; n <= x.Most; n++ {
				ring, second := rings(n)
				if _, err := Build(Spec{Method: x.Method, Collective: x.Collective, Size: n, Ring: ring,
					Second: second}); err != nil {
					t.Errorf("%s:%d: %v: %v", at, x.Line, x, err)
				}
			}
		}
	})
	for _, transport := range []string{"", "carrier pigeon", "../links/ipu"} {
		if RulesOn("", transport) != nil || RulesOn("Some CPU", transport) != nil {
			t.Errorf("%q has a table", transport)
		}
	}
}

// TestLinkTables: each table of links is in columns, begins with where its sizes are from, has a line for every
// collective and number of ranks, and a reason in each line.
func TestLinkTables(t *testing.T) {
	classes := map[string]bool{}
	eachTable(t, true, func(_, name, _ string, r *Rules) {
		classes[name] = true
		tuning := Tuning{Links: r}
		for _, c := range schedule.Collectives() {
			for _, ranks := range []int{2, 3, 64, 65, 1 << 16} {
				if tuning.link(&Case{Collective: c, Ranks: ranks}) == nil {
					t.Errorf("%s: no line for %v over %d", name, c, ranks)
				}
			}
		}
	})
	for class, links := range map[string]func() Tuning{"ipu": IPULinks, "memory": MemoryLinks, "engine": EngineLinks,
		"sockets": SocketLinks, "network": NetworkLinks} {
		if !classes[class] || links().Links == nil || links().Links != linkTable(class) {
			t.Errorf("%s: %v, %v", class, classes, links().Links)
		}
	}
}

// TestSmallAllReduceMeetsInMemory: no table has 1 KiB go by messages between two replicas of one process.
func TestSmallAllReduceMeetsInMemory(t *testing.T) {
	eachTable(t, false, func(folder, name, _ string, r *Rules) {
		tuning := MemoryLinks()
		tuning.Rules = r
		q := Case{Collective: schedule.AllReduce, Ranks: 2, Bytes: 1 << 10, Memory: true}
		if r := tuning.Rule(&q); name == "inproc" && r != nil && r.way() != "direct/Syncful" {
			t.Errorf("%s: %s", folder, tuning.WhyRule(r))
		}
	})
}
