package ddp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/values"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// DefaultBucketBytes is what a BucketBytes of 0 stands for: 25 MiB, as in PyTorch's DistributedDataParallel.
const DefaultBucketBytes = 25 << 20

// Options say how a Reducer works. All replicas have the same.
type Options struct {
	// BucketBytes bounds the gradients of one call; a larger gradient goes alone. Small buckets start early, large ones
	// need fewer messages. 0: DefaultBucketBytes.
	BucketBytes int

	// Sum leaves the sum of the gradients in place of their mean.
	Sum bool
}

// operators are those of gradients, by Options.Sum.
var operators = map[bool]gcl.Operator{false: gcl.Mean, true: gcl.Add}

// Reducer reduces the gradients of a model, in which it holds on to their memory. Ready may be called from several
// goroutines at once. Finish follows all Ready calls of its step.
type Reducer struct {
	comm    *gcl.Comm
	grads   []*tensor.Tensor
	buckets []*bucket
	in      []*bucket  // by gradient
	count   [2]float64 // one more gradient, of the last bucket: this step's number and its square
	divisor float64    // makes means of what count becomes

	mu        sync.Mutex  // guards what follows, and bucket.missing
	ready     []bool      // by gradient, in this step
	used      []bool      // by gradient, since the last step that communicated
	works     []*gcl.Work // of the first buckets, which have started
	local     bool        // this step sends nothing
	finishing bool        // Finish has the buckets
	steps     int         // that are over
	err       error       // the first of Ready or NoSync in this step
}

// bucket is some gradients, which travel together.
type bucket struct {
	batch   *gcl.Batch
	run     func(context.Context, *gcl.Comm) error // runs batch
	missing int                                    // gradients that are not ready
}

var errNoReducer = errors.New("ddp: a Reducer that New has not made")

// New makes a Reducer of gradients that stay in these slices. All members of c's group call it with gradients of the
// same lengths, in the same order. Each has memory of its own, and may be empty. T is a floating point type, or with
// Options.Sum any that gcl.Add takes. An error about the arguments is one on all members, and leaves c usable.
func New[T tensor.Element](ctx context.Context, c *gcl.Comm, grads [][]T, o Options) (*Reducer, error) {
	tensors := make([]*tensor.Tensor, len(grads))
	for i, g := range grads {
		tensors[i] = tensor.MustFromSlice(g, len(g))
	}
	return NewTensors(ctx, c, tensors, o)
}

// NewTensors is New of tensors, which may have several types. Shapes are not compared between members.
func NewTensors(ctx context.Context, c *gcl.Comm, grads []*tensor.Tensor, o Options) (*Reducer, error) {
	o.BucketBytes = cmp.Or(o.BucketBytes, DefaultBucketBytes)
	if err := agree(ctx, c, grads, o); err != nil {
		return nil, fmt.Errorf("ddp: %w", err)
	}
	n := len(grads)
	r := &Reducer{comm: c, grads: slices.Clone(grads), in: make([]*bucket, n), ready: make([]bool, n),
		used: make([]bool, n), divisor: 1}
	if o.Sum {
		r.divisor = float64(c.Size())
	}
	var last *bucket
	for i, bytes := n-1, 0; i >= 0; i-- {
		size := len(grads[i].Bytes())
		if last == nil || size > o.BucketBytes-bytes {
			b := c.Named(fmt.Sprintf("bucket %d", len(r.buckets))).Batch(schedule.AllReduce, operators[o.Sum], 0)
			last = &bucket{batch: b, run: func(ctx context.Context, _ *gcl.Comm) error { return b.Run(ctx) }}
			r.buckets, bytes = append(r.buckets, last), 0
		}
		last.batch.AppendTensor(grads[i], grads[i])
		last.missing++
		r.in[i], bytes = last, bytes+size
	}
	if last != nil {
		gcl.Append(last.batch, r.count[:], r.count[:])
	}
	return r, nil
}

// agree compares what the replicas give. An error is one on all of them. A call that sends nothing looks at the memory.
func agree(ctx context.Context, c *gcl.Comm, grads []*tensor.Tensor, o Options) error {
	var wrong error
	if o.BucketBytes < 0 {
		wrong = fmt.Errorf("BucketBytes %d, want 1 or more, or 0 for %d", o.BucketBytes, DefaultBucketBytes)
	}
	own := []string{fmt.Sprintf("%d gradients, BucketBytes %d, Sum %v", len(grads), o.BucketBytes, o.Sum)}
	b := c.Named("gradients").Batch(schedule.AllReduce, gcl.Local, 0)
	for i, g := range grads {
		if err := operators[o.Sum].Accepts(g.DType()); err != nil {
			wrong = cmp.Or(wrong, fmt.Errorf("gradient %d: %w", i, err))
		}
		own = append(own, fmt.Sprintf("gradient %d of %v x %d", i, g.DType(), g.Len()))
		b.AppendTensor(g, g)
	}
	if wrong = cmp.Or(b.Run(ctx), wrong); wrong != nil {
		own = []string{"an error: " + wrong.Error()}
	}
	all, err := values.AllGather(ctx, c, own)
	if err = cmp.Or(wrong, err); err != nil {
		return err
	}
	for rank, lines := range all {
		for i := range min(len(lines), len(all[0])) {
			if m, a, b := c.Members(), all[0][i], lines[i]; a != b {
				return fmt.Errorf("%w: replica %d gives %s, replica %d %s", gcl.ErrMismatch, m[0], a, m[rank], b)
			}
		}
	}
	return nil
}

// Ready says that gradient i is complete, and starts the buckets that this completes, by ctx. It waits for nothing. In
// a step that communicates the gradient is the Reducer's until Finish has returned. A mistake is an error and changes
// nothing: a nil context, an index of no gradient, a gradient that is ready already.
func (r *Reducer) Ready(ctx context.Context, i int) error {
	if r == nil || r.comm == nil {
		return errNoReducer
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx == nil:
		return r.mistake("Ready(%d): the context is nil", i)
	case r.finishing:
		return r.mistake("Ready(%d) beside Finish", i)
	case i < 0 || i >= len(r.grads):
		return r.mistake("Ready(%d): want the index of one of %d gradients", i, len(r.grads))
	case r.ready[i]:
		return r.mistake("Ready(%d): the gradient is ready already in this step", i)
	}
	r.ready[i], r.used[i] = true, true
	r.in[i].missing--
	for !r.local && len(r.works) < len(r.buckets) && r.buckets[len(r.works)].missing == 0 {
		r.works = append(r.works, r.comm.Start(ctx, r.buckets[len(r.works)].run))
	}
	return nil
}

// NoSync, before any Ready, has a step send nothing: its Finish leaves the gradients as they are.
func (r *Reducer) NoSync() error {
	if r == nil || r.comm == nil {
		return errNoReducer
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finishing || slices.Contains(r.ready, true) {
		return r.mistake("NoSync in a step that has begun, want it before Ready")
	}
	r.local = true
	return nil
}

// mistake is an error of the program's, the first of which Finish returns too.
func (r *Reducer) mistake(format string, args ...any) error {
	err := fmt.Errorf("ddp: "+format, args...)
	r.err = cmp.Or(r.err, err)
	return err
}

// Finish ends a step: it clears the gradients that are unused, reduces the buckets that have not started, and waits for
// all. Then the gradients hold the mean, or the sum, of all replicas, and are the program's again. When ctx is done
// before, the communicator is aborted. After an error it is unspecified what the gradients hold. Errors are those of an
// all-reduce, gcl.ErrMismatch where replicas have made other steps, and the first of Ready and NoSync in the step.
func (r *Reducer) Finish(ctx context.Context) error {
	if r == nil || r.comm == nil {
		return errNoReducer
	}
	r.mu.Lock()
	if r.finishing {
		defer r.mu.Unlock()
		return r.mistake("Finish beside Finish")
	}
	r.finishing = true
	r.mu.Unlock()
	var err error
	if !r.local {
		err = r.reduce(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.ready {
		if r.ready[i] {
			r.ready[i], r.in[i].missing = false, r.in[i].missing+1
		}
	}
	clear(r.works)
	err = cmp.Or(err, r.err)
	r.works, r.local, r.finishing, r.err = r.works[:0], false, false, nil
	r.steps++
	k := float64(r.steps & 0xffff) // the sums are exact
	r.count = [2]float64{k, k * k}
	return err
}

// reduce waits for the buckets that have started, and reduces the others.
func (r *Reducer) reduce(ctx context.Context) error {
	if ctx == nil {
		r.comm.Abort(errors.New("ddp: the context of Finish is nil"))
		ctx = context.Background()
	}
	for i, used := range r.used {
		if !used {
			clear(r.grads[i].Bytes())
		}
	}
	clear(r.used)
	var first error
	for _, w := range r.works {
		select {
		case <-w.Done():
		case <-ctx.Done():
			r.comm.Abort(context.Cause(ctx))
		}
		first = cmp.Or(first, w.Wait())
	}
	for _, b := range r.buckets[len(r.works):] {
		first = cmp.Or(first, b.batch.Run(ctx))
	}
	return cmp.Or(first, r.compare())
}

// compare returns an error if the replicas have reduced different steps. The mean of the squares is the square of the
// mean if all steps are equal, and only then. All have the same sums, so all find it.
func (r *Reducer) compare() error {
	if mean := r.count[0] / r.divisor; len(r.buckets) == 0 || mean*mean == r.count[1]/r.divisor {
		return nil
	}
	return fmt.Errorf("ddp: %w: step %d of this replica has met other steps, want the same calls of NoSync and Finish "+
		"on all", gcl.ErrMismatch, r.steps)
}

// Broadcast gives all members the parameters of rank 0, to begin with the same.
func Broadcast[T tensor.Element](ctx context.Context, c *gcl.Comm, params [][]T) error {
	b := c.Batch(schedule.Broadcast, 0, 0)
	gcl.AppendAll(b, params, params)
	return b.Run(ctx)
}
