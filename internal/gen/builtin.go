package main

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// builtin is a built-in collective by a schedule that methods.Build makes.
func (c *call) builtin(r *rand.Rand, repro bool) {
	for {
		b := newCall(mix(c.id, r.Uint64()), c.g, repro)
		if b.several || b.k.byCounts() || b.k >= mappedScatter || b.op == gcl.Local {
			continue
		}
		m := methodPool()[r.IntN(len(methodPool())-autos-1)]
		spec := methods.Spec{Method: m, Collective: b.k.collective(), Size: c.g, Root: b.root,
			RankOrder: repro && b.k.combines(), Ring: r.Perm(c.g), Second: r.Perm(c.g)}
		s, err := methods.Build(spec)
		if err != nil {
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			panic(err)
		}
		c.ex.s, c.ex.base, c.ex.what = s, b, fmt.Sprintf("builtin %v by %v", b.k, m)
		c.op, c.root, c.class, c.opds = b.op, b.root, b.class, b.opds
		if c.class == realNums && !repro {
			panic("class")
		}
		return
	}
}
