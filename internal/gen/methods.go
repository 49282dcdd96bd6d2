package main

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// autos is how many times the method Auto stands at the end of the pool, so that it is drawn more often.
const autos = 4

// methodPool is the methods that options are drawn from: the library's, in their order, one of the generator's own, and
// Auto. A program of a seed hangs on the order.
var methodPool = sync.OnceValue(func() (pool []methods.Method) {
	for _, m := range methods.Values() {
		if m != methods.Native {
			pool = append(pool, m)
		}
	}
	const own = "gen_star"
	if err := methods.Register(own, methods.GeneratorFunc(star)); err != nil {
		panic(err)
	}
	m, err := methods.Parse(own)
	if err != nil {
		panic(err)
	}
	return append(append(pool, m), slices.Repeat([]methods.Method{methods.Auto}, autos)...)
})

// star is a method of the generator's own: all ranks send to the root, which sends to all.
func star(r methods.Request) (*schedule.Schedule, error) {
	b := schedule.NewBuilder(r.Collective, r.Size, r.Root, 1)
	switch r.Collective {
	case schedule.AllReduce, schedule.Reduce:
		if r.RankOrder && r.Collective == schedule.Reduce && r.Root != 0 {
			return nil, fmt.Errorf("not in order: %w", errors.ErrUnsupported)
		}
		for x := 1; x < r.Size; x++ {
			b.Fold(0, (x+r.Root)%r.Size, r.Root, 0, 1)
		}
		if r.Collective == schedule.AllReduce {
			for x := 1; x < r.Size; x++ {
				b.Copy(1, r.Root, (x+r.Root)%r.Size, 0, 1)
			}
		}
	case schedule.Broadcast:
		for x := 1; x < r.Size; x++ {
			b.Copy(0, r.Root, (x+r.Root)%r.Size, 0, 1)
		}
	default:
		return nil, errors.ErrUnsupported
	}
	return b.Build()
}
