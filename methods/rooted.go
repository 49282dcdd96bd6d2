package methods

import (
	"math/bits"

	"gogcl.dev/methods/schedule"
)

// collectiveRecipes is how the kinds of methods carry out one collective: those without a ring, those on rings, those
// by doubling, and, of a collective that combines, the chain that keeps the order of the ranks.
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
	}, traffic: func(s Spec, t *schedule.Traffic) {
		b := schedule.NewBuilder(s.Collective, s.Size, s.Root, chunks(s))
		add(b, s)
		listed, err := b.Traffic()
		if err != nil {
			panic(err) // as above
		}
		t.Rounds = listed.Rounds
	}}
}

// describes is the recipe with a shorter description of its messages than the list of all.
func (w recipe) describes(traffic func(s Spec, t *schedule.Traffic)) recipe {
	w.traffic = traffic
	return w
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

// tree is knomial with the parts of the ranks: a child passes on those of n ranks from first on. Those that go past the
// last rank make two edges.
func (s Spec) tree(radix int, edge func(t, child, parent, first, n int)) {
	s.knomial(radix, func(t, child, parent, below int) {
		edge(t, child, parent, child, min(below, s.Size-child))
		if rest := child + below - s.Size; rest > 0 {
			edge(t, child, parent, 0, rest)
		}
	})
}

// knomial calls edge for each edge of a k-nomial tree over the ranks, from the leaves to the root: in round t a child
// passes on something of as many ranks as below says: itself, and those that follow it in the order from the root.
func (s Spec) knomial(radix int, edge func(t, child, parent, below int)) {
	for t, span := 0, 1; span < s.Size; t++ {
		for v := span; v < s.Size; v += span {
			if digit := v / span % radix; digit != 0 {
				edge(t, s.actual(v), s.actual(v-digit*span), min(span, s.Size-v))
			}
		}
		if span > s.Size/radix {
			break // an int of 32 bits need not hold the next one
		}
		span *= radix
	}
}
