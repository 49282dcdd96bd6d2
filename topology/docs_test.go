package topology_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"gogcl.dev/topology"
)

var update = flag.Bool("update", false, "write the table in docs/design/rings.md anew")

// The table in docs/design/rings.md is made here. After a change: go test ./topology -run TestDocsTable -update, and
// read it.
func TestDocsTable(t *testing.T) {
	t.Parallel()
	const file, begin, end = "../docs/design/rings.md", "<!-- table: begin -->\n", "<!-- table: end -->\n"
	var table strings.Builder
	fmt.Fprintf(&table, "| machine | ring | first | second | disjoint |\n|---|---|---|---|---|\n")
	var machines []topology.Topology
	for n := 1; n <= 9; n++ {
		machines = append(machines, clique(t, n))
	}
	machines = append(machines, clique(t, 4, 4), clique(t, 3, 3),
		ladder(t, topology.OpenLadder, 1, 2), ladder(t, topology.OpenLadder, 1, 4),
		ladder(t, topology.OpenLadder, 1, 5), ladder(t, topology.OpenLadder, 1, 8),
		ladder(t, topology.OpenLadder, 2, 5), ladder(t, topology.JoinedLadder, 2, 5),
		ladder(t, topology.JoinedLadder, 1, 4, 4))
	for _, m := range machines {
		r := rings(t, m, topology.Auto, all(m))
		disjoint := map[bool]string{true: "yes", false: "no"}[r.Disjoint]
		ring := func(ranks []int) string { return strings.Trim(fmt.Sprint(ranks), "[]") }
		fmt.Fprintf(&table, "| %v | %v | %s | %s | %s |\n", m, r.Name, ring(r.First), ring(r.Second), disjoint)
	}

	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place for the table", file)
	}
	if old == table.String() {
		return
	}
	if !*update {
		t.Fatalf("the table in %s is not what the code gives:\n%s", file, table.String())
	}
	if err := os.WriteFile(file, []byte(before+begin+table.String()+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
