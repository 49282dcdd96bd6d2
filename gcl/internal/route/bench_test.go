package route

import (
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

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
			s := Setting{Tuning: tuning, Phased: phased, Ranks: 4, Domains: 1, Each: 4, Memory: true, Small: 8 << 10}
			s.Syncful, s.SyncfulWhy = s.Together()
			q := Question{Collective: schedule.AllReduce, Bytes: 4096, Published: 4096}
			b.ReportAllocs()
			for b.Loop() {
				var r Route
				s.Decide(&r, &q)
			}
		})
	}
}
