package cost_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

func readGraph(t testing.TB, name string) cost.Graph {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return must[cost.Graph](t)(cost.ParseGraph(text))
}

// The file has two switches of three replicas each, and a way round from 2 to 5. 1000 bytes take 1 us.
func TestGraph(t *testing.T) {
	t.Parallel()
	g := readGraph(t, "switches.txt")
	if r, l := g.Replicas(), g.Links(); r != 6 || l != 15 {
		t.Errorf("%d replicas and %d links, want 6 and 15", r, l)
	}
	tests := []struct {
		name  string
		pairs [][2]int
		want  time.Duration
	}{
		{"in one switch", [][2]int{{0, 1}}, 3 * us},
		{"through both", [][2]int{{0, 3}}, 14 * us},        // 1+10+1 latencies; 2 us on the link of half the speed
		{"two at once", [][2]int{{0, 3}, {1, 4}}, 14 * us}, // a cable each
		{"three at once", [][2]int{{0, 3}, {1, 4}, {0, 4}}, 16 * us},
		{"the short cut", [][2]int{{2, 5}}, 6 * us},
		{"leads one way", [][2]int{{5, 2}}, 14 * us},
	}
	for _, tt := range tests {
		e, err := cost.Model{Network: g}.Price(oneRound(6, tt.pairs...), upTo(6), 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("%s: %v, %v, want %v", tt.name, e.Time, err, tt.want)
		}
	}
}

// Of several shortest ways a message takes that through the nodes with the lowest numbers, as on a ladder.
func TestGraphChoosesLowNumbers(t *testing.T) {
	t.Parallel()
	g := must[cost.Graph](t)(cost.ParseGraph([]byte(
		"replicas 4\nlink 3 2 1e9 1us\nlink 0 2 1e9 1us\nlink 1 3 1e9 1us\nlink 0 1 1e9 1us\n")))
	for _, tt := range []struct {
		beside [2]int
		want   time.Duration
	}{{[2]int{1, 3}, 4 * us}, {[2]int{2, 3}, 3 * us}} {
		e, err := cost.Model{Network: g}.Price(oneRound(4, [2]int{0, 3}, tt.beside), upTo(4), 1000)
		if err != nil || e.Time != tt.want {
			t.Errorf("0 to 3 beside %v: %v, %v, want %v", tt.beside, e.Time, err, tt.want)
		}
	}
}

func TestGraphErrors(t *testing.T) {
	t.Parallel()
	const one = "replicas 2\nlink 0 1 1e9 1us\n"
	tests := []struct{ text, want string }{
		{"", "no line says how many replicas there are"},
		{"# replicas 4", "no line says how many replicas"},
		{"\nlink 0 1 1e9 1us", `line 2: "link" before how many replicas there are`},
		{"replicas", `line 1: 1 words, want "replicas N"`},
		{"replicas 2 2", `line 1: 3 words, want "replicas N"`},
		{"replicas 0", `line 1: replicas "0", want 1 to 1048576`},
		{"replicas two", `replicas "two"`},
		{"replicas 1048577", `replicas "1048577"`},
		{"replicas 2\nreplicas 2", `line 2: "replicas" again, or after a link`},
		{"replicas 2\nswitches -1", `line 2: switches "-1", want 0 to 1048574`},
		{"replicas 2\nswitches 1048575", `switches "1048575"`},
		{"replicas 2\nswitches 1\nswitches 1", `line 3: "switches" again, or after a link`},
		{one + "switches 1", `line 3: "switches" again, or after a link`},
		{"replicas 2\nhub 0 1", `line 2: "hub", want replicas, switches, link or oneway`},
		{"replicas 2\nlink 0 1 1e9", `line 2: 4 words, want "link NODE NODE BYTES_PER_SECOND LATENCY [CABLES]"`},
		{"replicas 2\noneway 0 1 1e9 1us 1 1", `7 words, want "oneway NODE`},
		{"replicas 2\nlink 0 2 1e9 1us", `node "2", want 0 to 1`},
		{"replicas 2\nlink -1 1 1e9 1us", `node "-1"`},
		{"replicas 2\nlink a 1 1e9 1us", `node "a"`},
		{"replicas 2\nlink 1 1 1e9 1us", "a link from node 1 to itself"},
		{one + "link 1 0 1e9 1us", "line 3: a second link from node 1 to node 0, after line 2: give one with cables"},
		{one + "oneway 0 1 1e9 1us", "a second link from node 0 to node 1"},
		{"replicas 2\nlink 0 1 much 1us", `"much" bytes per second, want a finite number, at least 0.001`},
		{"replicas 2\nlink 0 1 0 1us", "0 bytes per second"},
		{"replicas 2\nlink 0 1 1e-320 1us", "1e-320 bytes per second"},
		{"replicas 2\nlink 0 1 Inf 1us", "+Inf bytes per second"},
		{"replicas 2\nlink 0 1 1e9 1", `a latency of "1", want one as 500ns or 1.5us`},
		{"replicas 2\nlink 0 1 1e9 -1us", "a latency of -1µs"},
		{"replicas 2\nlink 0 1 1e9 1us 0", `"0" cables, want 1 to 1024`},
		{"replicas 2\nlink 0 1 1e9 1us x", `"x" cables`},
		{"replicas 2\nlink 0 1 1e9 1us 1025", "1025 cables, want 1 to 1024"},
	}
	for _, tt := range tests {
		g, err := cost.ParseGraph([]byte(tt.text))
		if err == nil || g != (cost.Graph{}) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: error %v, want one with %q", tt.text, err, tt.want)
		}
	}
	apart := must[cost.Graph](t)(cost.ParseGraph([]byte("replicas 3\nlink 0 1 1e9 1us")))
	_, err := cost.Model{Network: apart}.Price(oneRound(3, [2]int{0, 2}), upTo(3), 1)
	if want := "cost: no way leads from replica 0 to replica 2"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %q", err, want)
	}
	if _, err := (cost.Graph{}).Route(nil, 0, 1); err == nil {
		t.Error("the zero Graph has a route")
	}
}

// FuzzParseGraph: a text that is read is drawn again, and read as the same network.
func FuzzParseGraph(f *testing.F) {
	f.Add("replicas 2\nlink 0 1 1e9 1us\n")
	f.Add("replicas 2 # two\nswitches 1\n\noneway 0 2 25e9 1.5us 3\r\nlink 2 1 1 0s")
	f.Fuzz(func(t *testing.T, text string) {
		g, err := cost.ParseGraph([]byte(text))
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cost: ") {
				t.Errorf("error %q", err)
			}
			return
		}
		again, err := cost.ParseGraph([]byte(g.String()))
		if err != nil || again.String() != g.String() || again.Replicas() != g.Replicas() ||
			again.Links() != g.Links() {
			t.Fatalf("%q became %q, then %q, error %v", text, g, again, err)
		}
		for i := range g.Links() {
			if g.Link(i) != again.Link(i) {
				t.Fatalf("link %d: %+v became %+v", i, g.Link(i), again.Link(i))
			}
		}
		if last := g.Replicas() - 1; last > 0 {
			links, err := g.Route(nil, 0, last)
			same, errAgain := again.Route(nil, 0, last)
			if len(links) != len(same) || (err == nil) != (errAgain == nil) {
				t.Fatalf("route to %d: %v, %v became %v, %v", last, links, err, same, errAgain)
			}
		}
	})
}

// TestCablesTakeNoMemory: a price takes memory for the cables that messages take, and not for all that links have. The
// test is not parallel, since it counts what the process allocates.
func TestCablesTakeNoMemory(t *testing.T) {
	const n = 500
	var file strings.Builder
	fmt.Fprintf(&file, "replicas %d\nswitches 1\n", n)
	for node := range n {
		fmt.Fprintf(&file, "link %d %d 1e9 1us 1024\n", node, n)
	}
	g := must[cost.Graph](t)(cost.ParseGraph([]byte(file.String())))
	traffic := &schedule.Traffic{Size: n, Chunks: 1, Rounds: []schedule.Alike{{Times: 1,
		Flows: []schedule.Flow{{Move: 1, Chunks: 1}}}}}
	members := upTo(n)
	price := func() cost.Estimate { // of one byte for each link
		return must[cost.Estimate](t)(cost.Model{Network: g}.PriceTraffic(traffic, members, 1))
	}
	want := price() // and the ways are known
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	have := price()
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 1<<20 || have != want {
		t.Errorf("%d bytes for %d messages, %+v, want %+v and less than 1 MiB", allocated, n, have, want)
	}
}
