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

// TestGallery makes the picture and the table of the gallery: what its schedules cost over 8 and 12 ranks.
func TestGallery(t *testing.T) {
	var table strings.Builder
	of := schedule.Collectives()
	table.WriteString("| generator | ranks |")
	for _, c := range of {
		fmt.Fprintf(&table, " %v |", c)
	}
	table.WriteString("\n|---|---|" + strings.Repeat("---|", len(of)) + "\n")
	for _, l := range methods.Gallery() {
		for _, size := range []int{8, 12} {
			fmt.Fprintf(&table, "| `%s` | %d |", l.Name, size)
			for _, c := range of {
				s, err := l.Generator.Schedule(methods.Request{Spec: methods.Spec{Collective: c, Size: size}})
				if errors.Is(err, errors.ErrUnsupported) {
					table.WriteString(" |")
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
				fmt.Fprintf(&table, " %d, %.3g |", report.Rounds, sent)
			}
			table.WriteString("\n")
		}
	}
	mustHold(t, "docs/methods.md", "gallery", table.String())
	s, err := methods.DoubleBinaryTree(2).Schedule(methods.Request{Spec: methods.Spec{Collective: schedule.Broadcast,
		Size: 7}})
	if err != nil {
		t.Fatal(err)
	}
	mustHold(t, "docs/methods.md", "picture", "```\n"+s.Shape()+"```\n")
}

// TestGalleryPrices makes the table of prices on one switch, where the cheapest way of each column is bold.
func TestGalleryPrices(t *testing.T) {
	sizes := []int64{4 << 10, 64 << 10, 1 << 20, 16 << 20}
	var table strings.Builder
	table.WriteString("| collective | ranks | generator | 4 KiB | 64 KiB | 1 MiB | 16 MiB |\n|---|---|---|---|---|---|---|\n")
	for _, group := range []struct {
		c    schedule.Collective
		size int
	}{{schedule.AllReduce, 64}, {schedule.AllReduce, 48}, {schedule.Broadcast, 64}, {schedule.Gather, 64},
		{schedule.AllGather, 64}, {schedule.AllGather, 48}, {schedule.AllToAll, 64}} {
		var names []string
		var prices [][]time.Duration // of those names, by size
		for _, m := range []methods.Method{methods.Direct, methods.MeetInMiddleRing, methods.RecursiveDoubling} {
			names = append(names, m.String())
			prices = append(prices, pricesOf(t, sizes, group.size, func(bytes int64) (*schedule.Schedule, error) {
				ring := inOrder(group.size)
				s := methods.Spec{Method: m, Collective: group.c, Size: group.size, Ring: ring, Second: ring}
				return methods.Build(s.Pipelined(bytes, latencyBytes))
			}))
		}
		for _, l := range methods.Gallery() {
			s, err := l.Generator.Schedule(methods.Request{Spec: methods.Spec{Collective: group.c, Size: group.size}})
			if errors.Is(err, errors.ErrUnsupported) {
				continue
			}
			names = append(names, l.Name)
			prices = append(prices, pricesOf(t, sizes, group.size, func(int64) (*schedule.Schedule, error) {
				return s, err
			}))
		}
		for i, name := range names {
			fmt.Fprintf(&table, "| %v | %d | `%s` |", group.c, group.size, name)
			for size := range sizes {
				least := prices[0][size]
				for _, p := range prices {
					least = min(least, p[size])
				}
				mark := ""
				if prices[i][size] == least {
					mark = "**"
				}
				fmt.Fprintf(&table, " %s%.1f%s |", mark, prices[i][size].Seconds()*1e6, mark)
			}
			table.WriteString("\n")
		}
	}
	mustHold(t, "docs/methods.md", "prices", table.String())
}

// latencyBytes is what a link of the switch carries while a message goes over two of them.
const latencyBytes = 25000

// pricesOf prices a schedule of each size on a switch that the text of docs/methods.md describes.
func pricesOf(t *testing.T, sizes []int64, ranks int, of func(int64) (*schedule.Schedule, error)) []time.Duration {
	t.Helper()
	network, err := cost.FatTree(cost.Level{Children: ranks,
		Link: cost.Link{BytesPerSecond: 12.5e9, Latency: time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	var out []time.Duration
	for _, bytes := range sizes {
		s, err := of(bytes)
		if err != nil {
			t.Fatal(err)
		}
		e, err := cost.Model{Network: network, Overhead: time.Microsecond}.Price(s, inOrder(ranks), bytes)
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
