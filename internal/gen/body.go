package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"gogcl.dev/gcl"
)

// body is one replica's part of the program.
func (p *prog) body(ctx context.Context, base *gcl.Comm) (err error) {
	comms, dups, err := p.makeComms(ctx, base)
	defer func() {
		if err != nil && ctx.Err() == nil {
			base.Abort(err)
		}
		for _, d := range dups {
			err = errors.Join(err, d.Close())
		}
	}()
	if err != nil {
		return fmt.Errorf("prog %d n=%d: %w", p.seed, p.n, err)
	}
	me := base.Replica()
	type work struct {
		w  *gcl.Work
		at int
	}
	run := func(conn int) error {
		r := source(p.seed, 4, uint64(me), uint64(conn+1))
		var works []work
		for i, s := range p.steps {
			d := p.comms[s.comm]
			if conn >= 0 && d.conn != conn {
				continue
			}
			cm := comms[s.comm]
			calls := s.byGroup[groupOf(d.groups, me)]
			if len(calls) > 0 {
				f := func(ctx context.Context, cm *gcl.Comm) error {
					for _, c := range calls {
						if err := c.do(ctx, cm, cm.Rank()); err != nil {
							return fmt.Errorf("prog %d n=%d step %d comm %d (%s, %+v): %w",
								p.seed, p.n, i, s.comm, d.what, cm.Options(), err)
						}
					}
					return nil
				}
				if s.start {
					works = append(works, work{cm.Start(ctx, f), i + r.IntN(5)})
				} else if err := f(ctx, cm); err != nil {
					return err
				}
			}
			for len(works) > 0 && (works[0].at <= i || i == len(p.steps)-1) {
				if err := works[0].w.Wait(); err != nil {
					return err
				}
				works = works[1:]
			}
		}
		for _, w := range works {
			if err := w.w.Wait(); err != nil {
				return err
			}
		}
		return nil
	}
	if !p.parallel {
		return run(-1)
	}
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for conn := range errs {
		wg.Go(func() { errs[conn] = run(conn) })
	}
	wg.Wait()
	return errors.Join(errs...)
}
