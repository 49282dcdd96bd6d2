package cost_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods/cost"
)

// own is a network of a program's own, of which a digest knows the ways alone.
type own struct{ cost.Network }

// switched is a network of 4 switches under a root. at says on which switch a replica is.
func switched(t *testing.T, replicas int, at func(replica int) int) cost.Network {
	var b strings.Builder
	fmt.Fprintf(&b, "replicas %d\nswitches 5\n", replicas)
	for r := range replicas {
		fmt.Fprintf(&b, "link %d %d 25e9 1us\n", r, replicas+at(r))
	}
	for s := range 4 {
		fmt.Fprintf(&b, "link %d %d 1e9 20us\n", replicas+s, replicas+4)
	}
	return must[cost.Graph](t)(cost.ParseGraph([]byte(b.String())))
}

// TestDigestOfPlaces: networks of the same links that lead elsewhere have other digests, also among more replicas than
// those between which all ways of a program's own network are looked at.
func TestDigestOfPlaces(t *testing.T) {
	t.Parallel()
	for _, n := range []int{8, 128, 256, 260, 1000} {
		inTurn := func(r int) int { return r * 4 / n }
		places := map[string]func(r int) int{
			"in turn": inTurn,
			"every fourth elsewhere": func(r int) int {
				if r%4 == 3 {
					return (inTurn(r) + 1) % 4
				}
				return inTurn(r)
			},
			"the last one elsewhere": func(r int) int {
				if r == n-1 {
					return 0
				}
				return inTurn(r)
			},
			"one elsewhere": func(r int) int {
				if r == n/2+1 {
					return 0
				}
				return inTurn(r)
			},
		}
		seen := map[uint64]string{}
		for name, at := range places {
			network := switched(t, n, at)
			for as, network := range map[string]cost.Network{"": network, ", of a program's own": own{network}} {
				name := name + as
				digest := cost.Model{Network: network}.Digest()
				if again := (cost.Model{Network: network}).Digest(); again != digest {
					t.Errorf("%d replicas, %s: two digests", n, name)
				}
				if other := seen[digest]; other != "" {
					t.Errorf("%d replicas, %s and %s: one digest", n, name, other)
				}
				seen[digest] = name
			}
		}
	}
}

// TestDigest: models that differ in anything that a price depends on have other digests.
func TestDigest(t *testing.T) {
	t.Parallel()
	seen := map[uint64]string{}
	add := func(name string, m cost.Model) {
		if other := seen[m.Digest()]; other != "" {
			t.Errorf("%s and %s: one digest", name, other)
		}
		seen[m.Digest()] = name
	}
	for _, name := range []string{"torus:2x4", "torus:4x2", "torus:8", "torus:2x4:12.5e9,1us", "torus:2x4:25e9,500ns",
		"fattree:4x2", "fattree:2x4", "fattree:8", "clique:8", "clique:4+4", "clique:2+6", "open-ladder:8",
		"joined-ladder:8"} {
		n := must[cost.Network](t)(cost.ParseNetwork(name))
		again := must[cost.Network](t)(cost.ParseNetwork(name))
		if (cost.Model{Network: n}).Digest() != (cost.Model{Network: again}).Digest() {
			t.Errorf("%s: two digests", name)
		}
		add(name, cost.Model{Network: n})
		add(name+" with overhead", cost.Model{Network: n, Overhead: time.Microsecond})
		add(name+" that folds", cost.Model{Network: n, FoldBytesPerSecond: 1e9})
		add(name+" of a program's own", cost.Model{Network: own{n}})
	}
	const file = "replicas 3\nlink 0 1 1e9 1us\nlink 1 2 1e9 1us\n"
	for _, text := range []string{file, file + "link 2 0 1e9 1us", file + "oneway 2 0 1e9 1us",
		file + "link 2 0 1e9 1us 2", file + "oneway 0 2 1e9 1us", strings.Replace(file, "1us", "2us", 1),
		strings.Replace(file, "\n", "\nswitches 1\n", 1)} {
		add(fmt.Sprintf("%q", text), cost.Model{Network: must[cost.Graph](t)(cost.ParseGraph([]byte(text)))})
	}
	add("no network", cost.Model{})
	add("a graph of nothing", cost.Model{Network: cost.Graph{}})
}

func BenchmarkDigest(b *testing.B) {
	for _, name := range []string{"torus:16x16x16", "fattree:16x16x16", "open-ladder:4096"} {
		n, err := cost.ParseNetwork(name)
		if err != nil {
			b.Fatal(err)
		}
		for as, n := range map[string]cost.Network{"": n, "/own": own{n}} {
			b.Run("network="+name+as, func(b *testing.B) {
				for b.Loop() {
					cost.Model{Network: n}.Digest()
				}
			})
		}
	}
}
