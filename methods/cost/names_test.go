package cost_test

import (
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/topology"
)

// TestParseNetwork compares networks of names with those that functions make, link by link and way by way.
func TestParseNetwork(t *testing.T) {
	t.Parallel()
	must := func(n cost.Network, err error) cost.Network {
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	defaults := func(shape topology.Shape, domains ...int) cost.Network {
		m, err := topology.New(topology.Config{Shape: shape, Replicas: domains})
		if err != nil {
			t.Fatal(err)
		}
		return cost.Machine(m)
	}
	plain := cost.Link{BytesPerSecond: 12.5e9, Latency: 500 * time.Nanosecond}
	fast := cost.Link{BytesPerSecond: 25e9, Latency: time.Microsecond, Cables: 1}
	cables := func(l cost.Link, n int) cost.Link { l.Cables = n; return l }
	for name, want := range map[string]cost.Network{
		"torus:4x3":                    must(cost.Torus([]int{4, 3}, plain)),
		"torus:5:25e9,1us":             must(cost.Torus([]int{5}, fast)),
		"torus:2x3:25e9,1us:25e9,0s,2": must(cost.Torus([]int{2, 3}, fast, cost.Link{BytesPerSecond: 25e9, Cables: 2})),
		"fattree:4":                    must(cost.FatTree(cost.Level{Children: 4, Link: cables(plain, 1)})),
		"fattree:4x2x2": must(cost.FatTree(cost.Level{Children: 4, Link: cables(plain, 1)},
			cost.Level{Children: 2, Link: cables(plain, 4)}, cost.Level{Children: 2, Link: cables(plain, 8)})),
		"fattree:3x2:25e9,1us,2": must(cost.FatTree(cost.Level{Children: 3, Link: cables(fast, 2)},
			cost.Level{Children: 2, Link: cables(fast, 6)})),
		"fattree:3x2:25e9,1us:12500000000,500ns": must(cost.FatTree(cost.Level{Children: 3, Link: fast},
			cost.Level{Children: 2, Link: plain})),
		"clique:4+2":        defaults(topology.Clique, 4, 2),
		"open-ladder:6":     defaults(topology.OpenLadder, 6),
		"joined-ladder:6+4": defaults(topology.JoinedLadder, 6, 4),
	} {
		have, err := cost.ParseNetwork(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if have.Replicas() != want.Replicas() || have.Links() != want.Links() {
			t.Errorf("%s: %d replicas and %d links, want %d and %d", name, have.Replicas(), have.Links(),
				want.Replicas(), want.Links())
			continue
		}
		for i := range want.Links() {
			a, b := have.Link(i), want.Link(i)
			a.Cables, b.Cables = max(a.Cables, 1), max(b.Cables, 1)
			if a != b {
				t.Errorf("%s: link %d is %+v, want %+v", name, i, a, b)
			}
		}
		machine, isMachine := cost.TopologyOf(want)
		if same, ok := cost.TopologyOf(have); ok != isMachine || same.String() != machine.String() {
			t.Errorf("%s: topology %v, %v, want %v, %v", name, same, ok, machine, isMachine)
		}
	}
}

// TestParseNetworkErrors has names that are wrong.
func TestParseNetworkErrors(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"": `cost: no network "", want a name such as torus:8x8x8, fattree:16x8x4, clique:4+4, open-ladder:8, ` +
			`joined-ladder:8`,
		"ring:8":            `cost: no network "ring:8", want a name such as `,
		"torus":             `cost: network "torus" without sizes, want one such as torus:8x8x8`,
		"torus:":            `cost: network "torus:": "", want a number from 1 to 16777216, as in torus:8x8x8`,
		"torus:8+8":         `cost: network "torus:8+8": "8+8", want a number from 1 to 16777216, as in torus:8x8x8`,
		"torus:0x8":         `cost: network "torus:0x8": "0", want a number `,
		"torus:4096x8192":   `cost: network "torus:4096x8192": cost: a torus of [4096 8192]: more than 16777216 replicas`,
		"torus:4:1e9":       `cost: network "torus:4:1e9": link "1e9": 1 words, want BYTES_PER_SECOND,LATENCY or `,
		"torus:4:0,1us":     `cost: network "torus:4:0,1us": link "0,1us": 0 bytes per second, want a finite number, at least 0.001`,
		"torus:4:x,1us":     `cost: network "torus:4:x,1us": link "x,1us": "x" bytes per second, want a finite `,
		"torus:4:1,1":       `cost: network "torus:4:1,1": link "1,1": a latency of "1", want one as 500ns or 1.5us`,
		"torus:4:1,1s,0":    `cost: network "torus:4:1,1s,0": link "1,1s,0": "0" cables, want 1 to 1024`,
		"torus:4:1,1s:":     `cost: network "torus:4:1,1s:": link "": 1 words, want `,
		"torus:4:1,0s:1,0s": `cost: network "torus:4:1,0s:1,0s": cost: 2 links for a torus of 1 dimensions, want 1 or 1`,
		"fattree:2x2x2:1,0s:1,0s": `cost: network "fattree:2x2x2:1,0s:1,0s": 2 links for a fat tree of 3 levels, want 1 or ` +
			`3`,
		"fattree:64x64x2": `cost: network "fattree:64x64x2": 4096 cables for 4096 replicas below a switch of level 1, want ` +
			`at most 1024: give each level a link`,
		"clique:8:1e9,1us": `cost: network "clique:8:1e9,1us": a link of a machine, whose speeds are `,
		"clique:1048576+1": `cost: network "clique:1048576+1": more than 1048576 replicas`,
		"joined-ladder:3":  `cost: network "joined-ladder:3": topology: 3 replicas of 1 IPUs leave half a rung `,
	} {
		if _, err := cost.ParseNetwork(name); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
}

func FuzzParseNetwork(f *testing.F) {
	for _, name := range []string{"torus:2x3:25e9,1us,2:1,0s", "fattree:3x2", "clique:2+1", "open-ladder:5",
		"joined-ladder:4+4"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if len(name) > 30 { // networks of many replicas take memory
			return
		}
		n, err := cost.ParseNetwork(name)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "cost: ") || n != nil {
				t.Errorf("%q: %v, error %q", name, n, err)
			}
			return
		}
		if last := n.Replicas() - 1; last > 0 && last < 1<<16 {
			if way, err := n.Route(nil, 0, last); len(way) == 0 && err == nil {
				t.Errorf("%q: no way to %d", name, last)
			}
		}
	})
}
