package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// choose prints, for each way to run Open MPI and each collective, the sizes at which it is among the best.
func choose(w io.Writer, all []sample, best int) error {
	type point struct {
		collective string
		bytes      int
	}
	type job struct{ config, collective string }
	ranked := map[point][]sample{}
	for _, s := range all {
		if s.who == "peer" && s.micro > 0 {
			p := point{s.collective, s.bytes}
			ranked[p] = append(ranked[p], s)
		}
	}
	sizes := map[job][]int{}
	for p, list := range ranked {
		slices.SortFunc(list, func(a, b sample) int {
			return cmp.Or(cmp.Compare(a.micro, b.micro), cmp.Compare(a.config, b.config))
		})
		for _, s := range list[:min(best, len(list))] {
			j := job{s.config, p.collective}
			sizes[j] = append(sizes[j], p.bytes)
		}
	}
	var jobs []job
	for j := range sizes {
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b job) int {
		return cmp.Or(cmp.Compare(a.collective, b.collective), cmp.Compare(a.config, b.config))
	})
	for _, j := range jobs {
		slices.Sort(sizes[j])
		var text []string
		for _, size := range slices.Compact(sizes[j]) {
			text = append(text, strconv.Itoa(size))
		}
		if _, err := fmt.Fprintf(w, "%s %s %s\n", j.config, j.collective, strings.Join(text, ",")); err != nil {
			return err
		}
	}
	return nil
}
