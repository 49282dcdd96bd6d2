package readme

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// TestGallery makes the picture and the table of the gallery: what its schedules cost over 8 and 12 ranks, or 16 if 12
// are no number that they do.
func TestGallery(t *testing.T) {
	var table strings.Builder
	of := schedule.Collectives()
	table.WriteString("| generator | ranks |")
	for _, c := range of {
		fmt.Fprintf(&table, " %v |", c)
	}
	table.WriteString("\n|---|---|" + strings.Repeat("---|", len(of)) + "\n")
	for _, l := range methods.Gallery() {
		rows := 0
		for _, size := range []int{8, 12, 16} {
			var row strings.Builder
			does := 0
			for _, c := range of {
				s, err := l.Generator.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: size}})
				if errors.Is(err, errors.ErrUnsupported) {
					row.WriteString(" |")
					continue
				}
				var report schedule.Report
				if err == nil {
					report, err = schedule.Examine(s)
				}
				if err != nil {
					t.Fatal(err)
				}
				sent := float64(slices.Max(report.Sent)) / float64(s.Chunks)
				fmt.Fprintf(&row, " %d, %.3g |", report.Rounds, sent)
				does++
			}
			if does > 0 && rows < 2 {
				fmt.Fprintf(&table, "| `%s` | %d |%s\n", l.Name, size, row.String())
				rows++
			}
		}
	}
	mustHold(t, "docs/design/methods.md", "gallery", table.String())
	s, err := methods.DoubleBinaryTree(2).Schedule(methods.Request{Spec: methods.Spec{Collective: schedule.Broadcast,
		Size: 7}})
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, "docs/design/methods.md", "picture", "```\n"+s.Shape()+"```\n")
}

// TestGalleryPrices makes the tables of prices on three networks, where the cheapest way of each column is bold.
func TestGalleryPrices(t *testing.T) {
	link := cost.Link{BytesPerSecond: 12.5e9, Latency: time.Microsecond}
	quick := link
	quick.BytesPerSecond *= 8
	type group struct {
		c    schedule.Collective
		size int
	}
	for _, table := range []struct {
		name    string
		network func(size int) (cost.Network, error)
		ring    func(size int) []int
		groups  []group
	}{
		{
			"prices", func(size int) (cost.Network, error) {
				return cost.FatTree(cost.Level{Children: size, Link: link})
			}, inOrder,
			[]group{
				{schedule.AllReduce, 64}, {schedule.AllReduce, 48}, {schedule.Broadcast, 64}, {schedule.Gather, 64},
				{schedule.AllGather, 64}, {schedule.AllGather, 48}, {schedule.AllToAll, 64},
			},
		},
		{
			"torus prices", func(int) (cost.Network, error) { return cost.Torus([]int{8, 8}, link) }, snake,
			[]group{{schedule.AllReduce, 64}, {schedule.ReduceScatter, 64}},
		},
		{
			"hosts prices", func(int) (cost.Network, error) {
				return cost.FatTree(cost.Level{Children: 8, Link: quick}, cost.Level{Children: 8, Link: link})
			}, inOrder,
			[]group{{schedule.AllReduce, 64}},
		},
	} {
		var text strings.Builder
		text.WriteString("| collective | ranks | generator | 4 KiB | 64 KiB | 1 MiB | 16 MiB |\n|---|---|---|---|---|---|---|\n")
		for _, g := range table.groups {
			network, err := table.network(g.size)
			if err != nil {
				t.Fatal(err)
			}
			writePrices(t, &text, network, g.c, g.size, table.ring(g.size))
		}
		mustHold(t, "docs/design/methods.md", table.name, text.String())
	}
}

// snake is a ring on a torus of 8 by 8: up one column of seven and down the next, and back along the first row.
func snake(int) []int {
	var out []int
	for x := range 8 {
		for y := 1; y < 8; y++ {
			if x%2 == 1 {
				out = append(out, x+8*(8-y))
			} else {
				out = append(out, x+8*y)
			}
		}
	}
	for x := 7; x >= 0; x-- {
		out = append(out, x)
	}
	return out
}

// writePrices writes the rows of a collective.
func writePrices(t *testing.T, text *strings.Builder, network cost.Network, c schedule.Collective, ranks int,
	ring []int) {
	t.Helper()
	sizes := []int64{4 << 10, 64 << 10, 1 << 20, 16 << 20}
	var names []string
	var prices [][]time.Duration // of those names, by size
	for _, m := range []methods.Method{methods.Direct, methods.MeetInMiddleRing, methods.RecursiveDoubling} {
		names = append(names, m.String())
		prices = append(prices, pricesOf(t, network, sizes, func(bytes int64) (*schedule.Schedule, error) {
			s := methods.Spec{Method: m, Collective: c, Size: ranks, Ring: ring, Second: ring}
			return methods.Build(s.Pipelined(bytes, latencyBytes))
		}))
	}
	for _, l := range methods.Gallery() {
		s, err := l.Generator.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: ranks}})
		if errors.Is(err, errors.ErrUnsupported) {
			continue
		}
		names = append(names, l.Name)
		prices = append(prices, pricesOf(t, network, sizes, func(int64) (*schedule.Schedule, error) { return s, err }))
	}
	for i, name := range names {
		fmt.Fprintf(text, "| %v | %d | `%s` |", c, ranks, name)
		for size := range sizes {
			least := prices[0][size]
			for _, p := range prices {
				least = min(least, p[size])
			}
			mark := ""
			if prices[i][size] == least {
				mark = "**"
			}
			fmt.Fprintf(text, " %s%.1f%s |", mark, prices[i][size].Seconds()*1e6, mark)
		}
		text.WriteString("\n")
	}
}

// latencyBytes is what a link of the switch carries while a message goes over two of them.
const latencyBytes = 25000

// pricesOf prices a schedule of each size on a network that the text of docs/design/methods.md describes.
func pricesOf(t *testing.T, network cost.Network, sizes []int64,
	of func(int64) (*schedule.Schedule, error)) []time.Duration {
	t.Helper()
	var out []time.Duration
	for _, bytes := range sizes {
		s, err := of(bytes)
		if err != nil {
			t.Fatal(err)
		}
		e, err := cost.Model{Network: network, Overhead: time.Microsecond}.Price(s, inOrder(s.Size), bytes)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, e.Time)
	}
	return out
}

func inOrder(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}
