package gcl

import (
	"context"
	"fmt"

	"gogcl.dev/commgroup"
)

// Split returns a Comm for the group of the replicas that give the same colour, by ascending replica id. It is a
// collective of all replicas, not just those of c: each of them calls it, in the same order among its calls. The
// colours of all are gathered, and lists are made of them (see commgroup.Lists), so all replicas have the same. A
// replica that is to sit out gives a colour of its own. Name and options are those of c.
func (c *Comm) Split(ctx context.Context, colour int) (*Comm, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	all, err := c.inGroup(commgroup.Group{})
	if err != nil {
		return nil, err
	}
	if all, err = all.With(Options{Trace: c.options.Trace}); err != nil {
		return nil, err
	}
	colours, err := AllGather(ctx, all, []int64{int64(colour)})
	if err != nil {
		return nil, &splitError{err}
	}
	var groups [][]int
	index := map[int64]int{}
	for r, colour := range colours {
		g, known := index[colour]
		if !known {
			g = len(groups)
			index[colour], groups = g, append(groups, nil)
		}
		groups[g] = append(groups[g], r)
	}
	lists, err := commgroup.Lists(groups)
	if err != nil {
		return nil, fmt.Errorf("gcl: split: %w", err)
	}
	return c.inGroup(lists)
}

// splitError is that of the call by which colours are gathered.
type splitError struct{ err error }

func (e *splitError) words() string { return "split, which all replicas call: " + explain(e.err) }
func (e *splitError) Error() string { return "gcl: " + e.words() }
func (e *splitError) Unwrap() error { return e.err }
