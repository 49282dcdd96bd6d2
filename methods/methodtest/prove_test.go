package methodtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// star is an all-reduce by one rank in the middle.
func star(r methods.Request, middle int) (*schedule.Schedule, error) {
	if r.Collective != schedule.AllReduce || r.RankOrder && middle != 0 {
		return nil, fmt.Errorf("only an all-reduce: %w", errors.ErrUnsupported)
	}
	b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
	for rank := range r.Size {
		if rank != middle {
			b.Fold(0, rank, middle, 0, 1)
			b.Copy(1, middle, rank, 0, 1)
		}
	}
	return b.Build()
}

// of is a generator that makes a star by a function of its own.
func of(middle func() int) methods.Generator {
	return methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) { return star(r, middle()) })
}

var good = of(func() int { return 0 })

// TestProve: a method that does one collective, and some of the library's that do all.
func TestProve(t *testing.T) {
	t.Parallel()
	Prove(t, good, 2, 3, 4, 7)
	for _, m := range []methods.Method{methods.Direct, methods.MeetInMiddleRing, methods.RecursiveDoubling} {
		Prove(t, methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
			r.Spec.Method = m
			return methods.Build(r.Spec)
		}), 2, 5)
	}
	r, err := prove(good, []int{6})
	if err != nil || r.spoilt == 0 || r.proved != 2 || r.calls != 2*6*2*len(lengths(6))*2 || len(r.findings) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestProveFinds: each thing that Prove looks for is found where it is.
func TestProveFinds(t *testing.T) {
	t.Parallel()
	unsupported := methods.GeneratorFunc(func(methods.Request) (*schedule.Schedule, error) {
		return nil, errors.ErrUnsupported
	})
	for what, x := range map[string]struct {
		g     methods.Generator
		sizes []int
		want  string
	}{
		"no sizes": {good, nil, "no sizes of group"},
		"one":      {good, []int{1}, "a group of 1, want 2 or more"},
		"nil":      {nil, []int{2}, "nil generator"},
		"nothing":  {unsupported, []int{2, 3}, "the generator does no collective in groups of [2 3]"},
	} {
		if _, err := prove(x.g, x.sizes); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", what, err, x.want)
		}
	}

	var turn atomic.Int64
	unproved := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		s, err := star(r, 0)
		if err == nil {
			s.Programs[1][1].Moves = nil
		}
		return s, err
	})
	wasteful := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		s, err := star(r, 0)
		if err == nil {
			p := s.Programs[1]
			p[0].Then = append(p[0].Then, schedule.Step{Verb: schedule.Copy, Peer: -1, Src: schedule.In(0, 1),
				Dst: schedule.Tmp(0, 0, 1)})
		}
		return s, err
	})
	for what, x := range map[string]struct {
		g    methods.Generator
		want string
	}{
		"a plain error": {methods.GeneratorFunc(func(methods.Request) (*schedule.Schedule, error) {
			return nil, errors.New("odd")
		}), "odd; of a request that it cannot do a generator returns an error that wraps errors.ErrUnsupported"},
		"writes for nothing": {wasteful, "it writes for nothing: 0 chunks sent again, 1 chunk never used"},
		"does not prove":     {unproved, "the schedule does not prove: schedule: rank 0 round 1: deadlock"},
		"two schedules":      {of(func() int { return int(turn.Add(1) % 2) }), "asked twice, the generator makes two schedules"},
	} {
		r, err := prove(x.g, []int{3})
		if err != nil || len(r.findings) == 0 || !strings.Contains(r.findings[0].Error(), x.want) {
			t.Errorf("%s: %v, %v, want %s", what, r.findings, err, x.want)
		}
	}

	p, err := methods.NewProver(name, good)
	if err != nil {
		t.Fatal(err)
	}
	q := requests(3)[0]
	proved, err := p.Prove(q)
	if err != nil {
		t.Fatal(err)
	}
	r := &report{check: func(*schedule.Schedule, schedule.Waste) error { return nil }} // it sees nothing
	r.mutants(q, proved)
	if len(r.findings) != r.spoilt || r.spoilt == 0 ||
		!strings.Contains(r.findings[0].Error(), "the step is not needed") {
		t.Errorf("%d spoilt schedules, findings %v", r.spoilt, r.findings)
	}
	r = &report{check: func(*schedule.Schedule, schedule.Waste) error { return errors.ErrUnsupported }}
	wide := methods.Request{Spec: methods.Spec{Collective: schedule.AllToAll, Size: 12, Method: methods.Direct}}
	large, err := methods.Build(wide.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if r.mutants(wide, &methods.Proved{Schedule: large}); r.spoilt > maxMutants || r.spoilt < maxMutants/2 {
		t.Errorf("%d spoilt schedules of a large one, want up to %d", r.spoilt, maxMutants)
	}
}

// TestOtherMethodIsFound: a call that does not go by the generator, and a result that is wrong, are findings.
func TestOtherMethodIsFound(t *testing.T) {
	t.Parallel()
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		k := trial{Request: requests(2)[0], method: methods.Direct, implementation: gcl.Syncful, elements: 3}
		finding, err := k.try(ctx, c)
		if err != nil || finding == nil || !strings.Contains(finding.Error(), "and not by the generator") {
			t.Errorf("%v, %v", finding, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
