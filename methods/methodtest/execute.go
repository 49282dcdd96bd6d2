package methodtest

import (
	"context"
	"fmt"
	"sync"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// execute carries out the requests of groups of n on n replicas, by messages and on peer memory, and compares the
// results with those of package oracle.
func (r *report) execute(n int, does []methods.Request) {
	m, err := methods.Named(name)
	if err != nil {
		r.findings = append(r.findings, err)
		return
	}
	var mu sync.Mutex // guards r
	err = gcl.Run(context.Background(), n, func(ctx context.Context, c *gcl.Comm) error {
		for _, q := range does {
			for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
				for _, elements := range lengths(n) {
					for _, inPlace := range []bool{false, true} {
						k := trial{Request: q, method: m, implementation: i, elements: elements, inPlace: inPlace}
						if inPlace && !k.replaces() {
							continue
						}
						finding, err := k.try(ctx, c)
						if err != nil {
							return fmt.Errorf("%v: %w", k, err)
						}
						mu.Lock()
						if r.calls++; finding != nil {
							r.found(q, "%v: %v", k, finding)
						}
						mu.Unlock()
					}
				}
			}
		}
		return nil
	}, gcl.WithMethod(name, r.generator))
	if err != nil {
		r.findings = append(r.findings, fmt.Errorf("methodtest: groups of %d: %w", n, err))
	}
}

// lengths are elements of an input, or where it has blocks or is dealt out of one part: none, fewer than ranks, one
// more, and many.
func lengths(n int) []int { return []int{0, 1, n - 1, n + 1, 97} }

// trial is one call.
type trial struct {
	methods.Request
	method         methods.Method
	implementation gcl.Implementation
	elements       int
	inPlace        bool
}

func (k trial) String() string {
	return fmt.Sprintf("%v, %v, %d elements, in place %v", k.Collective, k.implementation, k.elements, k.inPlace)
}

// replaces reports whether an output can be its input: where both are as long.
func (k *trial) replaces() bool {
	contract := k.Collective.Contract()
	return contract.Input != schedule.Own && contract.Output != schedule.Own
}

// try makes the call on one replica. A finding is a wrong result, or another method than the one that was to be tried.
func (k *trial) try(ctx context.Context, c *gcl.Comm) (finding, err error) {
	var went gcl.TraceCall
	c, err = c.With(gcl.Options{Method: k.method, Implementation: k.implementation, Reproducible: k.RankOrder,
		Trace: &gcl.Trace{MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { went = c }}})
	if err != nil {
		return nil, err
	}
	elements := k.elements
	if contract := k.Collective.Contract(); contract.Input == schedule.Blocks || contract.Deals() {
		elements *= k.Size
	}
	operator, add := gcl.Operator(0), oracle.Local
	if k.Collective.Contract().Combines {
		operator, add = gcl.Add, oracle.Add
	}
	ins := oracle.Inputs[float32](add, k.Size, elements)
	wants := oracle.Outputs[float32](oracle.Call{Collective: k.Collective, Operator: add, Root: k.Root}, ins)
	src, want := ins[c.Rank()], wants[c.Rank()]
	dst := make([]float32, len(want))
	for i := range dst {
		dst[i] = -77 // which is in no result
	}
	if k.inPlace {
		dst = src
	}
	b := c.Batch(k.Collective, operator, k.Root)
	gcl.Append(b, dst, src)
	if err := b.Run(ctx); err != nil {
		return nil, err
	}
	path := gcl.PathMessages
	if k.implementation == gcl.Syncful {
		path = gcl.PathRounds
	}
	if went.Method != k.method || went.Path != path {
		return fmt.Errorf("it went by %v, %v, and not by the generator, %v", went.Method, went.Path, path), nil
	}
	if len(want) == 0 {
		return nil, nil
	}
	return oracle.Check(fmt.Sprintf("rank %d", c.Rank()), dst, want), nil
}
