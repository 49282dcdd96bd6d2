package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"

	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
)

// priceVerb prints what a schedule costs.
func priceVerb(f *flag.FlagSet, from *source) work {
	text := f.String("bytes", "1K,32K,1M,32M", "`sizes` of the larger buffer, with commas: 8, 4K, 1M, 2G")
	file := f.String("network", "", "`file` of a network, as cost.ParseGraph reads it, for the links between ranks; -shape "+
		"and -domains unless given")
	var sizes []int64
	check := func() (err error) {
		sizes, err = parseSizes(*text)
		return err
	}
	return work{check, func(_ context.Context, stdout io.Writer) error {
		f, err := from.read()
		if err != nil {
			return err
		}
		if from.file != "" { // what a method makes is right
			if err := schedule.Check(f.Schedule); err != nil {
				return from.of(err)
			}
		}
		network, err := from.linked(*file, f.Schedule.Size)
		if err != nil {
			return err
		}
		model, members := cost.Model{Network: network}, ranks(f.Schedule.Size)
		if n := network.Replicas(); n < len(members) {
			return fmt.Errorf("%s: %d replicas, and the schedule has %d ranks", *file, n, len(members))
		}
		var text strings.Builder
		fmt.Fprintln(&text, title(f.Schedule))
		w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "bytes\trounds\tsent by a rank, at most\ttime\t\n")
		for _, bytes := range sizes {
			e, err := model.Price(f.Schedule, members, bytes)
			if err != nil {
				if *file != "" { // the schedule has been checked
					return fmt.Errorf("%s: %w", *file, err)
				}
				return from.of(err)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%v\t\n", bytes, e.Rounds, e.SentBytes, e.Time)
		}
		w.Flush() // into text, which takes everything
		_, err = io.WriteString(stdout, text.String())
		return err
	}}
}

// linked is the network that a file says, or where there is none -shape and -domains.
func (s *source) linked(file string, size int) (cost.Network, error) {
	if file != "" {
		return readNetwork(file)
	}
	t, err := s.network(size)
	if err != nil {
		return nil, err
	}
	return cost.Machine(t), nil
}

// readNetwork reads a file of a network.
func readNetwork(file string) (cost.Network, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err // it names the file
	}
	g, err := cost.ParseGraph(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return g, nil
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
