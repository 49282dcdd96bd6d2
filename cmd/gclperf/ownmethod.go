package main

import (
	"errors"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/measure"
	"gogcl.dev/methods"
)

// skips says why a method of a generator, of the gallery or registered, does not carry out a collective, if it does
// not.
func (s *settings) skips(c *gcl.Comm, coll measure.Collective) error {
	o := c.Options()
	if !o.Method.Own() || c.Size() == 1 {
		return nil
	}
	spec := s.Spec(o.Method, coll, c.Size())
	spec.RankOrder = o.Reproducible && coll.Reduces()
	if _, err := methods.Build(spec); errors.Is(err, errors.ErrUnsupported) {
		return err
	}
	return nil // an error of another kind is that of the call
}
