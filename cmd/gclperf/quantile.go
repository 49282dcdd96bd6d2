package main

import "math"

// quantile is the value that a share q of sorted does not exceed. Element i is the quantile of share i/(n-1), and
// between two elements the quantile is on the line that joins them. gonum's stat.Quantile has others: the median of
// 1, 2 and 3 is 1.5 there with stat.LinInterp, and the median of 1 and 3 is 1 with both of its kinds.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := math.Floor(at)
	v := sorted[int(low)]
	if rest := at - low; rest > 0 {
		v += rest * (sorted[int(low)+1] - v)
	}
	return v
}
