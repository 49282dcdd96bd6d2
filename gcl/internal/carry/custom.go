package carry

import (
	"context"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/carry/rounds"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/transport"
)

// custom carries out a job by a schedule of a contract of a program's own. Inputs that are to be squared, that the
// options have staged, or that are combined in another type are copied first.
func (w *Caller) custom(ctx context.Context, j *job.Job, e rounds.Executor, fingerprint transport.Call) error {
	m, g, dtype, does := &w.packer, j.Given, kernel.Type(j.DTypes[0]), &j.Reduction
	work, combines := dtype, g.Custom.Combines
	if combines {
		work = w.worksIn(does, j.DTypes[0])
		m.packing.Loops(kernel.Fold{Op: does.Fold})
	}
	square := combines && does.Square
	in, out := j.Ins[0], j.Outs[0]
	if square || w.Stages || work != dtype {
		staged, result := w.staging.Pair(len(in)/dtype.Size()*work.Size(), len(out)/dtype.Size()*work.Size())
		load(staged, in, dtype, work, square)
		if in = staged; work != dtype {
			out = result
		}
	}
	r := rounds.Run{Elements: j.Elements[0], ElemSize: work.Size(), Input: in, Output: out, Call: fingerprint,
		Segment: w.segment(work.Size())}
	if combines {
		r.Fold, r.Second, r.Many = m.packing.Binary[work], m.packing.Second[work], m.packing.Many[work]
	}
	if err := w.Carry(ctx, e, append(w.Runs(), r)); err != nil {
		return err
	}
	if combines && does.Divide {
		g.Lists().Divide(out, work, j.Elements[0])
	}
	if work != dtype {
		kernel.Narrow(dtype)(j.Outs[0], out)
	}
	return nil
}
