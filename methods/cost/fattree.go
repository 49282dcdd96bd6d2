package cost

import "fmt"

// Level is one level of a fat tree.
type Level struct {
	Children int  // how many replicas, or switches of the level below, are joined in one switch
	Link     Link // between one of them and the switch, each way; its cables are the paths to choose from
}

// fatTree is a network of switches over replicas. Height 0 is the replicas, height h the switches of level h-1.
type fatTree struct {
	levels  []Level
	below   []int // by height: the replicas below one node
	numbers []int // by height: the first of the numbers of the links up and down from the nodes there
}

// FatTree returns the network of a tree of switches, from the replicas up. A message climbs to the first switch that is
// above both its ends. A tree is fat where its links carry more towards the top. A switch that is joined to several
// switches above it is one whose link has as many cables.
//
//	FatTree(Level{2, thin}, Level{2, fat})
//
//	            ┌─── fat ───┴─── fat ───┐
//	      ┌─────┴─────┐           ┌─────┴─────┐
//	    thin        thin        thin        thin
//	      0           1           2           3
//
// Errors: no levels, one with fewer than 1 child, more than 1<<24 replicas or 1<<26 links, a link that cannot
// be.
func FatTree(levels ...Level) (Network, error) {
	if len(levels) == 0 {
		return nil, fmt.Errorf("cost: a fat tree without levels")
	}
	t := &fatTree{levels: append([]Level(nil), levels...), below: []int{1}, numbers: []int{0}}
	for i, l := range levels {
		if l.Children < 1 {
			return nil, fmt.Errorf("cost: level %d of a fat tree with %d children, want 1 or more", i, l.Children)
		}
		if err := l.Link.Check(); err != nil {
			return nil, fmt.Errorf("cost: link of level %d of a fat tree: %w", i, err)
		}
		if l.Children > maxReplicas/t.below[i] {
			return nil, fmt.Errorf("cost: a fat tree of more than %d replicas", maxReplicas)
		}
		t.below = append(t.below, t.below[i]*l.Children)
	}
	for height := range levels {
		links := int64(t.numbers[height]) + int64(2*t.Replicas()/t.below[height])
		if links > maxLinks {
			return nil, fmt.Errorf("cost: a fat tree of %d links in %d of %d levels, want at most %d", links, height+1,
				len(levels), maxLinks)
		}
		t.numbers = append(t.numbers, int(links))
	}
	return t, nil
}

func (t *fatTree) Replicas() int { return t.below[len(t.levels)] }
func (t *fatTree) Links() int    { return t.numbers[len(t.levels)] }

// Link numbers: those from the replicas, up and down for each, then those from the switches above them, and so on.
func (t *fatTree) Link(number int) Link {
	for height, l := range t.levels {
		if number >= t.numbers[height] && number < t.numbers[height+1] {
			return l.Link
		}
	}
	return Link{}
}

func (t *fatTree) Route(links []int, from, to int) ([]int, error) {
	if err := checkEnds(from, to, t.Replicas()); err != nil {
		return links, err
	}
	top := 0 // the height at which the message turns
	for a, b := from, to; a != b; top++ {
		links = append(links, t.numbers[top]+2*a)
		a /= t.levels[top].Children
		b /= t.levels[top].Children
	}
	for height := top - 1; height >= 0; height-- {
		links = append(links, t.numbers[height]+2*(to/t.below[height])+1)
	}
	return links, nil
}
