package gcl

import (
	"context"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/transport"
)

// staged carries out a call on one tensor by a schedule with Options.StageFragments: as one on several, which are
// packed fragment by fragment, each at the beginning of a cache line.
func (c *Comm) staged(ctx context.Context, k *call, r route, n int, fingerprint transport.Call) error {
	m := &c.lane.many
	defer m.clear()
	m.ins, m.outs = append(m.ins[:0], k.src), append(m.outs[:0], k.dst)
	m.known = m.place(true)
	m.known.dtypes = append(m.known.dtypes, k.dtype)
	m.known.elements = append(m.known.elements, n)
	m.known.shards = append(m.known.shards, chunks.PerRank(n, c.Size()))
	whole := call{collective: k.collective, operator: k.operator, dtype: k.dtype, root: k.root}
	e, err := c.executor(&whole, r, n*k.dtype.Size())
	if err != nil {
		return err
	}
	c.chosen(r, e.length())
	return m.scheduled(ctx, c, &whole, e, fingerprint)
}

// stageInput replaces a call's input by a copy in lane memory, on ranks whose input counts. In one pass over the copy the
// fragments, each of whole cache lines, lie in order.
func (c *Comm) stageInput(k *call) {
	if !k.reads(c.Rank()) {
		return
	}
	staged, _ := c.lane.stage(len(k.src), 0)
	kernel.Copy(staged, k.src, false)
	k.src = staged
}

// stageInputs is stageInput for several tensors.
func (m *many) stageInputs(c *Comm, whole *call) {
	if !whole.reads(c.Rank()) {
		return
	}
	total := 0
	for _, in := range m.ins {
		total += roundUp(len(in), packAlign)
	}
	staged, _ := c.lane.stage(total, 0)
	for t, in := range m.ins {
		kernel.Copy(staged[:len(in)], in, false)
		m.ins[t], staged = staged[:len(in):len(in)], staged[roundUp(len(in), packAlign):]
	}
}
