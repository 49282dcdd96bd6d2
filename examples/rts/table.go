package main

import (
	"context"
	"fmt"
	"strings"

	"gogcl.dev/remote"
	"gogcl.dev/rts"
)

// memoryTable is what a training step takes on each replica, sharded and not: the same program built once more with
// every replica having the whole of everything.
func (t *trainer) memoryTable(ctx context.Context) (string, error) {
	sharded, err := t.model.step.Memory(t.model.session)
	if err != nil {
		return "", err
	}
	if t.cfg.replicas == 1 {
		return table([]string{"plain"}, sharded), nil
	}
	s := t.cfg.sharding()
	s.Over = 1
	m, err := newModel(ctx, t.cfg, t.shares.rows, s, remote.Memory{}, firstWeights(t.cfg.seed))
	if err != nil {
		return "", err
	}
	whole, err := m.step.Memory(m.session)
	if closing := m.close(); err == nil {
		err = closing
	}
	if err != nil {
		return "", err
	}
	return table([]string{fmt.Sprintf("in %d shards", t.cfg.replicas), "not sharded"}, sharded, whole), nil
}

// table has a row for each kind of memory and a column for each program. Whole copies are what is gathered of shards,
// or loaded where there are none.
func table(names []string, of ...rts.Memory) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-17s", "bytes per replica")
	for _, name := range names {
		fmt.Fprintf(&b, "  %12s", name)
	}
	for _, row := range []struct {
		name  string
		bytes func(rts.Memory) int
	}{
		{"parameters", func(m rts.Memory) int { return m.Parameters }},
		{"Adam's states", func(m rts.Memory) int { return m.States }},
		{"whole copies", func(m rts.Memory) int { return m.Gathered }},
		{"gradients", func(m rts.Memory) int { return m.Gradients }},
		{"others", func(m rts.Memory) int { return m.Others }},
		{"peak of all", func(m rts.Memory) int { return m.Peak }},
	} {
		fmt.Fprintf(&b, "\n%-17s", row.name)
		for _, m := range of {
			fmt.Fprintf(&b, "  %12d", row.bytes(m))
		}
	}
	b.WriteString("\nEach row is the most there is at any time; not all at the same, so they do not add up to the peak.")
	return b.String()
}
