package methods

import (
	"io/fs"
	"strings"
	"testing"
)

// TestDefaultRules: each table of the library is well-formed, in columns, says on which machine it was measured, and
// names methods that do their collective for all of their numbers of ranks.
func TestDefaultRules(t *testing.T) {
	files, err := fs.Glob(tables, "tables/*")
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
		if !strings.HasPrefix(string(text), "# ") {
			t.Errorf("%s does not begin with where it was measured", name)
		}
	}
	if DefaultRules("mpi") != nil || DefaultRules("") != nil {
		t.Error("a transport without a table has one")
	}
}
