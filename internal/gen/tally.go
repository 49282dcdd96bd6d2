package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// made counts what this process has done, for the report.
var made struct {
	byRanks  atomic.Int64           // calls of ranks
	calls    atomic.Int64           // calls, of which each has one rank 0
	byKind   [numKinds]atomic.Int64 // calls by kind
	byForm   tally
	byMethod tally        // Comms, not calls
	options  atomic.Int64 // Comms made by With
	refused  atomic.Int64 // Comms whose options the group or the machine does not allow
}

// tally is a count for each name. Its zero value is empty.
type tally struct {
	mu    sync.Mutex // guards count
	count map[string]int
}

// add counts one.
func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = map[string]int{}
	}
	t.count[name]++
}

// lines is the names in order, each with its count.
func (t *tally) lines() (lines []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(t.count)) {
		lines = append(lines, fmt.Sprint(name, " ", t.count[name]))
	}
	return lines
}

// report prints what was done. detail adds the methods of Comms and the forms of calls.
func report(w io.Writer, what string, done, bad int, began time.Time, detail bool) {
	fmt.Fprintf(w, "%s: %d programs, %d failed, %d collective calls, %d calls of ranks, %v\n", what, done, bad,
		made.calls.Load(), made.byRanks.Load(), time.Since(began).Round(time.Millisecond))
	fmt.Fprint(w, "  by kind:")
	for k := range numKinds {
		fmt.Fprintf(w, " %v %d", k, made.byKind[k].Load())
	}
	fmt.Fprintf(w, "\n  options given %d, refused by the group or the machine %d\n", made.options.Load(),
		made.refused.Load())
	if !detail {
		return
	}
	for _, t := range []*tally{&made.byMethod, &made.byForm} {
		lines := t.lines()
		fmt.Fprintln(w, "  ", len(lines), lines)
	}
}
