package methods

import (
	"math/bits"

	"gogcl.dev/methods/schedule"
)

// collectiveWays is how the kinds of methods carry out one collective: those without a ring, those on rings, those by
// doubling, and, of a collective that combines, the chain that keeps the order of the ranks.
type collectiveRecipes struct {
	collective      schedule.Collective
	toAll, direct   recipe
	ring            func(f ringForm) recipe
	doubling, chain recipe
}

// built is the recipe of a generator that is written from the chunks' point of view.
func built(chunks func(s Spec) int, add func(b *schedule.Builder, s Spec)) recipe {
	return recipe{chunks: chunks, program: func(s Spec, rank int) schedule.Program {
		b := schedule.NewBuilder(s.Collective, s.Size, s.Root, chunks(s)).Only(rank)
		add(b, s)
		out, err := b.Build()
		if err != nil {
			panic(err) // a fault of the generator, which the proof of every schedule would show
		}
		return out.Programs[rank]
	}}
}

// pipelined is the recipe with the chain that Pieces is for.
func (w recipe) pipelined(reach func(size int) int) recipe {
	w.reach = reach
	return w
}

// actual is the rank v places after the root.
func (s Spec) actual(v int) int { return (v + s.Root) % s.Size }

// treeRounds is the number of rounds of a binomial tree over the ranks.
func (s Spec) treeRounds() int { return bits.Len(uint(s.Size - 1)) }
