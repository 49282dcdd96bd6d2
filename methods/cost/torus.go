package cost

import (
	"fmt"
	"slices"
)

// torus is a network of neighbours in any number of dimensions.
type torus struct {
	dims     []int
	links    []Link // by dimension
	replicas int
}

// Torus returns the network of a torus: replicas are places with one coordinate in each dimension, the first of which
// counts fastest, and are linked to the next and the one before in each dimension, around the ends. links has the link
// of all dimensions, or one for each.
//
// A message goes the shorter way in each dimension, the first dimension first. Where both ways are as long it goes up.
// So between two places along a dimension only the links up are used.
//
//	a torus of {4, 2}     4 ── 5 ── 6 ── 7 ── (4)
//	                      ║    ║    ║    ║
//	                      0 ── 1 ── 2 ── 3 ── (0)
//
// Errors: no dimensions, one of less than 1 place, more than 1<<24 replicas or 1<<26 links, another number of links, a
// link that cannot be.
func Torus(dims []int, links ...Link) (Network, error) {
	if len(dims) == 0 {
		return nil, fmt.Errorf("cost: a torus without dimensions")
	}
	t := &torus{dims: slices.Clone(dims), replicas: 1}
	for i, d := range dims {
		if d < 1 {
			return nil, fmt.Errorf("cost: a torus with %d places in dimension %d, want 1 or more", d, i)
		}
		if d > maxReplicas/t.replicas {
			return nil, fmt.Errorf("cost: a torus of %v: more than %d replicas", dims, maxReplicas)
		}
		t.replicas *= d
	}
	if len(dims) > maxLinks/2/t.replicas {
		return nil, fmt.Errorf("cost: a torus of %v: more than %d links", dims, maxLinks)
	}
	if len(links) != 1 && len(links) != len(dims) {
		return nil, fmt.Errorf("cost: %d links for a torus of %d dimensions, want 1 or %[2]d", len(links), len(dims))
	}
	for i, l := range links {
		if err := l.Check(); err != nil {
			return nil, fmt.Errorf("cost: link of dimension %d of a torus: %w", i, err)
		}
	}
	for i := range dims {
		t.links = append(t.links, links[i%len(links)])
	}
	return t, nil
}

func (t *torus) Replicas() int { return t.replicas }
func (t *torus) Links() int    { return 2 * len(t.dims) * t.replicas }

// Link numbers: those of one replica, up and down in each dimension, then those of the next.
func (t *torus) Link(number int) Link {
	if number < 0 || number >= t.Links() {
		return Link{}
	}
	return t.links[number/2%len(t.dims)]
}

func (t *torus) Route(links []int, from, to int) ([]int, error) {
	if err := checkEnds(from, to, t.replicas); err != nil {
		return links, err
	}
	at, stride := from, 1
	for i, d := range t.dims {
		a := at / stride % d
		b := to / stride % d
		up := b - a
		if up < 0 {
			up += d
		}
		step, down, hops := 1, 0, up
		if up > d-up {
			step, down, hops = -1, 1, d-up
		}
		for range hops {
			links = append(links, (at*len(t.dims)+i)*2+down)
			next := a + step
			switch next {
			case d:
				next = 0
			case -1:
				next = d - 1
			}
			at += (next - a) * stride
			a = next
		}
		stride *= d
	}
	return links, nil
}
