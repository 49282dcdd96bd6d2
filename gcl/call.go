package gcl

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gogcl.dev/chunks"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// barrier is the number of a barrier among the collectives in a transport.Call: the last one below withinReplica, which
// no row of the table of contracts has. A barrier is carried out as an all-reduce of nothing.
const barrier = uint8(0x7f)

// call is one collective as the untyped part of the package sees it.
type call struct {
	collective schedule.Collective
	barrier    bool
	operator   Operator
	dtype      tensor.DType
	root       int
	dst, src   []byte
	srcLen     int // elements
	dstLen     int

	// parts, of a reduce-scatter or an all-gather whose ranks have parts of different lengths, is where each rank's begins
	// in the larger buffer, and where the last ends, in elements; those of a reduce-scatter are as chunks.Split has them.
	// nil: equal parts, the last padded.
	parts []int
}

// inPlace reports whether the output takes the place of the input.
func (k *call) inPlace() bool {
	return len(k.dst) > 0 && len(k.src) > 0 && &k.dst[0] == &k.src[0]
}

// reads reports whether the input of a rank counts.
func (k *call) reads(rank int) bool {
	return k.collective.Contract().Input != schedule.AtRoot || rank == k.root
}

// do carries out a call: it waits for the lane's turn, checks, sends and receives. Every call takes a number in its
// group, a refused one too.
func (c *Comm) do(ctx context.Context, k call) error {
	if err := c.check(); err != nil {
		return err
	}
	fingerprint := transport.Call{
		Group:      c.group.id,
		Count:      uint64(k.srcLen),
		Digest:     c.digest,
		Root:       rootNumber(k.root),
		Collective: uint8(k.collective),
		Operator:   uint8(k.operator),
		DType:      uint8(k.dtype),
	}
	if k.barrier {
		fingerprint.Collective = barrier
	}
	if err := c.begin(ctx, &fingerprint); err != nil {
		return err
	}
	defer c.leave()
	if c.options.Trace != nil {
		defer c.crashed()
	}
	c.tellStart(&fingerprint, nil)
	if err := c.checkCall(ctx, &k); err != nil {
		return c.end(c.refusal(&fingerprint, err))
	}
	if err := c.perform(ctx, &k, fingerprint); err != nil {
		return c.end(c.failure(ctx, &fingerprint, err))
	}
	return c.end(nil)
}

// rootNumber is how a transport.Call holds a root, also one that is about to be refused: as an int32.
func rootNumber(root int) uint32 { return uint32(int32(min(max(root, math.MinInt32), math.MaxInt32))) }

// larger is the number of elements in the larger of a rank's two buffers.
func (c *Comm) larger(k *call) int {
	if k.parts != nil {
		return k.parts[c.Size()]
	}
	return k.collective.Contract().Elements(k.srcLen, c.Size())
}

// checkCall looks at the arguments. Nothing has been sent.
func (c *Comm) checkCall(ctx context.Context, k *call) error {
	if ctx == nil {
		return errors.New("nil context")
	}
	size, contract := c.Size(), k.collective.Contract()
	if contract.Input == schedule.Own {
		if err := checkRoom(k.srcLen, size, k.dtype); err != nil {
			return err
		}
	}
	if contract.Combines {
		if err := k.operator.Accepts(k.dtype); err != nil {
			return err
		}
	}
	switch {
	case contract.Input == schedule.Blocks && k.srcLen%size != 0:
		return fmt.Errorf("%d elements do not divide into %d equal parts, one for each rank", k.srcLen, size)
	case contract.Rooted() && (k.root < 0 || k.root >= size):
		return fmt.Errorf("root %d is not a rank of the group, 0 to %d", k.root, size-1)
	}
	if want := contract.Output.Elements(c.larger(k), size); k.dstLen != want {
		return fmt.Errorf("the destination has %d elements, want %d for %d of input over %d ranks", k.dstLen, want, k.srcLen, size)
	}
	return c.checkOverlap(k)
}

// checkOverlap refuses a destination that shares memory with the input, unless it is the input or, where one is
// smaller, its own place in the larger.
func (c *Comm) checkOverlap(k *call) error {
	if !overlap(k.dst, k.src) {
		return nil
	}
	dst, src := address(k.dst), address(k.src)
	apart, side := dst-src, "after"
	if dst < src {
		apart, side = src-dst, "before"
	}
	place, where := uintptr(0), "be the input itself"
	switch contract := k.collective.Contract(); {
	case contract.Output == schedule.Own:
		place, where = uintptr(c.Rank()*len(k.dst)), "be the rank's own shard of the input"
	case contract.Input == schedule.Own:
		place, where = uintptr(c.Rank()*len(k.src)), "hold the input as the rank's own shard"
		dst, src = src, dst
	}
	if dst != src+place {
		return fmt.Errorf("the destination begins %d bytes %s the input and overlaps it; it must lie apart or %s", apart, side, where)
	}
	return nil
}

// perform carries out a checked call.
func (c *Comm) perform(ctx context.Context, k *call, fingerprint transport.Call) error {
	n := c.larger(k)
	q := c.question(k, n)
	r := c.setting.route(&q)
	if r.phases {
		return c.passing(k, fingerprint, c.hybrid.perform(ctx, k, fingerprint))
	}
	switch r.path {
	case PathLocal:
		c.chosen(r, 0)
		// Nothing to send, but an aborted or closed communicator, or a context that is done, must show.
		if err := c.lane.endpoint.Exchange(ctx, fingerprint, nil); err != nil {
			return err
		}
		c.keepOwn(k)
		return nil
	case PathSmall, PathMemory:
		if c.options.StageFragments && r.path == PathMemory {
			c.stageInput(k)
		}
		c.lane.shared.setUp(c, k, &fingerprint, r.method)
		c.chosenOnePass(r)
		return c.lane.shared.run(ctx, k, r.path)
	}
	fingerprint.Method = uint8(r.method)
	return c.passing(k, fingerprint, c.byRounds(ctx, k, r, n, fingerprint))
}

// byRounds carries out a call by a schedule.
func (c *Comm) byRounds(ctx context.Context, k *call, r route, n int, fingerprint transport.Call) error {
	combines := k.collective.Contract().Combines
	if c.options.StageFragments && !k.barrier {
		if k.parts == nil {
			return c.staged(ctx, k, r, n, fingerprint)
		}
		if !combines {
			c.stageInput(k)
		}
	}
	e, err := c.executor(k, r, n*k.dtype.Size())
	if err != nil {
		return err
	}
	c.chosen(r, e.length())
	one := run{elements: n, elemSize: k.dtype.Size(), input: k.src, output: k.dst, call: fingerprint, parts: k.parts, segment: c.segment(k.dtype.Size())}
	switch {
	case k.barrier: // folds nothing
		one.fold, one.many = kernel.Binary(kernel.Add, kernel.Uint8), kernel.Many(kernel.Add, kernel.Uint8)
	case combines:
		return c.reduce(ctx, k, e, one, n)
	}
	return c.lane.execute(ctx, e, one)
}

// keepOwn gives a replica its own data: the result in a group of one, and that of an operator that combines
// nothing.
func (c *Comm) keepOwn(k *call) {
	src := k.src
	if k.collective.Contract().Output == schedule.Own {
		lo := min(c.Rank()*len(k.dst), len(src))
		if k.parts != nil {
			lo = k.parts[c.Rank()] * k.dtype.Size()
		}
		src = src[lo:min(lo+len(k.dst), len(src))]
	}
	clear(k.dst[copy(k.dst, src):])
}

// executor carries out a schedule.
type executor interface {
	// execute carries out runs of which only the caller's part is filled in, all of one call.
	execute(ctx context.Context, runs []run) error

	// own is the range of elements of the first run that belong to the rank. It is good after execute.
	own() (lo, hi int)

	// cut is into how many chunks the data is cut.
	cut() int

	// length is the number of rounds.
	length() int
}

// executor finds the executor of a call by a schedule, or makes it. bytes are those of the larger buffer.
func (c *Comm) executor(k *call, r route, bytes int) (executor, error) {
	overMemory := r.path == PathRounds
	// On peer memory all ranks must lay out their scratch in the same way, whether in place or not.
	spec := c.spec(k, r.method, bytes, overMemory || k.inPlace())
	key := planKey{
		method: spec.Method, collective: spec.Collective, root: spec.Root,
		pieces: spec.Pieces, inPlace: spec.InPlace, rankOrder: spec.RankOrder, barriers: r.barriers,
	}
	g := c.group
	if overMemory {
		s := g.stepped[key]
		if s == nil {
			var err error
			if s, err = newStepped(c.lane, c.planSet(key, spec), g.rank); err != nil {
				return nil, err
			}
			g.stepped[key] = s
		}
		return s, nil
	}
	p := g.plans[key]
	if p == nil {
		var err error
		if p, err = newPlan(spec, g.rank, g.members); err != nil {
			return nil, err
		}
		p.lane, p.barriers = c.lane, key.barriers
		g.plans[key] = p
	}
	return p, nil
}

// spec is the schedule by which a method carries out a call on bytes in the larger buffer.
func (c *Comm) spec(k *call, m methods.Method, bytes int, inPlace bool) methods.Spec {
	contract, rings := k.collective.Contract(), c.group.rings
	return methods.Spec{
		Method: m, Collective: k.collective, Size: c.Size(), Root: k.root,
		Ring: rings.First, Second: rings.Second,
		InPlace:   inPlace && contract.Output == schedule.Blocks,
		RankOrder: c.options.Reproducible && contract.Combines,
	}.Pipelined(int64(bytes), hostLatencyBytes)
}

// reduce executes a collective that combines. Where the schedule must work on something other than the caller's
// data (squares, or 16-bit floats that are to be kept in float32), that is staged in memory of the lane.
func (c *Comm) reduce(ctx context.Context, k *call, e executor, r run, n int) error {
	l, t := c.lane, kernel.Type(k.dtype)
	work := c.setting.worksIn(k.dtype)
	wide := work != t
	r.elemSize, r.segment = work.Size(), c.segment(work.Size())
	does := &operators[k.operator]
	r.fold = kernel.Binary(does.fold, work)
	r.many = kernel.Fold{Op: does.fold, Type: work}.Loop()
	if wide || does.square || c.options.StageFragments {
		in, out := l.stage(n*r.elemSize, chunks.PerRank(n, c.Size())*r.elemSize)
		r.input = in
		if wide {
			kernel.Widen(t)(in, k.src)
		} else {
			copy(in, k.src)
		}
		if does.square {
			kernel.Square(work)(in, in)
		}
		switch {
		case wide && k.collective.Contract().Output == schedule.Own:
			r.output = out
		case wide:
			r.output = in
		}
	}
	if err := c.lane.execute(ctx, e, r); err != nil {
		return err
	}
	have := len(k.dst)
	if k.collective.Contract().Output == schedule.Own {
		lo, hi := e.own()
		have = (hi - lo) * k.dtype.Size()
	}
	result := r.output[:have/k.dtype.Size()*r.elemSize]
	if does.divide {
		kernel.Divide(work)(result, result, c.Size())
	}
	if wide {
		kernel.Narrow(t)(k.dst[:have], result)
	}
	clear(k.dst[have:])
	return nil
}

// stage returns two pieces of the lane's staging memory.
func (l *lane) stage(a, b int) (first, second []byte) {
	aligned := roundUp(a, packAlign)
	l.staging = grow(l.staging, aligned+b)
	return l.staging[:a:a], l.staging[aligned : aligned+b]
}
