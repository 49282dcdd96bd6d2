package carry

import (
	"context"

	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
)

// lists is where chunks lie in a rank's buffers by a contract of a program's own. Places are in sizes of chunks, which
// a run's unit makes elements.
type lists struct {
	contract *schedule.CustomContract
	total    int     // of all chunks
	in, out  []int32 // by chunk; where the rank's buffer does not hold it, 0
	results  []result
}

// result is a part of an Output with as many contributors.
type result struct{ end, ranks int }

// newLists finds the places of a rank; nil for no contract. The contract has been checked.
func newLists(c *schedule.CustomContract, rank int) *lists {
	if c == nil {
		return nil
	}
	l := &lists{contract: c}
	chunks := c.Chunks()
	for f := range chunks {
		l.total += c.Size(f)
	}
	at := func(list []int) []int32 {
		places, next := make([]int32, chunks), 0
		for _, f := range list {
			places[f] = int32(next)
			next += c.Size(f)
		}
		return places
	}
	l.in, l.out = at(c.Inputs[rank]), at(c.Outputs[rank])
	if !c.Combines {
		return l
	}
	holders := make([]int, chunks)
	for _, list := range c.Inputs {
		for _, f := range list {
			holders[f]++
		}
	}
	for place, f := range c.Outputs[rank] {
		ranks, end := holders[f], int(l.out[f])+c.Size(f)
		if c.Wants != nil {
			ranks = len(c.Wants[rank][place])
		}
		if n := len(l.results); n > 0 && l.results[n-1].ranks == ranks {
			l.results[n-1].end = end
		} else {
			l.results = append(l.results, result{end, ranks})
		}
	}
	return l
}

// split fills in the bounds of chunks with n elements in all, and returns those of a chunk of size 1.
func (l *lists) split(bounds []int, n int) (unit int) {
	if l.total > 0 {
		unit = n / l.total
	}
	for f := range len(bounds) - 1 {
		bounds[f+1] = bounds[f] + unit*l.contract.Size(f)
	}
	return unit
}

// bytes is the part of a buffer with some elements from a chunk on, which have places in it.
func (l *lists) bytes(r *run, buffer []byte, places []int32, first, elements int) []byte {
	at := int(places[first]) * r.place.unit
	return buffer[at*r.elemSize : (at+elements)*r.elemSize]
}

// custom carries out a job by a schedule of a contract of a program's own. Inputs that are to be squared, that the
// options have staged, or that are combined in another type are copied first.
func (m *packer) custom(ctx context.Context, w *Caller, j *Job, e executor, fingerprint transport.Call) error {
	g, dtype, does := j.given, kernel.Type(j.DTypes[0]), &j.Reduction
	work, combines := dtype, g.Custom.Combines
	if combines {
		work = w.Setting.WorksIn(j.DTypes[0])
		m.packing.Loops(kernel.Fold{Op: does.Fold})
	}
	square := combines && does.Square
	in, out := j.Ins[0], j.Outs[0]
	if square || w.Stages || work != dtype {
		staged, result := w.Carrier.stage(len(in)/dtype.Size()*work.Size(), len(out)/dtype.Size()*work.Size())
		load(staged, in, dtype, work, square)
		if in = staged; work != dtype {
			out = result
		}
	}
	r := run{elements: j.elements[0], elemSize: work.Size(), input: in, output: out, call: fingerprint,
		segment: w.segment(work.Size())}
	if combines {
		r.fold, r.many = m.packing.Binary[work], m.packing.Many[work]
	}
	if err := w.Carrier.execute(ctx, e, append(w.Carrier.runs[:0], r)); err != nil {
		return err
	}
	if combines && does.Divide {
		l := g.lists()
		l.divide(out, work, j.elements[0]/max(l.total, 1)*work.Size())
	}
	if work != dtype {
		kernel.Narrow(dtype)(j.Outs[0], out)
	}
	return nil
}

// divide divides each chunk of an output by the number of ranks that have contributed to it. unit is the bytes of a
// chunk of size 1.
func (l *lists) divide(out []byte, t kernel.Type, unit int) {
	at := 0
	for _, part := range l.results {
		if part.ranks > 1 {
			kernel.Divide(t)(out[at:part.end*unit], out[at:part.end*unit], part.ranks)
		}
		at = part.end * unit
	}
}
