package methods

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gogcl.dev/methods/schedule"
)

// choiceLinks are the tunings whose choices testdata/choices.txt holds.
var choiceLinks = []struct {
	name   string
	tuning func() Tuning
}{
	{"IPU-Links", IPULinks},
	{"memory", MemoryLinks},
	{"an engine", EngineLinks},
	{"sockets", SocketLinks},
	{"a network", NetworkLinks},
	{"memory, without broadcast", func() Tuning {
		t := MemoryLinks()
		t.MaxBroadcastBytes = -1
		return t
	}},
	{"sockets, broadcast up to 64 KiB", func() Tuning {
		t := SocketLinks()
		t.MaxBroadcastBytes = 64 << 10
		return t
	}},
}

// TestChoices holds what auto takes without rules against testdata/choices.txt: for every collective, 2 to 64 ranks and
// 8 bytes to 64 MiB, with a stride or in rank order. A line has the ranks that choose alike, and the methods with the
// most bytes that each is taken for. After -update look at each line that has changed: somebody's job gets slower or
// faster by it, and all replicas of a job must have one build.
func TestChoices(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, l := range choiceLinks {
		tuning := l.tuning()
		for _, c := range schedule.Collectives() {
			for _, form := range []struct {
				name               string
				strided, rankOrder bool
			}{{"", false, false}, {", strided", true, false}, {", rank order", false, true}} {
				fmt.Fprintf(&all, "%s: %v%s\n", l.name, c, form.name)
				writeChoices(&all, func(ranks int, bytes int64) Method {
					return tuning.Choose(c, ranks, bytes, form.strided, form.rankOrder)
				})
			}
		}
	}
	const name = "testdata/choices.txt"
	if *update {
		if err := os.WriteFile(name, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(all.String(), "\n")); diff != "" {
		t.Errorf("-want +have\n%s", diff)
	}
}

// writeChoices writes a line for each range of ranks that choose alike.
func writeChoices(out *strings.Builder, choose func(ranks int, bytes int64) Method) {
	const most = 64
	first, before := 2, choicesOf(2, choose)
	for ranks := 3; ranks <= most+1; ranks++ {
		line := ""
		if ranks <= most {
			if line = choicesOf(ranks, choose); line == before {
				continue
			}
		}
		fmt.Fprintf(out, "  %-6s %s\n", numberRange(first, ranks-1), before)
		first, before = ranks, line
	}
}

// numberRange is "3" or "3-8".
func numberRange(first, last int) string {
	if first == last {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d-%d", first, last)
}

// choicesOf lists the methods for some ranks, each with the most bytes that it is taken for. Between two powers of two
// with one method all sizes are taken to have it; where the method changes the size is exact.
func choicesOf(ranks int, choose func(ranks int, bytes int64) Method) string {
	var line strings.Builder
	low := int64(8)
	method := choose(ranks, low)
	for high := 2 * low; high <= 64<<20; low, high = high, 2*high {
		for next := choose(ranks, high); next != method; {
			has, hasNot := low, high // bisect for the last size of this method
			for hasNot-has > 1 {
				if middle := (has + hasNot) / 2; choose(ranks, middle) == method {
					has = middle
				} else {
					hasNot = middle
				}
			}
			fmt.Fprintf(&line, "%v to %d, ", method, has)
			low, method = hasNot, choose(ranks, hasNot)
		}
	}
	return line.String() + method.String()
}
