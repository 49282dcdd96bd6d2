package cost

import (
	"fmt"
	"strconv"
	"strings"
)

// Graph is a network from a file: replicas and switches, and links between them. The zero Graph has no replicas. A
// message takes a shortest way: the fewest links, and of several such ways the one that a breadth-first search finds
// first that looks at nodes with low numbers first.
type Graph struct{ *graph }

// line is a line of a file that makes one link, or two.
type line struct {
	a, b   int
	link   Link
	oneWay bool
}

// maxNodes bounds the replicas and switches of a file.
const maxNodes = 1 << 20

// ParseGraph reads a network. A file has one thing a line; what follows # is a comment.
//
//	replicas 4             # nodes 0 to 3. This line comes first
//	switches 1             # node 4. Optional, the second line
//	link 0 4 25e9 500ns    # 25e9 bytes a second each way, a latency of 500 ns
//	link 1 4 25e9 500ns 2  # two cables, of as much each
//	oneway 2 4 25e9 1us    # only from 2 to 4
//
// Errors name the line: an unknown word, a number too many or too few, a node that does not exist, a link from a node
// to itself or a second one between two nodes, numbers that [Link] does not take. A file without replicas is an error.
// A pair of replicas between which no way leads is one of [Graph.Route].
func ParseGraph(text []byte) (Graph, error) {
	var g *graph
	known := map[[2]int]int{} // the line of each link
	replicas, switches := -1, -1
	number := 0
	for raw := range strings.Lines(string(text)) {
		number++
		raw, _, _ = strings.Cut(raw, "#")
		words := strings.Fields(raw)
		if len(words) == 0 {
			continue
		}
		fail := func(err error) (Graph, error) { return Graph{}, fmt.Errorf("cost: line %d: %w", number, err) }
		switch {
		case words[0] == "replicas" && replicas < 0:
			n, err := count(words, 1, maxNodes)
			if err != nil {
				return fail(err)
			}
			replicas = n
			g = newGraph(replicas, 0)
		case replicas < 0:
			return fail(fmt.Errorf("%q before how many replicas there are", words[0]))
		case words[0] == "switches" && switches < 0 && len(g.lines) == 0:
			n, err := count(words, 0, maxNodes-replicas)
			if err != nil {
				return fail(err)
			}
			switches = n
			g = newGraph(replicas, switches)
		case words[0] == "replicas" || words[0] == "switches":
			return fail(fmt.Errorf("%q again, or after a link", words[0]))
		case words[0] == "link" || words[0] == "oneway":
			l, err := parseLine(words, len(g.edges))
			if err != nil {
				return fail(err)
			}
			if err := g.join(l, number, known); err != nil {
				return fail(err)
			}
		default:
			return fail(fmt.Errorf("%q, want replicas, switches, link or oneway", words[0]))
		}
	}
	if replicas < 0 {
		return Graph{}, fmt.Errorf("cost: no line says how many replicas there are, as \"replicas 8\" does")
	}
	return Graph{g.sorted()}, nil
}

// count reads the number of a line that has one.
func count(words []string, least, most int) (int, error) {
	if len(words) != 2 {
		return 0, fmt.Errorf("%d words, want \"%s N\"", len(words), words[0])
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s %q, want %d to %d", words[0], words[1], least, most)
	}
	return n, nil
}

// parseLine reads the words of a link among so many nodes.
func parseLine(words []string, nodes int) (line, error) {
	if len(words) != 5 && len(words) != 6 {
		return line{}, fmt.Errorf("%d words, want \"%s NODE NODE BYTES_PER_SECOND LATENCY [CABLES]\"",
			len(words), words[0])
	}
	l := line{oneWay: words[0] == "oneway"}
	for i, node := range []*int{&l.a, &l.b} {
		n, err := strconv.Atoi(words[1+i])
		if err != nil || n < 0 || n >= nodes {
			return line{}, fmt.Errorf("node %q, want 0 to %d", words[1+i], nodes-1)
		}
		*node = n
	}
	if l.a == l.b {
		return line{}, fmt.Errorf("a link from node %d to itself", l.a)
	}
	var err error
	l.link, err = parseLink(words[3:])
	return l, err
}

// join adds the links of a line.
func (g *graph) join(l line, number int, known map[[2]int]int) error {
	ends := [][2]int{{l.a, l.b}, {l.b, l.a}}
	if l.oneWay {
		ends = ends[:1]
	}
	for _, e := range ends {
		if before := known[e]; before > 0 {
			return fmt.Errorf("a second link from node %d to node %d, after line %d: give one with cables",
				e[0], e[1], before)
		}
		known[e] = number
		g.add(e[0], e[1], l.link)
	}
	g.lines = append(g.lines, l)
	return nil
}

// String returns a text from which [ParseGraph] makes the same network, without comments.
func (g Graph) String() string {
	if g.graph == nil {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "replicas %d\n", g.replicas)
	if switches := len(g.edges) - g.replicas; switches > 0 {
		fmt.Fprintf(&b, "switches %d\n", switches)
	}
	for _, l := range g.lines {
		word := "link"
		if l.oneWay {
			word = "oneway"
		}
		fmt.Fprintf(&b, "%s %d %d %v %v", word, l.a, l.b, l.link.BytesPerSecond, l.link.Latency)
		if l.link.Cables > 1 {
			fmt.Fprintf(&b, " %d", l.link.Cables)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
