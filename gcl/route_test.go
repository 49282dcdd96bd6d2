package gcl

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/commgroup"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

var updateRoutes = flag.Bool("update-routes", false, "write testdata/routes.txt anew")

// routeSettings are those of the table of routes, each over four ranks.
func routeSettings() (names []string, settings []setting) {
	add := func(name string, change func(s *setting)) {
		s := setting{tuning: hostTuning, ranks: 4, domains: 1, each: 4, memory: true, small: 8 << 10}
		change(&s)
		s.syncful, s.syncfulWhy = s.together()
		names, settings = append(names, name), append(settings, s)
	}
	add("default", func(s *setting) {})
	add("one rank", func(s *setting) { s.ranks = 1 })
	add("MaxBroadcastSize", func(s *setting) { s.tuned = true })
	add("MaxBroadcastSize, strided", func(s *setting) { s.tuned, s.strided = true, true })
	add("clockwise_ring", func(s *setting) { s.asked = methods.ClockwiseRing })
	add("Syncful clockwise_ring", func(s *setting) { s.asked, s.implementation = methods.ClockwiseRing, Syncful })
	add("Syncless", func(s *setting) { s.implementation = Syncless })
	add("no peer memory", func(s *setting) { s.memory = false })
	add("Syncful, no peer memory", func(s *setting) { s.memory, s.implementation = false, Syncful })
	add("Hybrid, one domain", func(s *setting) { s.implementation = Hybrid })
	add("Hybrid, one in each", func(s *setting) { s.implementation, s.domains, s.each = Hybrid, 4, 1 })
	add("Hybrid, two by two", func(s *setting) { s.implementation, s.domains, s.each = Hybrid, 2, 2 })
	add("Hybrid, two by two, Reproducible", func(s *setting) { s.implementation, s.domains, s.each, s.reproducible = Hybrid, 2, 2, true })
	return names, settings
}

// routeQuestions are those of the table of routes.
func routeQuestions() (names []string, questions []question) {
	add := func(name string, q question) { names, questions = append(names, name), append(questions, q) }
	for _, c := range schedule.Collectives() {
		for _, bytes := range []int{64, 64 << 10} {
			add(fmt.Sprintf("%v of %d", c, bytes), question{collective: c, bytes: bytes, published: bytes})
		}
	}
	add("all-reduce of 64, several", question{collective: schedule.AllReduce, several: true, bytes: 64, published: 64})
	add("all-reduce of 64, Local", question{collective: schedule.AllReduce, local: true, bytes: 64, published: 64})
	add("all-gather of parts", question{collective: schedule.AllGather, parts: true, bytes: 64, published: 16})
	add("barrier", question{collective: schedule.Barrier})
	return names, questions
}

// TestRoutes holds the routes against testdata/routes.txt. After -update-routes look at what has changed: commit only
// what you understand.
func TestRoutes(t *testing.T) {
	var b strings.Builder
	names, settings := routeSettings()
	questions, asked := routeQuestions()
	for i, s := range settings {
		fmt.Fprintf(&b, "%s: %s\n", names[i], s.syncfulWhy)
		for k := range asked {
			r := s.route(&asked[k])
			how := fmt.Sprintf("%v, %v", r.path, r.method)
			switch {
			case r.phases:
				how = "in phases"
			case r.path == PathLocal:
				how = "local"
			case r.because == asOnePass:
				how += ", one pass"
			case r.because == asTuned:
				how += ", tuned"
			}
			if r.barriers {
				how += ", barriers"
			}
			fmt.Fprintf(&b, "\t%-28s %s\n", questions[k], how)
		}
	}
	const golden = "testdata/routes.txt"
	if *updateRoutes {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), b.String()); d != "" {
		t.Errorf("routes (-want +have):\n%s", d)
	}
}

// TestSettingsAreAlike: what decides on routes is the same on all members of a group, which rings, domains and options
// of all kinds are not to change.
func TestSettingsAreAlike(t *testing.T) {
	for _, g := range []commgroup.Group{{}, {Type: commgroup.Consecutive, Size: 3}, {Type: commgroup.Consecutive, Size: 2, Stride: 3}, {Type: commgroup.Orthogonal, Size: 2}} {
		for _, o := range []Options{{}, {Method: methods.QuadDirectionalRing}, {Implementation: Syncful}, {MaxBroadcastSize: 100, MaxBytesPerTile: 100}, {Reproducible: true}} {
			var mu sync.Mutex // guards seen
			seen := map[string]setting{}
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
				if first, known := seen[key]; known && first != c.setting {
					return fmt.Errorf("group %s: %+v on one member, %+v on replica %d", key, first, c.setting, c.Replica())
				}
				seen[key] = c.setting
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
	for _, o := range []Options{{}, {Implementation: Syncless}, {Method: methods.RecursiveDoubling, Implementation: Syncful}} {
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
				var j job
				j.one(&call{ask: ask{collective: schedule.AllReduce}, dtype: tensor.F32, src: make([]byte, 4*n)}, n)
				r := c.setting.route(&j.question)
				e, err := c.Explain(schedule.AllReduce, int64(4*n), tensor.F32)
				if err != nil {
					return err
				}
				if told.Method != r.method || told.Path != r.path || e.Method != r.method || e.Implementation != told.Implementation {
					return fmt.Errorf("the route is %v by %v; the call went %v by %v (%v); Explain says %v (%v)",
						r.path, r.method, told.Path, told.Method, told.Implementation, e.Method, e.Implementation)
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
	}
}
