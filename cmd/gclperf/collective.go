package main

import (
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/methods/schedule"
)

// collective is one of the operations that gclperf measures: those of the table of contracts.
type collective schedule.Collective

// collectiveNames are the names of all, as nccl-tests and -collective have them: without hyphens.
func collectiveNames() []string {
	var names []string
	for _, c := range allCollectives() {
		names = append(names, c.String())
	}
	return names
}

func (c collective) String() string {
	return strings.ReplaceAll(schedule.Collective(c).String(), "-", "")
}

// allCollectives are those of all names.
func allCollectives() []collective {
	var out []collective
	for _, c := range schedule.Collectives() {
		out = append(out, collective(c))
	}
	return out
}

// parseCollectives reads names with commas between them, or "all".
func parseCollectives(text string) ([]collective, error) {
	if text == "all" {
		return allCollectives(), nil
	}
	var out []collective
	names := collectiveNames()
	for name := range strings.SplitSeq(text, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, unknown("-collective", name, append(names, "all"))
		}
		out = append(out, collective(i))
	}
	return out, nil
}

func (c collective) contract() schedule.Contract { return schedule.Collective(c).Contract() }

// reduces reports whether the collective has an operator.
func (c collective) reduces() bool { return c.contract().Combines }

// rooted reports whether the collective has a root.
func (c collective) rooted() bool { return c.contract().Rooted() }

// perReplica reports whether the larger buffer has a part for each replica.
func (c collective) perReplica() bool { return c.contract().PerRank() }

// count is the number of elements that a call has for a size in bytes: for each replica where perReplica says so, else
// in all. It is rounded up where each replica must have as many, and 1 at least.
func (c collective) count(size, elemSize, n int) int {
	elems := max(size/elemSize, 1)
	if c.perReplica() {
		return (elems-1)/n + 1
	}
	return elems
}

// larger is the number of elements of the larger of a replica's two buffers.
func (c collective) larger(count, n int) int {
	if c.perReplica() {
		return count * n
	}
	return count
}

// lengths are the elements of a replica's input and of its result.
func (c collective) lengths(count, n int) (input, result int) {
	whole, contract := c.larger(count, n), c.contract()
	return contract.Input.Elements(whole, n), contract.Output.Elements(whole, n)
}

// busFactor is nccl-tests' factor: size times it, by the time, is the bandwidth that the slowest link must have,
// whatever the number of replicas. https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md
func (c collective) busFactor(n int) float64 {
	switch {
	case c.perReplica():
		return float64(n-1) / float64(n)
	case c.rooted():
		return 1
	}
	return 2 * float64(n-1) / float64(n)
}

// place says whether a result lies apart from the input.
type place uint8

const (
	outOfPlace place = iota
	inPlace
)

var placeNames = [...]string{"oop", "ip"}

func (p place) String() string { return placeNames[p] }

// parsePlaces reads oop, ip or both.
func parsePlaces(text string) ([]place, error) {
	switch text {
	case "both":
		return []place{outOfPlace, inPlace}, nil
	case "oop":
		return []place{outOfPlace}, nil
	case "ip":
		return []place{inPlace}, nil
	}
	return nil, fmt.Errorf("-place %q, want oop, ip or both", text)
}
