package measure

import (
	"fmt"
	"math"
	"slices"
)

// Quantile is the value that a share q of sorted does not exceed. Element i is the quantile of share i/(n-1), and
// between two elements the quantile is on the line that joins them. gonum's stat.Quantile has others: the median of
// 1, 2 and 3 is 1.5 there with stat.LinInterp, and the median of 1 and 3 is 1 with both of its kinds.
func Quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := math.Floor(at)
	v := sorted[int(low)]
	if rest := at - low; rest > 0 {
		v += rest * (sorted[int(low)+1] - v)
	}
	return v
}

// Median is that of numbers in any order, 0 of none.
func Median(numbers []float64) float64 {
	if len(numbers) == 0 {
		return 0
	}
	return Quantile(slices.Sorted(slices.Values(numbers)), .5)
}

// GeometricMean is that of numbers above 0, of which there is one at least.
func GeometricMean(numbers []float64) float64 {
	sum := 0.0
	for _, v := range numbers {
		sum += math.Log(v)
	}
	return math.Exp(sum / float64(len(numbers)))
}

// Micro is a time in microseconds, to a tenth of a nanosecond and never 0.
func Micro(seconds float64) float64 { return max(math.Round(seconds*1e10), 1) / 1e4 }

// Digits prints a number with two places after the point, and fewer the larger it is.
func Digits(v float64) string {
	switch {
	case v >= 1e4:
		return fmt.Sprintf("%.0f", v)
	case v >= 100:
		return fmt.Sprintf("%.1f", v)
	case v >= 1 || v == 0:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3f", v)
}
