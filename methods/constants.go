package methods

import "slices"

// others are the collectives whose recipes stand together, for all kinds of methods.
var others = []collectiveRecipes{reduceRecipes, gatherRecipes, scatterRecipes, barrierRecipes}

// and adds the recipes of the other collectives, of one kind of method.
func (w recipes) and(kind func(c collectiveRecipes) recipe) recipes {
	out := slices.Clone(w)
	for _, c := range others {
		for int(c.collective) >= len(out) {
			out = append(out, recipe{})
		}
		out[c.collective] = kind(c)
	}
	return out
}

// chained are the recipes of methods that reduce in the order of the ranks along a chain.
var chained = chainRecipes.and(func(c collectiveRecipes) recipe { return c.chain })

// builtin has a row for each of the constants.
var builtin = [numMethods]row{
	Auto: {name: "auto", unscheduled: "it chooses another method"},
	SendToAll: {
		name: "broadcast", recipes: sendToAllRecipes.and(func(c collectiveRecipes) recipe { return c.toAll }),
	},
	ClockwiseRing:         ringRow("clockwise_ring", clockwiseRing),
	AnticlockwiseRing:     ringRow("anticlockwise_ring", anticlockwiseRing),
	BidirectionalRingPair: ringRow("bidirectional_ring_pair", bidirectionalRingPair),
	MeetInMiddleRing:      ringRow("meet_in_middle_ring", meetInMiddleRing),
	QuadDirectionalRing:   ringRow("quad_directional_ring", quadDirectionalRing),
	Direct: {
		name: "direct", recipes: directRecipes.and(func(c collectiveRecipes) recipe { return c.direct }),
	},
	RecursiveDoubling: {
		name: "recursive_doubling", inOrder: chained,
		recipes: doublingRecipes.and(func(c collectiveRecipes) recipe { return c.doubling }),
	},
	Native: {name: "native", unscheduled: "a collective of the transport's own engine has none"},
}
