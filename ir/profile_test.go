package ir_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/irtest"
	"gogcl.dev/ir"
	"gogcl.dev/ir/ops"
)

// kindedOp is a function of a kind.
type kindedOp struct {
	funcOp
	kind string
}

func (o kindedOp) Kind() string { return o.kind }

// profile is Session.SetProfiling, which is to work.
func profile(t *testing.T, s *ir.Session, on bool) {
	t.Helper()
	if err := s.SetProfiling(on); err != nil {
		t.Fatal(err)
	}
}

// kindsOf are the kinds of a profile, sorted.
func kindsOf(times map[string]time.Duration) string {
	return strings.Join(slices.Sorted(maps.Keys(times)), " ")
}

// meets is something shared that has an end of each run.
type meets struct{ ends func() }

func (m *meets) Close() error { return nil }

func (m *meets) Finish(context.Context, int) error { m.ends(); return nil }

// An operation's time counts for its kind, that of a wait for the wait, that of what is started beside, and all else
// is computing. It is the time of the test's clock, which sleeps in the operations, each at least so long; nothing is
// counted that is not asked for, and nothing is allocated.
func TestProfile(t *testing.T) {
	const nap = 2 * time.Millisecond
	naps := func(*ir.Memory) error { time.Sleep(nap); return nil }
	p := ir.New(2)
	m := p.Main()
	g := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		g.InSequence(func() {
			ir.Apply(kindedOp{funcOp{"gather", func(*ir.Memory) error {
				time.Sleep(5 * nap)
				return nil
			}}, "collective"}, g)
			does(g, "beside", naps)
		})
		return nil
	})
	twice := p.CreateGraph(func(g *ir.Graph, _ []*ir.Tensor) []*ir.Tensor {
		ir.Apply(kindedOp{funcOp{"load", naps}, "remote"}, g)
		return nil
	})
	m.InSequence(func() {
		s := m.Start(g)
		m.Repeat(twice, 2)
		does(m, "compute", naps)
		s.Wait()
	})
	s := newSession(t, p)
	if err := s.Enter(); err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	run := func() {
		if err := s.RunTo(ctx, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	run()
	check := func(runs int) {
		t.Helper()
		got := s.Profile()
		if got.Runs != runs || len(got.Replicas) != 2 {
			t.Errorf("%d runs of %d replicas", got.Runs, len(got.Replicas))
		}
		least := time.Duration(runs) * nap
		for _, r := range got.Replicas {
			if kindsOf(r.Time) != "compute remote wait" || kindsOf(r.Beside) != "collective compute" {
				t.Errorf("kinds %s, and beside %s", kindsOf(r.Time), kindsOf(r.Beside))
			}
			for _, part := range []struct{ got, least time.Duration }{
				{r.Time["compute"], least}, {r.Time["remote"], 2 * least}, {r.Beside["collective"], 5 * least}, {r.Beside["compute"], least},
			} {
				if part.got < part.least || runs == 0 && part.got != 0 {
					t.Errorf("%v after %d runs", r, runs)
				}
			}
			if all, beside := r.Time["compute"]+r.Time["remote"]+r.Time["wait"],
				r.Beside["collective"]+r.Beside["compute"]; all < 6*least || beside < 6*least {
				t.Errorf("%v in all, and beside %v", all, beside)
			}
		}
	}
	check(0)
	profile(t, s, true)
	run()
	run()
	check(2)
	if n := testing.AllocsPerRun(5, run); n > 0 && !irtest.Race {
		t.Errorf("%v allocations a run", n)
	}
	profile(t, s, true)
	check(0)
	run()
	check(1)
	profile(t, s, false)
	run()
	check(0)
}

// TestProfileWaiting: what runs beside a replica is not its own time.
func TestProfileWaiting(t *testing.T) {
	ms := time.Millisecond
	of := func(times ...map[string]time.Duration) ir.Profile {
		var p ir.Profile
		for _, m := range times {
			p.Replicas = append(p.Replicas,
				ir.ReplicaProfile{Time: m, Beside: map[string]time.Duration{"collective": time.Hour}})
		}
		return p
	}
	for _, tt := range []struct {
		of   ir.Profile
		want float64
	}{
		{of(), 0},
		{of(map[string]time.Duration{"compute": ms}), 0},
		{of(map[string]time.Duration{"compute": 5 * ms, "remote": 2 * ms, "collective": ms, "wait": ms, "finish": ms}), 0.3},
		{of(map[string]time.Duration{"compute": ms}, map[string]time.Duration{"collective": 3 * ms}), 0.75},
	} {
		if got := tt.of.Waiting(); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.of, got, tt.want)
		}
	}
}

// What a replica waits for at the end of a run is a kind of its own; a run that fails is counted.
func TestProfileOfEnds(t *testing.T) {
	p := ir.New(1)
	nothing := p.CreateGraph(func(*ir.Graph, []*ir.Tensor) []*ir.Tensor { return nil })
	fails := false
	p.Main().InSequence(func() {
		ir.Apply(sharingOp{}, p.Main())
		does(p.Main(), "fail", func(*ir.Memory) error {
			if fails {
				return errors.New("no more")
			}
			return nil
		})
		p.Main().If(ops.Greater(number(p.Main(), 1), number(p.Main(), 0)), ir.Branch{Graph: nothing},
			ir.Branch{Graph: nothing})
	})
	s := newSession(t, p)
	profile(t, s, true)
	if _, err := s.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	r := s.Profile().Replicas[0]
	if kindsOf(r.Time) != "compute finish" || r.Time["finish"] < time.Millisecond || r.Beside != nil {
		t.Errorf("%v", r)
	}
	fails = true
	if _, err := s.Run(context.Background(), nil); err == nil || s.Profile().Runs != 2 {
		t.Errorf("%v after %d runs", err, s.Profile().Runs)
	}
}

// sharingOp shares what has an end.
type sharingOp struct{}

func (sharingOp) Name() string                       { return "share" }
func (sharingOp) Infer([]ir.Spec) ([]ir.Spec, error) { return nil, nil }
func (sharingOp) Bind(m *ir.Memory) (func() error, error) {
	_, err := m.Share(sharingOp{}, func(int) (ir.Shared, error) {
		return &meets{func() { time.Sleep(time.Millisecond) }}, nil
	})
	return func() error { return nil }, err
}
