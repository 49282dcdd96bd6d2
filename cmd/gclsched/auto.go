package main

import (
	"context"
	"encoding/csv"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gogcl.dev/internal/cheapest"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
)

// choices is what auto does: the method that auto takes by price, beside the best of all.
type choices struct {
	networks, collectives string
	overhead              time.Duration
	csv                   bool
	sizes                 []int64
	of                    []schedule.Collective
}

// autoVerb prints what auto takes by price on networks.
func autoVerb(f *flag.FlagSet, _ *source) work {
	a := &choices{}
	f.StringVar(&a.networks, "network", "", command.NetworkUsage+"; several with spaces between")
	f.StringVar(&a.collectives, "collective", "all-reduce", "`names` of collectives, with commas, or all: of "+
		strings.Join(collectiveNames()[:schedule.Barrier], ", "))
	sizes := f.String("bytes", "1K,1M,1G", "`sizes` of the larger buffer, with commas: 8, 4K, 1M, 2G")
	f.DurationVar(&a.overhead, "overhead", 0, "`time` that a message takes of its sender's processor, and once more of "+
		"its receiver's, such as 300ns")
	f.BoolVar(&a.csv, "csv", false, "print CSV")
	check := func() (err error) {
		if a.overhead < 0 || a.overhead > time.Second {
			return fmt.Errorf("-overhead %v, want 0 to 1s", a.overhead)
		}
		if len(strings.Fields(a.networks)) == 0 {
			return errors.New("no network, want -network NAME or FILE")
		}
		if a.of, err = collectivesOf(a.collectives); err == nil {
			a.sizes, err = parseSizes(*sizes)
		}
		return err
	}
	return work{check, a.run}
}

// collectivesOf reads names of collectives with data.
func collectivesOf(text string) ([]schedule.Collective, error) {
	all := schedule.Collectives()
	if text == "all" {
		return all, nil
	}
	var out []schedule.Collective
	for name := range strings.SplitSeq(text, ",") {
		i := slices.IndexFunc(all, func(c schedule.Collective) bool { return c.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("-collective %.100q, want all or some of %s", name,
				strings.Join(collectiveNames()[:len(all)], ", "))
		}
		out = append(out, all[i])
	}
	return out, nil
}

// columns are those of the table.
var columns = []string{"network", "ranks", "collective", "bytes", "auto", "auto time", "best", "best time", "ratio"}

func (a *choices) run(_ context.Context, stdout io.Writer) error {
	lines := [][]string{columns}
	for name := range strings.FieldsSeq(a.networks) {
		of, err := a.on(name)
		if err != nil {
			return err
		}
		lines = append(lines, of...)
	}
	var out strings.Builder
	if a.csv {
		_ = csv.NewWriter(&out).WriteAll(lines) // into out, which takes everything
	} else {
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		for _, line := range lines {
			fmt.Fprintln(w, strings.Join(line, "\t"))
		}
		w.Flush()
	}
	_, err := io.WriteString(stdout, out.String())
	return err
}

// on are the lines of a network.
func (a *choices) on(name string) ([][]string, error) {
	network, err := command.Network(name)
	if err != nil {
		return nil, err
	}
	n := network.Replicas()
	if n < 2 || n > maxRanks {
		return nil, fmt.Errorf("%s: %d replicas, want 2 to %d", name, n, maxRanks)
	}
	members := ranks(n)
	rings := topology.Rings{First: members, Second: members}
	if t, ok := cost.TopologyOf(network); ok {
		if rings, err = t.Rings(topology.Auto, members); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	model := cost.Model{Network: network, Overhead: a.overhead}
	if err := model.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	table := cheapest.New(model).Of(cheapest.Group{}, members, rings.First, rings.Second)
	var lines [][]string
	for _, c := range a.of {
		for _, bytes := range a.sizes {
			chosen := table.Choose(c, bytes)
			if chosen == nil {
				return nil, fmt.Errorf("%s: no method does %v", name, c)
			}
			best, err := table.Exhaustive(c, bytes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			took, err := table.Exactly(chosen, c, bytes)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			ratio := 1.0
			if best.Time > 0 {
				ratio = float64(took) / float64(best.Time)
			}
			lines = append(lines, []string{name, strconv.Itoa(n), c.String(), strconv.FormatInt(bytes, 10),
				method(chosen), took.String(), method(best), best.Time.String(),
				strconv.FormatFloat(ratio, 'f', 2, 64)})
		}
	}
	return lines, nil
}

// method is a choice, with the pieces of a pipeline.
func method(c *cheapest.Choice) string {
	if c.Pieces > 1 {
		return fmt.Sprintf("%v/%d", c.Method, c.Pieces)
	}
	return c.Method.String()
}
