package main

import (
	"context"
	"encoding/csv"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// priceVerb prints what a schedule costs, or those of all methods.
func priceVerb(f *flag.FlagSet, from *source) work {
	p := &pricing{from: from}
	text := f.String("bytes", "1K,32K,1M,32M", "`sizes` of the larger buffer, with commas: 8, 4K, 1M, 2G")
	f.DurationVar(&p.overhead, "overhead", 0, "`time` that a message takes of its sender's processor, and once more of its "+
		"receiver's, such as 300ns")
	f.BoolVar(&p.csv, "csv", false, "print CSV, a line for each size and method")
	check := func() (err error) {
		if p.overhead < 0 || p.overhead > time.Second {
			return fmt.Errorf("-overhead %v, want 0 to 1s", p.overhead)
		}
		p.sizes, err = parseSizes(*text)
		return err
	}
	return work{check, p.run}
}

// pricing is what price does.
type pricing struct {
	from     *source
	overhead time.Duration
	csv      bool
	sizes    []int64
}

// price is what a method costs at a size.
type price struct {
	method string
	pieces int // of a pipeline, 0 of others
	cost.Estimate
}

func (p *pricing) run(_ context.Context, stdout io.Writer) error {
	t, err := p.price()
	if err != nil {
		return err
	}
	write := t.text
	if p.csv {
		write = t.csv
	}
	var out strings.Builder
	write(&out)
	_, err = io.WriteString(stdout, out.String())
	return err
}

// price prices what the command line asks for.
func (p *pricing) price() (*priceTable, error) {
	if len(p.from.methods) > 1 {
		return p.all()
	}
	f, err := p.from.read()
	if err != nil {
		return nil, err
	}
	if p.from.file != "" { // what a method makes is right
		if err := schedule.Check(f.Schedule); err != nil {
			return nil, p.from.of(err)
		}
	}
	s := f.Schedule
	model, name, err := p.model(s.Size)
	if err != nil {
		return nil, err
	}
	t := p.table(s.Collective, s.Root, s.Size, model, name)
	t.title = title(s)
	for i, bytes := range p.sizes {
		e, err := p.estimate(model, s, bytes)
		if err != nil {
			return nil, err
		}
		t.prices[i] = []price{{f.Name, p.from.spec.Pieces, e}}
	}
	return t, nil
}

// table is one without prices.
func (p *pricing) table(c schedule.Collective, root, size int, model cost.Model, name string) *priceTable {
	t := &priceTable{collective: c.String(), ranks: size, network: name, overhead: model.Overhead, sizes: p.sizes,
		prices: make([][]price, len(p.sizes))}
	t.alpha, t.beta = links(model.Network)
	// Of a collective of a program's own there is none. Where no way leads to a rank, prices have the error.
	if bound, err := model.Bound(c, root, ranks(size)); err == nil {
		t.bound = &bound
	}
	return t
}

// model is the network with its processors, for a number of ranks, and the network's name.
func (p *pricing) model(size int) (model cost.Model, name string, err error) {
	network, name, err := p.from.linked(size)
	if err != nil {
		return model, "", err
	}
	return cost.Model{Network: network, Overhead: p.overhead}, name, nil
}

// estimate prices a schedule at one size.
func (p *pricing) estimate(model cost.Model, s *schedule.Schedule, bytes int64) (cost.Estimate, error) {
	e, err := model.Price(s, ranks(s.Size), bytes)
	switch {
	case err == nil:
		return e, nil
	case p.from.network != "": // the schedule has been checked
		return e, fmt.Errorf("%s: %w", p.from.network, err)
	}
	return e, p.from.of(err)
}

// links says what the messages between rank 0 and the others have on their ways: alpha, the latencies, and beta, the
// nanoseconds that a byte takes on the slowest link. They are empty where there are no others.
func links(n cost.Network) (alpha, beta string) {
	low, high := math.Inf(1), 0.0
	least, most := time.Duration(math.MaxInt64), time.Duration(0)
	var way []int
	for other := 1; other < n.Replicas(); other++ {
		for _, ends := range [][2]int{{0, other}, {other, 0}} {
			var err error
			if way, err = n.Route(way[:0], ends[0], ends[1]); err != nil {
				continue // a schedule that needs the way gets the error
			}
			latency, each := time.Duration(0), 0.0
			for _, number := range way {
				l := n.Link(number)
				latency, each = latency+l.Latency, max(each, 1e9/l.BytesPerSecond)
			}
			least, most, low, high = min(least, latency), max(most, latency), min(low, each), max(high, each)
		}
	}
	if high == 0 {
		return "", ""
	}
	return span(least.String(), most.String()), span(fmt.Sprintf("%.3g", low), fmt.Sprintf("%.3g", high))
}

// span is a number, or two with "to" between them where they differ.
func span(low, high string) string {
	if low == high {
		return low
	}
	return low + " to " + high
}

// priceTable is what price prints.
type priceTable struct {
	title      string // of a schedule; "": of all methods
	collective string
	ranks      int
	network    string // its name
	alpha      string // latency of a message, or the least and the most
	beta       string // nanoseconds of a byte, likewise
	overhead   time.Duration
	bound      *cost.Bound // of the collective; nil: not known
	sizes      []int64
	prices     [][]price // by size, the best one first
	leftOut    []string  // methods, and why
}

// text prints what people read.
func (t *priceTable) text(out *strings.Builder) {
	head, all := t.title, t.title == ""
	if all {
		ranks := "ranks"
		if t.ranks == 1 {
			ranks = "rank"
		}
		head = fmt.Sprintf("%s, %d %s, all methods", t.collective, t.ranks, ranks)
	}
	between := ""
	if t.alpha != "" {
		between = fmt.Sprintf(", between rank 0 and others alpha %s and beta %s ns/byte", t.alpha, t.beta)
	}
	fmt.Fprintf(out, "%s\nnetwork %s%s; overhead %v a message at each end\n", head, t.network, between, t.overhead)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	if all {
		fmt.Fprint(w, "bytes\tmethod\tpieces\trounds\tsent by a rank, at most\ttime\ttimes the best\tof the bound\t\n")
	} else {
		fmt.Fprint(w, "bytes\trounds\tsent by a rank, at most\ttime\tof the bound\t\n")
	}
	for i, bytes := range t.sizes {
		for _, p := range t.prices[i] {
			reached := "-"
			if t.bound != nil {
				reached = fmt.Sprintf("%.0f %%", 100*t.bound.Reached(bytes, p.Time))
			}
			if !all {
				fmt.Fprintf(w, "%d\t%d\t%d\t%v\t%s\t\n", bytes, p.Rounds, p.SentBytes, p.Time, reached)
				continue
			}
			pieces, times := "-", "best"
			if p.pieces > 0 {
				pieces = strconv.Itoa(p.pieces)
			}
			if best := t.prices[i][0]; p.Time > best.Time {
				times = fmt.Sprintf("%.2f", p.times(best))
			}
			fmt.Fprintf(w, "%d\t%s\t%s\t%d\t%d\t%v\t%s\t%s\t\n", bytes, p.method, pieces, p.Rounds, p.SentBytes, p.Time,
				times, reached)
		}
	}
	w.Flush() // into out, which takes everything
	for _, why := range t.leftOut {
		fmt.Fprintf(out, "not priced: %s\n", why)
	}
}

// times is how many times as long as the best it takes. One that takes no time is the best.
func (p *price) times(best price) float64 {
	if best.Time == 0 && p.Time == 0 {
		return 1
	}
	return float64(p.Time) / float64(best.Time)
}

// csv prints the same for programs. What is not priced has no line.
func (t *priceTable) csv(out *strings.Builder) {
	w := csv.NewWriter(out)
	lines := [][]string{{"collective", "ranks", "network", "alpha", "beta_ns_per_byte", "overhead_ns", "bytes",
		"method", "pieces", "rounds", "sent_bytes", "time_ns", "times_best", "bound_ns", "of_bound"}}
	for i, bytes := range t.sizes {
		for _, p := range t.prices[i] {
			bound, reached := "", ""
			if t.bound != nil {
				bound = strconv.FormatInt(t.bound.Time(bytes).Nanoseconds(), 10)
				reached = strconv.FormatFloat(t.bound.Reached(bytes, p.Time), 'f', 4, 64)
			}
			lines = append(lines, []string{t.collective, strconv.Itoa(t.ranks), t.network, t.alpha, t.beta,
				strconv.FormatInt(t.overhead.Nanoseconds(), 10), strconv.FormatInt(bytes, 10), p.method,
				strconv.Itoa(p.pieces), strconv.Itoa(p.Rounds), strconv.FormatInt(p.SentBytes, 10),
				strconv.FormatInt(p.Time.Nanoseconds(), 10),
				strconv.FormatFloat(p.times(t.prices[i][0]), 'f', 4, 64), bound, reached})
		}
	}
	_ = w.WriteAll(lines) // into out, which takes everything
}

// parseSizes reads numbers of bytes with commas between them.
func parseSizes(text string) ([]int64, error) {
	var sizes []int64
	for size := range strings.SplitSeq(text, ",") {
		n, err := parseBytes(size)
		if err != nil {
			return nil, fmt.Errorf("-bytes: %w", err)
		}
		sizes = append(sizes, n)
	}
	return sizes, nil
}

// parseBytes reads a number of bytes. K, M and G are 1024 and its powers.
func parseBytes(text string) (int64, error) {
	digits, unit := text, int64(1)
	for i, suffix := range []string{"K", "M", "G"} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = rest, 1<<(10*(i+1))
		}
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || int64(n) > math.MaxInt64/unit {
		return 0, fmt.Errorf("%.100q is no number of bytes such as 8, 4K, 1M or 2G", text)
	}
	return int64(n) * unit, nil
}
