package gcl

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/pack"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestSettingsAreAlike: what decides on routes is the same on all members of a group, which rings, domains and options
// of all kinds are not to change.
func TestSettingsAreAlike(t *testing.T) {
	for _, g := range []commgroup.Group{{}, {Type: commgroup.Consecutive, Size: 3},
		{Type: commgroup.Consecutive, Size: 2, Stride: 3}, {Type: commgroup.Orthogonal, Size: 2}} {
		for _, o := range []Options{{}, {Method: methods.QuadDirectionalRing}, {Implementation: Syncful},
			{MaxBroadcastSize: 100, MaxBytesPerTile: 100}, {Reproducible: true}} {
			var mu sync.Mutex // guards seen
			seen := map[string]route.Setting{}
			err := Run(context.Background(), 6, func(ctx context.Context, c *Comm) error {
				c, err := c.Group(g)
				if err != nil {
					return err
				}
				if c, err = c.With(o); err != nil {
					return err
				}
				mu.Lock()
				defer mu.Unlock()
				key := fmt.Sprint(c.Members())
				if first, known := seen[key]; known && first != c.caller.Setting {
					return fmt.Errorf("group %s: %+v on one member, %+v on replica %d",
						key, first, c.caller.Setting, c.Replica())
				}
				seen[key] = c.caller.Setting
				return nil
			})
			if err != nil {
				t.Errorf("%v %+v: %v", g, o, err)
			}
		}
	}
}

// TestRouteIsWhatExplainSays: Explain names the method and the implementation of the route, and a call that is traced
// goes by that route.
func TestRouteIsWhatExplainSays(t *testing.T) {
	for _, o := range []Options{{}, {Implementation: Syncless},
		{Method: methods.RecursiveDoubling, Implementation: Syncful}} {
		for _, n := range []int{1, 16 << 10} {
			err := Run(context.Background(), 3, func(ctx context.Context, c *Comm) error {
				var told TraceCall
				o := o // each replica's own
				o.Trace = &Trace{CollectiveEnd: func(k TraceCall, _ error) { told = k }}
				c, err := c.With(o)
				if err != nil {
					return err
				}
				if err := AllReduceInPlace(ctx, c, make([]float32, n), Add); err != nil {
					return err
				}
				var j job.Job
				a := newAsk(schedule.AllReduce, Add, 0)
				j.One(&a.Ask, tensor.F32, nil, make([]byte, 4*n), &pack.Parts{}, nil, n)
				r := c.caller.Setting.Route(&j.Question)
				e, err := c.Explain(schedule.AllReduce, int64(4*n), tensor.F32)
				if err != nil {
					return err
				}
				if told.Method != r.Method || told.Path != Path(r.Path) || e.Method != r.Method ||
					e.Implementation != told.Implementation {
					return fmt.Errorf("the route is %v by %v; the call went %v by %v (%v); Explain says %v (%v)",
						r.Path, r.Method, told.Path, told.Method, told.Implementation, e.Method, e.Implementation)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}
