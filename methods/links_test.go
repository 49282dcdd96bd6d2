package methods

import (
	"os"
	"testing"

	"gogcl.dev/methods/schedule"
)

// TestLinksAsRules: for each class of links a table of rules, after MaxBroadcastBytes, says what the sizes of its
// Tuning say: by default, with a number that options set, and with a negative one.
func TestLinksAsRules(t *testing.T) {
	t.Parallel()
	for name, links := range map[string]func() Tuning{
		"ipu": IPULinks, "memory": MemoryLinks, "engine": EngineLinks, "sockets": SocketLinks, "network": NetworkLinks,
	} {
		text, err := os.ReadFile("testdata/links/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		rules := mustRules(t, string(text))
		if rules.String() != string(text) {
			t.Errorf("%s is not as Rules.String writes it", name)
		}
		for _, limit := range []int64{links().MaxBroadcastBytes, -1, 2048, 64 << 10, 4 << 20} {
			sizes := links()
			sizes.MaxBroadcastBytes = limit
			compareChoices(t, name, &sizes, rules)
		}
	}
}

// byTable chooses as a table of links would have to: an all-reduce of few bytes by MaxBroadcastBytes, and else by the
// last rule that fits. Of the obstacles of Tuning.Rule two are narrower. A limit does not keep an all-reduce from
// broadcast, unless it is negative. In rank order recursive_doubling alone is skipped, and rings are taken.
func byTable(rules *Rules, limit int64, q *Case) Method {
	reduce := q.Collective == schedule.AllReduce
	if reduce && !q.Strided && limit > 0 && q.Bytes <= limit/int64(q.Ranks) {
		return SendToAll
	}
	for r := rules.above(0, q.Collective, q.Ranks, q.Bytes); r != nil; {
		barred := r.Method == SendToAll && reduce && (q.Strided || limit < 0)
		if chain := r.Method == RecursiveDoubling && q.RankOrder && inRankOrder(q.Collective); !barred && !chain {
			return r.Method
		}
		r = rules.above(r.Line, q.Collective, q.Ranks, q.Bytes)
	}
	return Auto
}

// compareChoices reports the first size for which two tunings choose differently, for each collective, form and limit.
func compareChoices(t *testing.T, name string, sizes *Tuning, rules *Rules) {
	t.Helper()
	for _, c := range schedule.Collectives() {
		for form := range 4 {
			isStrided, rankOrder := form&1 > 0, form&2 > 0
			differ, first := 0, ""
			for ranks := 2; ranks <= 64; ranks++ {
				for _, bytes := range sizesAround(sizes, ranks) {
					want := sizes.Choose(c, ranks, bytes, isStrided, rankOrder)
					have := byTable(rules, sizes.MaxBroadcastBytes, &Case{Collective: c, Ranks: ranks, Bytes: bytes,
						Strided: isStrided, RankOrder: rankOrder})
					if have != want {
						if differ++; first == "" {
							first = numberRange(ranks, int(bytes)) + ": " + have.String() + ", want " + want.String()
						}
					}
				}
			}
			if differ > 0 {
				t.Errorf("%s, limit %d, %v, strided %v, in rank order %v: %d differ, first ranks-bytes %s",
					name, sizes.MaxBroadcastBytes, c, isStrided, rankOrder, differ, first)
			}
		}
	}
}

// sizesAround are the powers of two up to 64 MiB and each threshold of a tuning, whole, in parts, and by the ranks,
// with one byte less and one more.
func sizesAround(t *Tuning, ranks int) (out []int64) {
	add := func(at int64) { out = append(out, max(at-1, 0), max(at, 0), at+1) }
	for at := int64(1); at <= 64<<20; at *= 2 {
		add(at)
	}
	for _, at := range append(append([]int64{t.MaxBroadcastBytes, t.MaxBroadcastFromRootBytes}, t.DoublingBytes[:]...),
		t.MeetInMiddleBytes[:]...) {
		add(at)
		add(at / 2)
		add(at / 4)
		add(at / int64(ranks))
	}
	return out
}
