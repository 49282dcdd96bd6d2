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
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/topology"
	"gogcl.dev/transport/sim"
)

// choices is what auto does: the method that auto takes by price, beside the best of all.
type choices struct {
	networks, collectives string
	overhead              time.Duration
	csv, simulate         bool
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
	f.BoolVar(&a.simulate, "simulate", false, fmt.Sprintf("add the times that transport/sim takes, and the best of them, "+
		"up to %d ranks", mostSimulated))
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

// simulatedColumns follow with -simulate.
var simulatedColumns = []string{"auto simulated", "best simulated", "best time simulated", "ratio simulated"}

// mostSimulated is the largest group of which all methods are simulated.
const mostSimulated = 512

func (a *choices) run(ctx context.Context, stdout io.Writer) error {
	lines := [][]string{slices.Clone(columns)}
	if a.simulate {
		lines[0] = append(lines[0], simulatedColumns...)
	}
	for name := range strings.FieldsSeq(a.networks) {
		of, err := a.on(ctx, name)
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
func (a *choices) on(ctx context.Context, name string) ([][]string, error) {
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
			line := []string{name, strconv.Itoa(n), c.String(), strconv.FormatInt(bytes, 10), method(chosen),
				took.String(), method(best), best.Time.String(), ratio(took, best.Time)}
			if a.simulate {
				more, err := simulated(ctx, model, members, table, chosen, c, bytes)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", name, err)
				}
				line = append(line, more...)
			}
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// ratio is how many times as long as the best a time is.
func ratio(took, best time.Duration) string {
	if best == 0 {
		best, took = 1, 1
	}
	return strconv.FormatFloat(float64(took)/float64(best), 'f', 2, 64)
}

// simulated has the simulated times of a choice and of the best of all methods.
func simulated(ctx context.Context, model cost.Model, members []int, table *cheapest.Table, chosen *cheapest.Choice,
	c schedule.Collective, bytes int64) ([]string, error) {
	if len(members) > mostSimulated {
		return slices.Repeat([]string{"-"}, len(simulatedColumns)), nil
	}
	time := func(s methods.Spec) (time.Duration, error) {
		if cheapest.BySteps(s) {
			made, err := methods.Build(s)
			if err != nil {
				return 0, err
			}
			return sim.Replay(ctx, model, made, members, bytes)
		}
		traffic, err := s.Traffic()
		if err != nil {
			return 0, err
		}
		return sim.ReplayTraffic(ctx, model, traffic, members, bytes)
	}
	took, err := time(table.Request(chosen, c))
	if err != nil {
		return nil, err
	}
	best := *chosen
	best.Time = took
	for s := range table.Requests(c) {
		t, err := time(s)
		if err != nil {
			return nil, err
		}
		if t < best.Time {
			best.Method, best.Pieces, best.Time = s.Method, s.Pieces, t
		}
	}
	return []string{took.String(), method(&best), best.Time.String(), ratio(took, best.Time)}, nil
}

// method is a choice, with the pieces of a pipeline.
func method(c *cheapest.Choice) string {
	if c.Pieces > 1 {
		return fmt.Sprintf("%v/%d", c.Method, c.Pieces)
	}
	return c.Method.String()
}
