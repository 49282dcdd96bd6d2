package main

import (
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// vitals are what one replica holds: numbers, and KiB.
type vitals struct{ descriptors, goroutines, heap, resident float64 }

// sampling is one look at all replicas.
type sampling struct {
	at       time.Duration // since the beginning
	replicas []vitals
}

// measures are what may grow, and by how much in an hour without being a fault. Descriptors and goroutines come one at
// a time. The heap of examples/rts grows by 16 bytes a pass, which it keeps for its picture. Resident memory follows
// the heap, and what the Go runtime keeps of its own.
var measures = []struct {
	name  string
	bound float64 // growth in an hour
	of    func(v vitals) float64
}{
	{"descriptors", 1, func(v vitals) float64 { return v.descriptors }},
	{"goroutines", 1, func(v vitals) float64 { return v.goroutines }},
	{"heap KiB", 512, func(v vitals) float64 { return v.heap }},
	{"RSS KiB", 2048, func(v vitals) float64 { return v.resident }},
}

// leastSamples make a line with an interval.
const leastSamples = 3

// confidence is that of the intervals. Of 32 that are right, one in some three lists of them misses the slope.
const confidence = 0.99

// slope is the slope of the line through points by least squares, with its interval. Where the residuals follow each
// other, as those of memory do, which changes in steps, the interval is that of so many fewer points: (1-r)/(1+r) of
// them, given the correlation r of neighbours.
func slope(x, y []float64) (at, low, high float64) {
	intercept, at := stat.LinearRegression(x, y, nil, false)
	rest := make([]float64, len(y))
	var squares float64
	for i := range y {
		rest[i] = y[i] - intercept - at*x[i]
		squares += rest[i] * rest[i]
	}
	n := float64(len(x))
	_, variance := stat.MeanVariance(x, nil)
	deviation := math.Sqrt(squares / (n - 2) / (variance * (n - 1)))
	var follow float64
	for i := 1; i < len(rest); i++ {
		follow += rest[i] * rest[i-1]
	}
	if squares > 0 {
		if r := min(follow/squares, 0.95); r > 0 {
			deviation *= math.Sqrt((1 + r) / (1 - r))
		}
	}
	wide := deviation * distuv.StudentsT{Sigma: 1, Nu: n - 2}.Quantile((1+confidence)/2)
	return at, at - wide, at + wide
}

// printGrowth prints how each measure of each replica has changed, and returns how many grow beyond their bounds: the
// whole interval of the slope lies above.
func printGrowth(w io.Writer, taken []sampling) (growing int) {
	hours := make([]float64, len(taken))
	for i, s := range taken {
		hours[i] = s.at.Hours()
	}
	fmt.Fprintf(w, "%d samples from %v to %v; slopes per hour with intervals of %g %%\n", len(taken),
		taken[0].at.Round(time.Second), taken[len(taken)-1].at.Round(time.Second), 100*confidence)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "replica\tmeasure\tfirst\tlast\tslope\tfrom\tto\tbound\t")
	for _, m := range measures {
		for r := range taken[0].replicas {
			values := make([]float64, len(taken))
			for i, s := range taken {
				values[i] = m.of(s.replicas[r])
			}
			at, low, high := slope(hours, values)
			verdict := ""
			if low > m.bound {
				growing++
				verdict = "  grows"
			}
			fmt.Fprintf(table, "%d\t%s\t%.0f\t%.0f\t%.1f\t%.1f\t%.1f\t%g\t%s\n", r, m.name, values[0],
				values[len(values)-1], at, low, high, m.bound, verdict)
		}
	}
	table.Flush()
	return growing
}
