package member

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"gogcl.dev/gcl"
)

// ways is how many collectives went which way.
type ways struct {
	trace gcl.Trace

	mu        sync.Mutex // guards what follows: a replica may have calls on two connections at once
	transport string
	calls     map[gcl.Path]int
}

// Counted returns options that have Ways count the collectives which are called with them. In no job they are the given
// ones.
func (m *Member) Counted(o gcl.Options) gcl.Options {
	if m != nil {
		m.ways.trace.CollectiveEnd = m.ways.count
		o.Trace = &m.ways.trace
	}
	return o
}

func (w *ways) count(c gcl.TraceCall, _ error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.calls == nil {
		w.calls = map[gcl.Path]int{}
	}
	w.calls[c.Path]++
	w.transport = c.Transport
}

// Ways is a line about which ways the counted collectives of this process's replica went, as gcl.Path names them. It is
// "" in no job.
func (m *Member) Ways() string {
	if m == nil {
		return ""
	}
	w := &m.ways
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for _, p := range slices.Sorted(maps.Keys(w.calls)) {
		parts = append(parts, fmt.Sprintf("%v %d", p, w.calls[p]))
	}
	over := ""
	if w.transport != "" { // of a group of one it is
		over = " over " + w.transport
	}
	return fmt.Sprintf("collectives%s: %s", over, strings.Join(parts, ", "))
}
