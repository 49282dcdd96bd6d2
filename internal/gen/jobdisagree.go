package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gogcl.dev/gcl"
)

// unharmed says that a replica has no error, of options that may have changed nothing: then no replica has one.
const unharmed = "no error"

// jobDisagree is one replica of a job in which one rank calls something else; then all close. Every replica must get
// ErrMismatch, from the call or from Close.
func jobDisagree(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	c, _, err := join(ctx, s)
	if err != nil {
		return 0, err
	}
	mixed := mix(s.seed)
	r := source(mixed, 9)
	x := scenario{seed: s.seed, mixed: mixed, what: s.only}
	if x.what == "" {
		x.what = disagreements[r.IntN(len(disagreements))]
	}
	k := c.Size()
	// With "extra" the odd rank has a barrier before the call of all.
	if !x.draw(k, 200, x.what == "extra") || x.what == "group" {
		fmt.Fprintf(w, "seed %d %s rank %d of %d: left out\n", s.seed, x.what, c.Rank(), k)
		return 0, c.Close()
	}
	if s.domains > 1 { // all by Hybrid, where the odd rank's options do not say something else
		x.devOpt.Implementation = cmp.Or(x.devOpt.Implementation, gcl.Hybrid)
		if c, err = c.With(gcl.Options{Implementation: gcl.Hybrid}); err != nil {
			return 0, fmt.Errorf("-domains %d: %w", s.domains, err)
		}
	}
	oddRank, late := r.IntN(k), r.IntN(3)
	if x.what == "unequalparts" {
		x.dev.opds[0].sent[oddRank][(oddRank+1)%k]++
	}
	ctx, cancel := context.WithTimeout(ctx, 2*hangs)
	defer cancel()
	mine, its, isOdd := c, x.base, c.Rank() == oddRank
	if isOdd {
		if mine, err = c.With(x.devOpt); err != nil {
			return 0, errors.Join(fmt.Errorf("options: %w", err), c.Close())
		}
		if x.what != "extra" {
			its = x.dev
		}
	}
	if late == 1 && isOdd || late == 2 && !isOdd {
		time.Sleep(time.Duration(mix(mixed, uint64(c.Rank()))%20) * time.Millisecond)
	}
	began := time.Now()
	var call error
	if isOdd && x.what == "extra" {
		call = mine.Barrier(ctx)
	}
	if call == nil {
		call = its.do(ctx, mine, c.Rank())
	}
	closing := c.Close()
	from := "by the call"
	if !errors.Is(call, gcl.ErrMismatch) {
		from = "by Close"
	}
	found := verdict(errors.Join(call, closing))
	if time.Since(began) > hangs {
		found = "hang"
	}
	what := fmt.Sprintf("seed %d %s %v odd %d rank %d of %d", s.seed, x.what, x.base.k, oddRank, c.Rank(), k)
	var refused error // by the odd rank's own options: it leaves then
	if isOdd && errors.Is(call, errors.ErrUnsupported) || !isOdd && x.what == "reproducible" && x.base.k == execute {
		refused = errors.ErrUnsupported // at the others: it may be
	}
	one := scenario{what: x.what, base: x.base, members: []int{0}, callErr: []error{refused}}
	switch {
	case found == "":
		fmt.Fprintf(w, "%s: mismatch %s\n", what, from)
		return 0, nil
	case errors.Join(call, closing) == nil && maybeNoEffect(x.what):
		fmt.Fprintf(w, "%s: %s\n", what, unharmed)
		return 0, nil
	case one.excused(errors.Join(call, closing)):
		fmt.Fprintf(w, "%s: it is right to say: %v\n", what, errors.Join(call, closing))
		return 0, nil
	}
	name := map[string]string{"a member has no error": "silence", "hang": "hang"}[found]
	if name == "" {
		name = "other"
	}
	fmt.Fprintf(w, "FAIL %s: %s: %s: call: %.200v; close: %.200v\n", name, what, found, call, closing)
	return 1, nil
}
