package main

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/topology"
)

// inProcess runs programs of random numbers of replicas, each in a Run of its own. It stops at the tenth failure.
func inProcess(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	began, done, last := time.Now(), 0, s.seed
	for i := 0; i < s.programs && time.Since(began) < s.limit && bad < 10 && ctx.Err() == nil; i++ {
		last = s.seed + uint64(i)
		n := 1 + int(mix(last, 77)%uint64(s.replicas))
		p := newProg(last, n, nil, false, s.steps)
		first, err, late := p.run(ctx, s.hang)
		if err != nil {
			bad++
			fmt.Fprintf(w, "FAIL %s: seed %d n=%d timeout=%v topo=%+v\n   first: %.900v\n   run: %.300v\n",
				nameOf(err, late), last, n, late, p.topo, first, err)
		}
		done++
	}
	report(w, fmt.Sprintf("run seeds %d-%d", s.seed, last), done, bad, began, s.detail)
	return bad, context.Cause(ctx)
}

// run runs the program in this process. first is the error of the replica that failed first; late says that it took
// longer than hang.
func (p *prog) run(ctx context.Context, hang time.Duration) (first, err error, late bool) {
	var opts []gcl.CommOption
	if p.topo != nil {
		t, err := topology.New(*p.topo)
		if err != nil {
			return err, err, false
		}
		opts = append(opts, gcl.WithTopology(t))
	}
	ctx, cancel := context.WithTimeout(ctx, hang)
	defer cancel()
	var once sync.Once
	err = gcl.Run(ctx, p.n, func(ctx context.Context, c *gcl.Comm) error {
		err := p.body(ctx, c)
		if err != nil {
			once.Do(func() { first = err })
		}
		return err
	}, opts...)
	return first, err, ctx.Err() != nil
}

// goroutines runs the programs of a job of processes by goroutines of one Run.
func goroutines(ctx context.Context, w io.Writer, s *settings) (bad int, err error) {
	topo, options, err := machine(s.replicas, s.domains, s.dealt)
	if err != nil {
		return 0, err
	}
	var all []*prog
	for i := range s.programs {
		all = append(all, newProg(s.seed+uint64(i), s.replicas, topo, true, s.steps))
	}
	err = gcl.Run(ctx, s.replicas, func(ctx context.Context, c *gcl.Comm) error {
		for _, p := range all {
			if err := p.body(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}, options...)
	fmt.Fprintf(w, "goroutines: %d collective calls, %.600v\n", made.calls.Load(), err)
	if err != nil {
		bad++
	}
	return bad, context.Cause(ctx)
}

// machine is n replicas in so many link domains, and the option that says so. One domain is no machine.
func machine(n, domains int, dealt bool) (*topology.Config, []gcl.CommOption, error) {
	if domains == 1 {
		return nil, nil, nil
	}
	if n%domains != 0 {
		return nil, nil, fmt.Errorf("%d replicas do not divide into %d domains", n, domains)
	}
	topo := new(topology.Config)
	for r := range n {
		d := r / (n / domains)
		if dealt {
			d = r % domains
		}
		topo.Domains = append(topo.Domains, d)
	}
	t, err := topology.New(*topo)
	if err != nil {
		return nil, nil, err
	}
	return topo, []gcl.CommOption{gcl.WithTopology(t)}, nil
}
