package ir

import (
	"fmt"
	"strings"
)

// reach calls f for a graph and all that it calls, each once: the called ones in the order of their calls. It ends when
// f returns false.
func (g *Graph) reach(f func(*Graph) bool) { g.reachNew(map[*Graph]bool{}, f) }

func (g *Graph) reachNew(seen map[*Graph]bool, f func(*Graph) bool) bool {
	if seen[g] {
		return true
	}
	seen[g] = true
	if !f(g) {
		return false
	}
	for _, n := range g.nodes {
		for _, called := range n.calls() {
			if !called.reachNew(seen, f) {
				return false
			}
		}
	}
	return true
}

// find is an operation of a graph, or of one that it calls, of which something is true; or nil.
func (g *Graph) find(is func(*node) bool) (found *node) {
	g.reach(func(g *Graph) bool {
		for _, n := range g.nodes {
			if is(n) {
				found = n
				return false
			}
		}
		return true
	})
	return found
}

// orderKeys are the keys of the effects of a complete graph and those that it calls.
func (g *Graph) orderKeys() []any {
	if g.keyed == len(g.nodes)+1 {
		return g.keys
	}
	seen := map[any]bool{}
	g.keys = nil
	for _, n := range g.nodes {
		for _, key := range n.orderKeys() {
			if !seen[key] {
				seen[key] = true
				g.keys = append(g.keys, key)
			}
		}
	}
	g.keyed = len(g.nodes) + 1
	return g.keys
}

// defaultMaxSteps is what WithMaxSteps is without it. A step takes some 1 KB, and more on each replica.
const defaultMaxSteps = 10_000_000

// WithMaxSteps bounds the steps of a program that a session is made of: NewSession puts called graphs in the place of
// their calls, and so a graph that is called twice by a graph that is called twice takes memory four times. An
// operation, a call, a loop or a choice is a step, and a loop's turns count once. A program with more steps is an error
// that names the calls, before memory is taken. Without the option it is 10,000,000. Fewer than 1 is an error.
func WithMaxSteps(most int) SessionOption {
	return func(o *sessionOptions) { o.maxSteps, o.stepsGiven = most, true }
}

// manySteps is a number of steps beyond which nobody counts.
const manySteps = int64(1) << 40

// stepCounts counts the steps of graphs, each once.
type stepCounts map[*Graph]int64

func (c stepCounts) of(g *Graph) int64 {
	if sum, is := c[g]; is {
		return sum
	}
	sum := int64(0)
	for _, n := range g.nodes {
		if n.persistent() {
			continue
		}
		sum++
		for _, called := range n.calls() {
			sum = min(sum+c.of(called), manySteps)
		}
	}
	c[g] = sum
	return sum
}

// checkSteps returns an error if a program has too many steps with called graphs in the place of their calls.
func (p *Program) checkSteps(most int) error {
	if most < 1 {
		return fmt.Errorf("ir: a session of at most %d steps (WithMaxSteps), want 1 or more", most)
	}
	counts := stepCounts{}
	sum := counts.of(p.main)
	if sum <= int64(most) {
		return nil
	}
	number := fmt.Sprint(sum)
	if sum >= manySteps {
		number = "2^40 or more"
	}
	err := fmt.Errorf("ir: the program has %s steps, with called graphs in the place of their calls, and a session takes "+
		"at most %d (ir.WithMaxSteps)", number, most)
	if chain := counts.chain(p.main); len(chain) > 0 {
		err = fmt.Errorf("%w: %s calls %s", err, plainName(p.main.name), strings.Join(chain, ", which calls "))
	}
	return err
}

// mostLinks is how many calls of a chain an error names.
const mostLinks = 12

// chain is from a graph on, again and again, the one with most of the steps of those that it calls.
func (c stepCounts) chain(g *Graph) (links []string) {
	for {
		var heaviest *node
		var next *Graph
		times := map[*Graph]int64{}
		first := map[*Graph]*node{}
		for _, n := range g.nodes {
			for _, called := range n.calls() {
				if times[called]++; first[called] == nil {
					first[called] = n
				}
				if next == nil || times[called]*c[called] > times[next]*c[next] {
					next, heaviest = called, first[called]
				}
			}
		}
		switch {
		case next == nil:
			return links
		case len(links) == mostLinks:
			return append(links, "others")
		case times[next] == 1:
			links = append(links, fmt.Sprintf("%s at %v", plainName(next.name), heaviest.pos))
		default:
			links = append(links,
				fmt.Sprintf("%s %d times, first at %v", plainName(next.name), times[next], heaviest.pos))
		}
		g = next
	}
}
