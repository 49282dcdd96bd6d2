package methods

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"gogcl.dev/methods/schedule"
)

// mustRules parses a table.
func mustRules(t testing.TB, text string) *Rules {
	t.Helper()
	r, err := ParseRules([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const someRules = `# a machine

all-reduce 2 0 recursive_doubling 13.1 us
all-reduce 2 256KiB  direct   201 us,  then recursive_doubling 240 us
all-reduce 3-5 0 broadcast/Syncless
all-reduce 70- 4097 clockwise_ring/Syncful
# the end
all-to-all 3- 2MiB direct`

// TestRulesShared: a size that the ranks share is divided by their number, rounded up, and stays what it is as text.
func TestRulesShared(t *testing.T) {
	t.Parallel()
	const text = "all-reduce  2-  0           direct\nall-reduce  2-  8KiB/ranks  clockwise_ring\n"
	rules := mustRules(t, text)
	if rules.String() != text || rules.All()[1].String() != "all-reduce 2- 8KiB/ranks clockwise_ring" {
		t.Errorf("have\n%s", rules)
	}
	apart := mustRules(t, strings.ReplaceAll(text, "/ranks", ""))
	if rules.Digest() == apart.Digest() {
		t.Error("a size that is shared and one that is not have one digest")
	}
	tuning := Tuning{Rules: rules}
	for _, c := range []struct {
		ranks int
		bytes int64
		want  Method
	}{
		{2, 4095, Direct}, {2, 4096, ClockwiseRing}, {3, 2730, Direct}, {3, 2731, ClockwiseRing},
		{100, 81, Direct}, {100, 82, ClockwiseRing}, {9000, 0, Direct}, {9000, 1, ClockwiseRing},
		{2, 1<<63 - 1, ClockwiseRing},
	} {
		if got := tuning.Choose(schedule.AllReduce, c.ranks, c.bytes, false, false); got != c.want {
			t.Errorf("%d bytes at each of %d: %v, want %v", c.bytes, c.ranks, got, c.want)
		}
	}
	for _, wrong := range []string{"8/rank", "/ranks", "8/ranks/ranks", "8 /ranks"} {
		if _, err := ParseRules([]byte("all-reduce 2 " + wrong + " direct")); err == nil {
			t.Errorf("%q is a size", wrong)
		}
	}
}

// TestRulesText: a table in columns, with its comments, which reads as the same rules.
func TestRulesText(t *testing.T) {
	want := `# a machine

all-reduce  2    0       recursive_doubling      13.1 us
all-reduce  2    256KiB  direct                  201 us, then recursive_doubling 240 us
all-reduce  3-5  0       broadcast/Syncless
all-reduce  70-  4097    clockwise_ring/Syncful
# the end
all-to-all  3-   2MiB    direct
`
	r := mustRules(t, someRules)
	if got := r.String(); got != want {
		t.Errorf("have\n%s\nwant\n%s", got, want)
	}
	if again := mustRules(t, r.String()); again.String() != want || again.Digest() != r.Digest() {
		t.Errorf("again it is\n%s", again)
	}
	all := r.All()
	if len(all) != 5 || all[1] != (Rule{Collective: schedule.AllReduce, Fewest: 2, Most: 2, FromBytes: 256 << 10,
		Method: Direct, Measured: "201 us, then recursive_doubling 240 us", Line: 4}) {
		t.Errorf("%+v", all)
	}
	if got := all[3].String(); got != "all-reduce 70- 4097 clockwise_ring/Syncful" {
		t.Error(got)
	}
	if got := r.Cite(&all[1]); got != "line 4 of the rules" {
		t.Error(got)
	}
	if got := r.Named("/some/where/tcp.txt").Cite(&all[1]); got != "tcp.txt:4" {
		t.Error(got)
	}
}

// TestRulesDigest: rules that choose alike have one digest, others have not.
func TestRulesDigest(t *testing.T) {
	base := "all-reduce 2-4 4KiB direct/Syncful 10 us\nbroadcast 2 0 direct\n"
	digest := mustRules(t, base).Digest()
	for _, same := range []string{
		"# a comment\n" + base, strings.Replace(base, "10 us", "11 us", 1), strings.Replace(base, "4KiB", "4096", 1),
	} {
		if mustRules(t, same).Digest() != digest {
			t.Errorf("another digest:\n%s", same)
		}
	}
	for _, other := range []string{
		"", base + base, "broadcast 2 0 direct\nall-reduce 2-4 4KiB direct/Syncful\n",
		strings.Replace(base, "2-4", "2-5", 1), strings.Replace(base, "2-4", "3-4", 1),
		strings.Replace(base, "4KiB", "4097", 1), strings.Replace(base, "Syncful", "Syncless", 1),
		strings.Replace(base, "direct/Syncful", "broadcast/Syncful", 1),
		strings.Replace(base, "all-reduce", "reduce", 1),
	} {
		if mustRules(t, other).Digest() == digest {
			t.Errorf("the same digest:\n%s", other)
		}
	}
	var none *Rules
	if mustRules(t, "#").Digest() != new(Rules).Digest() {
		t.Error("an empty table differs from the zero Rules")
	}
	if none.Fingerprint() != 0 || mustRules(t, "").Fingerprint() == 0 {
		t.Error("no rules and an empty table have one fingerprint")
	}
}

// TestRulesErrors: an error names the line, and what would be right.
func TestRulesErrors(t *testing.T) {
	for text, want := range map[string]string{
		"\nall-reduce 2 0":                              `line 2: "all-reduce 2 0" is no rule: want a collective, ranks, a size from which on, and a method`,
		"allreduce 2 0 direct":                          `line 1: no collective "allreduce", the closest is all-reduce; want one of all-reduce, reduce-`,
		"barrier 2 0 direct":                            `no collective "barrier"`,
		"reduce 1 0 direct":                             `line 1: "1" is no number of ranks: want 2 to 65536, as in 4, or a range, as in 5-7, or 8- for`,
		"reduce 5-3 0 direct":                           `"5-3" is no number of ranks`,
		"reduce 5-0 0 direct":                           `"5-0" is no number of ranks`,
		"reduce - 0 direct":                             `"-" is no number of ranks`,
		"reduce 2-65537 0 direct":                       `"2-65537" is no number of ranks`,
		"reduce 2 -1 direct":                            `line 1: "-1" is no size from which on: want bytes, as in 0, 4096, 64KiB or 2MiB`,
		"reduce 2 1KB direct":                           `"1KB" is no size`,
		"reduce 2 KiB direct":                           `"KiB" is no size`,
		"reduce 2 8589934592GiB direct":                 `"8589934592GiB" is no size`,
		"reduce 2 0 dirct":                              `line 1: no method "dirct", the closest is direct; want one of `,
		"reduce 2 0 auto":                               "line 1: the method auto makes no schedule, since it chooses another method: want another",
		"reduce 2 0 native":                             "the method native makes no schedule",
		"reduce 2 0 direct/Auto":                        `line 1: "Auto" behind the method direct is no implementation of a rule: want direct/Syncless, direct/Syncful, or direct alone`,
		"reduce 2 0 direct/syncful":                     `"syncful" behind the method direct`,
		"# \x07":                                        "line 1: byte 3 of it cannot be printed, want text",
		"#" + strings.Repeat("x", 1024):                 "line 1: 1025 bytes, want at most 1024",
		"reduce 2 0 direct " + strings.Repeat("x", 513): "line 1: 513 bytes of what was measured, want at most 512",
		"# \xff": "rules that are no text in UTF-8",
		strings.Repeat("reduce 2 0 direct\n", MaxRules+1): "line 4097: more than 4096 rules, want fewer",
		strings.Repeat("#\n", MaxRulesBytes/2+1):          "rules of 1048578 bytes, want at most 1048576",
		strings.Repeat("#\n", MaxRulesBytes/2-1) + "#":    "", // with a line break at its end it is as long as can be
		strings.Repeat("reduce 2 0 direct "+strings.Repeat("x", 235)+"\n", 4096) +
			"reduce 2 0 recursive_doubling\n": "line 4097: ",
		strings.Repeat("reduce 2 0 direct "+strings.Repeat("x", 235)+"\n", 4095) +
			"reduce 2 0 recursive_doubling\n": "bytes in columns, want at most 1048576",
	} {
		got, err := ParseRules([]byte(text))
		if want == "" {
			if err != nil {
				t.Errorf("%.40q: %v", text, err)
			}
			continue
		}
		var wrong *RulesError
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), want) || got != nil ||
			wrong.Error() != "methods: "+wrong.Words() {
			t.Errorf("%.40q: %v, want %q", text, err, want)
		}
	}
}

// TestRule has which rule decides, and which are skipped, and why.
func TestRule(t *testing.T) {
	KeepTable(t)
	if err := Register("star", StarForTests); err != nil {
		t.Fatal(err)
	}
	rules := mustRules(t, `all-reduce 2-4 0 direct
all-reduce 2-4 100 recursive_doubling
all-reduce 2-4 1000 broadcast
all-reduce 2-4 2000 star
all-reduce 2-4 3000 direct/Syncful
all-reduce 2-4 4000 clockwise_ring/Syncless
all-reduce 64- 10 broadcast
all-reduce 65 20 direct
reduce 2-4 0 direct`).Named("x/tcp.txt")
	ar, open := schedule.AllReduce, Tuning{Rules: rules, Links: MemoryLinks().Links, MaxBroadcastBytes: 8 << 10}
	first, never := open, open
	first.BroadcastFirst, first.MaxBroadcastBytes, never.MaxBroadcastBytes = true, 4000, -1
	const noStar = "; not tcp.txt:4, star: "
	for _, x := range []struct {
		tuning *Tuning
		q      Case
		line   int // 0: none
		skips  string
	}{
		{&open, Case{Collective: ar, Ranks: 1}, 0, ""},
		{&open, Case{Collective: ar, Ranks: 2}, 1, ""},
		{&open, Case{Collective: ar, Ranks: 5}, 0, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 99}, 1, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 100}, 2, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 100, RankOrder: true}, 1,
			"; not tcp.txt:2, recursive_doubling: in the order of the ranks the method is a chain of them, which was not measured"},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 1000}, 3, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 1000, Strided: true}, 2,
			"; not tcp.txt:3, broadcast: a group with a stride above 1 never takes broadcast"},
		{&never, Case{Collective: ar, Ranks: 4, Bytes: 1000}, 2,
			"; not tcp.txt:3, broadcast: broadcast is never to be taken"},
		{&first, Case{Collective: ar, Ranks: 4, Bytes: 1000}, 0, ""}, // up to the limit broadcast needs no rule
		{&first, Case{Collective: ar, Ranks: 4, Bytes: 1000, Strided: true}, 2,
			"; not tcp.txt:3, broadcast: a group with a stride above 1 never takes broadcast"},
		{&first, Case{Collective: ar, Ranks: 4, Bytes: 1001}, 2,
			"; not tcp.txt:3, broadcast: broadcast is to be taken for less than that only"},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 2000}, 4, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 2000, Phase: true}, 3,
			noStar + "the schedules of a Generator are not taken for a phase"},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 3000}, 0,
			"; not tcp.txt:5, direct/Syncful: it is for peer memory, which there is none of"},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 3000, Memory: true}, 5, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 3000, Memory: true, Implementation: Syncless}, 0,
			"; not tcp.txt:5, direct/Syncful: it is for Syncful, and the options ask for Syncless"},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 3000, Memory: true, Implementation: Syncful}, 5, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 4000}, 6, ""},
		{&open, Case{Collective: ar, Ranks: 4, Bytes: 4000, Implementation: Syncful, Memory: true}, 0,
			"; not tcp.txt:6, clockwise_ring/Syncless: it is for Syncless, and the options ask for Syncful"},
		{&open, Case{Collective: ar, Ranks: 64, Bytes: 20}, 7, ""},
		{&open, Case{Collective: ar, Ranks: 65, Bytes: 19}, 7, ""},
		{&open, Case{Collective: ar, Ranks: 65, Bytes: 20}, 8, ""},
		{&open, Case{Collective: ar, Ranks: 66, Bytes: 20}, 7, ""},
		{&open, Case{Collective: ar, Ranks: 65536, Bytes: 9}, 0, ""},
		{&open, Case{Collective: schedule.Reduce, Ranks: 4}, 9, ""},
		{&open, Case{Collective: schedule.Barrier, Ranks: 4}, 0, ""},
		{&open, Case{Collective: 200, Ranks: 4}, 0, ""},
	} {
		line, r := 0, x.tuning.Rule(&x.q)
		if r != nil {
			line = r.Line
		}
		if skips := x.tuning.Skips(&x.q); line != x.line || skips != x.skips {
			t.Errorf("%+v: line %d, want %d; skips %q, want %q", x.q, line, x.line, skips, x.skips)
		}
	}
	if got, why := open.Choose(ar, 4, 100, false, false), open.Why(ar, 4, 100, false, true); got != RecursiveDoubling ||
		!strings.HasPrefix(why, "tcp.txt:1: all-reduce 2-4 0 direct; not tcp.txt:2, recursive_doubling: ") {
		t.Errorf("%v, %s", got, why)
	}
	if got, why := open.Choose(ar, 5, 100, false, false), open.Why(ar, 5, 100, false, false); got != SendToAll ||
		why != "group size x bytes, 5 x 100, is at or below 8192" {
		t.Errorf("without a rule: %v, %s", got, why)
	}
}

// TestRuleNotRegistered: a name that was given to no generator here may have one by gcl.WithMethod.
func TestRuleNotRegistered(t *testing.T) {
	KeepTable(t)
	if _, err := Named("comet"); err != nil {
		t.Fatal(err)
	}
	tuning := Tuning{Rules: mustRules(t, "reduce 2 0 direct\nreduce 2 0 comet")}
	if r := tuning.Rule(&Case{Collective: schedule.Reduce, Ranks: 2}); r == nil || r.Line != 2 {
		t.Errorf("%v, want line 2", r)
	}
}

// TestRulesAsDumb holds the lookup against one that goes through all lines.
func TestRulesAsDumb(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var b strings.Builder
		for range random.IntN(30) {
			low := 2 + random.IntN(80)
			high := []string{"", fmt.Sprint("-", low+random.IntN(40)), "-"}[random.IntN(3)]
			fmt.Fprintf(&b, "%v %d%s %d direct\n", schedule.Collective(random.IntN(3)), low, high, random.IntN(5))
		}
		tuning := Tuning{Rules: mustRules(t, b.String())}
		all := tuning.Rules.All()
		for range 100 {
			q := Case{Collective: schedule.Collective(random.IntN(3)), Ranks: 1 + random.IntN(100),
				Bytes: random.Int64N(6)}
			want := 0
			for _, r := range all {
				if r.Collective == q.Collective && q.Ranks >= r.Fewest && (r.Most == 0 || q.Ranks <= r.Most) &&
					q.Bytes >= r.FromBytes {
					want = r.Line
				}
			}
			got := 0
			if r := tuning.Rule(&q); r != nil {
				got = r.Line
			}
			if got != want {
				t.Fatalf("%+v: line %d, want %d of\n%s", q, got, want, &b)
			}
		}
	}
}

// TestRuleAllocates: a call asks for its rule, so nothing may be allocated.
func TestRuleAllocates(t *testing.T) {
	tuning := Tuning{Rules: mustRules(t, someRules)}
	q := Case{Collective: schedule.AllReduce, Ranks: 4, Bytes: 1 << 20}
	if n := testing.AllocsPerRun(100, func() { tuning.Rule(&q) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkRule(b *testing.B) {
	var text strings.Builder
	for ranks := 2; ranks < 64; ranks++ {
		for from := range 6 {
			fmt.Fprintf(&text, "all-reduce %d %d direct\n", ranks, from<<10)
		}
	}
	tuning := Tuning{Rules: mustRules(b, text.String())}
	q := Case{Collective: schedule.AllReduce, Ranks: 8, Bytes: 8}
	b.ReportAllocs()
	for b.Loop() {
		tuning.Rule(&q)
	}
}

// FuzzParseRules: what parses is written as a text that reads as the same rules.
func FuzzParseRules(f *testing.F) {
	for _, text := range []string{someRules, "", "reduce 2 0 direct", "reduce 2-2 1024 direct/Syncful  a  b #c\n\n# d",
		"reduce 02- 0KiB direct", "scatter 2-65536 9007199254740991KiB direct", "reduce 2\u00a00 direct",
		"reduce 2- 8193/ranks direct"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := ParseRules(text)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "methods: ") {
				t.Error(err)
			}
			return
		}
		again, err := ParseRules([]byte(r.String()))
		if err != nil {
			t.Fatalf("%v in what %q is written as:\n%s", err, text, r)
		}
		if again.String() != r.String() || again.Digest() != r.Digest() ||
			fmt.Sprint(again.All()) != fmt.Sprint(r.All()) {
			t.Fatalf("%q is written as\n%s\nand that as\n%s", text, r, again)
		}
	})
}
