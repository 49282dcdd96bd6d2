package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"

	"gogcl.dev/methods/cost"
)

// priceVerb prints what a schedule costs.
func priceVerb(f *flag.FlagSet, from *source) work {
	text := f.String("bytes", "1K,32K,1M,32M", "`sizes` of the larger buffer, with commas: 8, 4K, 1M, 2G")
	var sizes []int64
	check := func() (err error) {
		sizes, err = parseSizes(*text)
		return err
	}
	return work{check, func(_ context.Context, stdout io.Writer) error {
		file, err := from.read()
		if err != nil {
			return err
		}
		t, members, err := from.network(file.Schedule.Size)
		if err != nil {
			return err
		}
		fmt.Fprintln(stdout, title(file.Schedule))
		w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprint(w, "bytes\trounds\tsent by a rank, at most\ttime\t\n")
		for _, bytes := range sizes {
			e, err := cost.Price(file.Schedule, members, t, bytes)
			if err != nil {
				return from.of(err)
			}
			fmt.Fprintf(w, "%d\t%d\t%d\t%v\t\n", bytes, e.Rounds, e.SentBytes, e.Time)
		}
		return w.Flush()
	}}
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
