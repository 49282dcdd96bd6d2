package main

import "math"

// quantile is the value of which a share q of sorted is not above: between two elements, on the line that joins them.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := math.Floor(at)
	v := sorted[int(low)]
	if rest := at - low; rest > 0 {
		v += rest * (sorted[int(low)+1] - v)
	}
	return v
}
