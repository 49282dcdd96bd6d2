package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/internal/measure"
)

// compare prints, where there are several transports, a table for each collective, method and implementation: over
// which one a call is how many times as fast as over the first. What was not measured over the first has none.
func (t *table) compare() {
	var transports []string
	var heads []measurement // one of each table
	for _, m := range t.all {
		if !slices.Contains(transports, m.Transport) {
			transports = append(transports, m.Transport)
		}
		if !slices.ContainsFunc(heads, func(o measurement) bool { return sameTable(o, m) }) {
			heads = append(heads, m)
		}
	}
	if len(transports) < 2 {
		return
	}
	for _, head := range heads {
		of := slices.DeleteFunc(slices.Clone(t.all), func(m measurement) bool { return !sameTable(head, m) })
		t.ratios(head, transports, of)
	}
}

// sameTable reports whether two measurements are of one table of compare.
func sameTable(a, b measurement) bool {
	return a.Collective == b.Collective && a.Method == b.Method && a.Implementation == b.Implementation
}

// ratios prints one table of compare, of these measurements.
func (t *table) ratios(head measurement, transports []string, of []measurement) {
	places := []string{measure.OutOfPlace.String(), measure.InPlace.String()}
	first := transports[0]
	t.printf("# gclperf %s, %d replicas, method %s, implementation %s\n", head.Collective, head.N, head.Method,
		head.Implementation)
	t.printf("# How many times as fast as over %s, by p50 of the tables above: more than 1 is faster than %[1]s\n#\n", first)
	width := 8 * (len(transports) + 1)
	t.printf("#%33s%*s%*s\n", "", width, "out-of-place", width, "in-place")
	t.printf("#%11s %8s %11s", "size (B)", "type", "redop")
	for range places {
		for _, name := range append(slices.Clone(transports), "fastest") {
			t.printf(" %7s", name)
		}
	}
	t.printf("\n")
	means := map[string][]float64{} // by place and transport
	var done []measurement
	for _, m := range of {
		same := func(o measurement) bool { return o.Bytes == m.Bytes && o.DType == m.DType && o.Op == m.Op }
		if slices.ContainsFunc(done, same) {
			continue
		}
		done = append(done, m)
		t.printf("%12d %8s %11s", m.Bytes, m.DType, m.Op)
		for _, place := range places {
			times := map[string]float64{}
			for _, o := range of {
				if same(o) && o.Place == place {
					times[o.Transport] = o.P50
				}
			}
			fastest, least := "N/A", math.Inf(1)
			for _, name := range transports {
				mine, known := times[name]
				if known && mine < least {
					fastest, least = name, mine
				}
				if times[first] == 0 || !known {
					t.printf(" %7s", "N/A")
					continue
				}
				means[place+name] = append(means[place+name], times[first]/mine)
				t.printf(" %7s", measure.Digits(times[first]/mine))
			}
			t.printf(" %7s", fastest)
		}
		t.printf("\n")
	}
	var text []string
	for i, place := range places {
		for _, name := range transports[1:] {
			if v := means[place+name]; len(v) > 0 {
				text = append(text, fmt.Sprintf("%s %s %s", name, measure.Digits(measure.GeometricMean(v)),
					[]string{"out of place", "in place"}[i]))
			}
		}
	}
	t.printf("# Geometric mean       : %s\n#\n", strings.Join(text, ", "))
}
