package carry

import (
	"testing"

	"gogcl.dev/gcl/internal/carry/phases"
	"gogcl.dev/gcl/internal/route"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// wayOf is the way of four ranks that reach each other's memory.
func wayOf(t methods.Tuning) *Caller {
	w := &Caller{Setting: route.Setting{Tuning: t, Phased: phases.Collectives(), Ranks: 4, Domains: 1, Each: 4,
		Memory: true, Small: 8 << 10}}
	w.Setting.Syncful, w.Setting.SyncfulWhy = w.Setting.Together()
	w.Settle(nil)
	return w
}

// TestDecideAgain: a route that is remembered is that of the question, also after another one and on another way.
func TestDecideAgain(t *testing.T) {
	rules, err := methods.ParseRules([]byte("all-reduce 4 0 direct/Syncful\nall-reduce 4 100 broadcast/Syncless"))
	if err != nil {
		t.Fatal(err)
	}
	w := wayOf(methods.Tuning{Rules: rules})
	other := w.Instead()
	other.Setting.Memory = false
	for _, bytes := range []int{8, 8, 100, 100, 8} {
		q := route.Question{Collective: schedule.AllReduce, Bytes: bytes, Published: bytes}
		for _, way := range []*Caller{w, other} {
			var r route.Route
			way.decide(&r, &q)
			if want := way.Setting.Route(&q); r != want {
				t.Errorf("%d bytes: %+v, want %+v", bytes, r, want)
			}
		}
		q.Above = 1
		var r route.Route
		if w.decide(&r, &q); r.Because == route.AsRuled {
			t.Errorf("%d bytes, without rules: %+v", bytes, r)
		}
	}
}

// BenchmarkDecide is what the route of a small call costs, with rules and without.
func BenchmarkDecide(b *testing.B) {
	rules, err := methods.ParseRules([]byte(`all-reduce 2 0 direct/Syncful
all-reduce 3-5 0 broadcast/Syncful
all-reduce 3-5 4KiB direct/Syncful
all-reduce 3-5 64KiB direct/Syncless
all-reduce 3-5 1MiB direct/Syncful
all-reduce 6- 0 direct/Syncful`))
	if err != nil {
		b.Fatal(err)
	}
	for name, rules := range map[string]*methods.Rules{"rules=none": nil, "rules=some": rules} {
		b.Run(name, func(b *testing.B) {
			tuning := methods.MemoryLinks()
			tuning.Rules = rules
			w := wayOf(tuning)
			q := route.Question{Collective: schedule.AllReduce, Bytes: 4096, Published: 4096}
			b.ReportAllocs()
			for b.Loop() {
				var r route.Route
				w.decide(&r, &q)
			}
		})
	}
}
