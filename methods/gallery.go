package methods

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/methods/schedule"
)

// Listed is a Generator, with the text of its method.
type Listed struct {
	Name      string
	Generator Generator
}

// Gallery lists the generators of the library whose methods have a name and no constant: Parse("circulant") is one, as
// are the options that say so. Their schedules are proved when they are first asked for, as those of programs are: see
// [Prover.Prove]. A Generator with other parameters, and other generators of the library, are for Register and
// gcl.WithMethod, also by a name of the list. The list is the caller's. Those that do rooted collectives do any root.
// Each does any number of ranks up to 65536 but those of tori and of hierarchies, which do the numbers that fit their
// shape, Swing up to 1024. A request in which chunks times ranks are more than 1<<24 is an error that is
// errors.ErrUnsupported: an all-reduce by Circulant over more than 4096 ranks, for one.
//
// A pipelined chain is not among them. It is how the ring methods carry out a Broadcast and a Reduce, in as many pieces
// as [Spec.Pipelined] says, and an AllReduce with RankOrder.
func Gallery() []Listed {
	return []Listed{
		{"halving_doubling", HalvingDoubling()},
		{"circulant", Circulant()},
		{"bruck", Bruck()},
		{"pat", PAT(0)},
		{"binomial_tree", KNomialTree(2)},
		{"knomial_4_tree", KNomialTree(4)},
		{"double_binary_tree", DoubleBinaryTree(8)},
		{"torus_2d", TorusRings(0, 0)},
		{"torus_3d", TorusRings(0, 0, 0)},
		{"hierarchical_8", Hierarchical(8)},
		{"swing", SwingTorus(false)},
		{"swing_2d", SwingTorus(true, 0, 0)},
	}
}

// only refuses a request that is malformed, one of a collective that is not in the list, and one that asks for the
// order of the ranks.
func (r *Request) only(does ...schedule.Collective) error {
	if err := r.checkNumbers(); err != nil {
		return err
	}
	if !slices.Contains(does, r.Collective) {
		var names []string
		for _, c := range does {
			names = append(names, c.String())
		}
		return fmt.Errorf("it does %s, and not %v: %w", strings.Join(names, ", "), r.Collective,
			errors.ErrUnsupported)
	}
	if r.inOrder() {
		return fmt.Errorf("it does not fold in the order of the ranks: %w", errors.ErrUnsupported)
	}
	return nil
}

// maxPlaces bounds how many chunks of how many ranks a Builder follows. 4096 ranks with a chunk each are the most.
const maxPlaces = 1 << 24

// builder begins the schedule of a request that only has not refused, unless it is too large.
func (r *Request) builder(chunks int) (*schedule.Builder, error) {
	if err := r.fits(chunks); err != nil {
		return nil, err
	}
	return schedule.NewBuilder(r.Collective, r.Size, r.Root, chunks), nil
}

// fits refuses a request whose schedule would be too large.
func (r *Request) fits(chunks int) error {
	if chunks > maxPlaces/r.Size {
		return fmt.Errorf("%d chunks at %d ranks are too many, want a product of at most %d: %w", chunks, r.Size,
			maxPlaces, errors.ErrUnsupported)
	}
	return nil
}

// onlyOf is the limits of a Generator that does some collectives, each rank's data in so many chunks.
func onlyOf(chunks func(r *Request) int, does ...schedule.Collective) func(Request) error {
	return func(r Request) error {
		if err := r.only(does...); err != nil {
			return err
		}
		return r.fits(chunks(&r))
	}
}

// chunkEach is a chunk for each rank.
func chunkEach(r *Request) int { return r.Size }
