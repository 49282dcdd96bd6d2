package main

import (
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// skips says why a method of a generator, of the gallery or registered, does not carry out a collective, if it does
// not.
func (s *settings) skips(c *gcl.Comm, coll collective) error {
	o := c.Options()
	if !o.Method.Own() || c.Size() == 1 {
		return nil
	}
	spec := methods.Spec{
		Method: o.Method, Collective: schedule.Collective(coll), Size: c.Size(), Ring: order(c.Size()),
		Second: order(c.Size()), RankOrder: o.Reproducible && coll.reduces(),
	}
	if coll.rooted() {
		spec.Root = s.root
	}
	if _, err := methods.Build(spec); errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil // an error of another kind is that of the call
}

// order is the ranks as they are.
func order(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
