package cost

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gogcl.dev/topology"
)

// defaultLink is a link of a torus or a fat tree whose name has none: 100 Gb/s, and a latency that is an assumption.
var defaultLink = Link{BytesPerSecond: 12.5e9, Latency: 500 * time.Nanosecond}

// kind is the first word of a name.
type kind struct {
	word, example string
	machine       bool // of this shape
	shape         topology.Shape
}

var kinds = []kind{
	{word: "torus", example: "torus:8x8x8"},
	{word: "fattree", example: "fattree:16x8x4"},
	{"clique", "clique:4+4", true, topology.Clique},
	{"open-ladder", "open-ladder:8", true, topology.OpenLadder},
	{"joined-ladder", "joined-ladder:8", true, topology.JoinedLadder},
}

// ParseNetwork makes a network of its name: a kind, a colon, and the sizes. A file of links is [ParseGraph]'s.
//
//	torus:8x8x8                    [Torus]: 8 places in each of three dimensions
//	fattree:16x8x4                 [FatTree]: 16 replicas below a switch, 8 switches below one, 4 of these
//	clique:4+4                     [Machine] of two link domains of four replicas; their shape is topology.Clique,
//	open-ladder:8                  topology.OpenLadder
//	joined-ladder:8                or topology.JoinedLadder
//	torus:8x8:25e9,1us             links of 25e9 bytes a second and 1 us, in both dimensions
//	torus:8x8:25e9,1us:50e9,1us    a link for each dimension, the first one first
//	fattree:8x4:25e9,1us:25e9,1us,4    a link for each level, from the replicas up: four cables on the second
//
// A torus or a fat tree without links has those of 100 Gb/s, 12.5e9 bytes a second each way, and 500 ns, an assumption.
// A fat tree without links, or with one for all levels, has as many cables from a switch up as there are replicas below
// it, so that all replicas can send to the other end of the tree at full speed. A machine has the speeds of
// [topology.DefaultSpeeds].
//
// Errors say what is wrong and what would be right: an unknown kind, sizes that are no numbers above 0, a link that
// cannot be, another number of links, and errors of Torus, FatTree and [topology.New].
func ParseNetwork(name string) (Network, error) {
	parts := strings.Split(name, ":")
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.word == parts[0] })
	switch {
	case i < 0:
		var examples []string
		for _, k := range kinds {
			examples = append(examples, k.example)
		}
		return nil, fmt.Errorf("cost: no network %.100q, want a name such as %s", name, strings.Join(examples, ", "))
	case len(parts) < 2:
		return nil, fmt.Errorf("cost: network %.100q without sizes, want one such as %s", name, kinds[i].example)
	}
	kind, between := kinds[i], "x"
	if kind.machine {
		between = "+"
	}
	fail := func(err error) (Network, error) { return nil, fmt.Errorf("cost: network %.100q: %w", name, err) }
	var sizes []int
	for text := range strings.SplitSeq(parts[1], between) {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxReplicas {
			return fail(fmt.Errorf("%.100q, want a number from 1 to %d, as in %s", text, maxReplicas, kind.example))
		}
		sizes = append(sizes, n)
	}
	if kind.machine {
		network, err := parseMachine(kind.shape, sizes, parts[2:])
		if err != nil {
			return fail(err)
		}
		return network, nil
	}
	var links []Link
	for _, text := range parts[2:] {
		l, err := parseLink(strings.Split(text, ","))
		if err != nil {
			return fail(fmt.Errorf("link %.100q: %w", text, err))
		}
		links = append(links, l)
	}
	if len(links) == 0 {
		links = []Link{defaultLink}
	}
	of := Torus
	if kind.word == "fattree" {
		of = fatTreeOf
	}
	network, err := of(sizes, links...)
	if err != nil {
		return fail(err)
	}
	return network, nil
}

// parseLink reads the words of a link: bytes a second, latency and perhaps cables.
func parseLink(words []string) (Link, error) {
	if len(words) != 2 && len(words) != 3 {
		return Link{}, fmt.Errorf("%d words, want BYTES_PER_SECOND,LATENCY or BYTES_PER_SECOND,LATENCY,CABLES, as "+
			"25e9,1us or 25e9,1us,4", len(words))
	}
	l := Link{Cables: 1}
	var err error
	if l.BytesPerSecond, err = strconv.ParseFloat(words[0], 64); err != nil {
		return Link{}, fmt.Errorf("%.100q bytes per second, want a finite number, at least %v", words[0],
			minBytesPerSecond)
	}
	if l.Latency, err = time.ParseDuration(words[1]); err != nil {
		return Link{}, fmt.Errorf("a latency of %.100q, want one as 500ns or 1.5us", words[1])
	}
	if len(words) == 3 {
		if l.Cables, err = strconv.Atoi(words[2]); err != nil || l.Cables < 1 {
			return Link{}, fmt.Errorf("%.100q cables, want 1 to %d", words[2], maxCables)
		}
	}
	return l, l.Check()
}

// parseMachine is a machine of link domains of a shape.
func parseMachine(shape topology.Shape, domains []int, links []string) (Network, error) {
	if len(links) > 0 {
		return nil, errors.New("a link of a machine, whose speeds are topology.DefaultSpeeds: want none, or a file of links")
	}
	sum := 0
	for _, n := range domains {
		if sum += n; sum > maxNodes {
			return nil, fmt.Errorf("more than %d replicas", maxNodes)
		}
	}
	t, err := topology.New(topology.Config{Shape: shape, Replicas: domains})
	if err != nil {
		return nil, err
	}
	return Machine(t), nil
}

// fatTreeOf is a fat tree with one link for all levels, or one for each.
func fatTreeOf(children []int, links ...Link) (Network, error) {
	if len(links) != 1 && len(links) != len(children) {
		return nil, fmt.Errorf("%d links for a fat tree of %d levels, want 1 or %[2]d", len(links), len(children))
	}
	var levels []Level
	below := 1
	for i, n := range children {
		level := Level{Children: n}
		if len(links) == len(children) && len(links) > 1 {
			level.Link = links[i]
		} else {
			level.Link = links[0]
			cables := max(level.Link.Cables, 1)
			if below > maxCables/cables {
				return nil, fmt.Errorf("%d cables for %d replicas below a switch of level %d, want at most %d: give each "+
					"level a link", cables*below, below, i-1, maxCables)
			}
			level.Link.Cables = cables * below
		}
		levels = append(levels, level)
		if below *= n; below > maxReplicas {
			return nil, fmt.Errorf("a fat tree of more than %d replicas", maxReplicas)
		}
	}
	return FatTree(levels...)
}
