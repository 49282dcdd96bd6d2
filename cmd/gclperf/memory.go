package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// demand is the memory that a measurement takes, in bytes. They are floats, which no size on the command line makes
// overflow.
type demand struct {
	largest float64 // bytes of a replica's larger buffer
	buffer  float64 // one of a replica's two, rounded up to huge pages
	buffers float64 // of all replicas
	methods float64 // scratch and staging memory of the methods, on all replicas
	rest    float64 // between the replicas, and of the process
}

func (d demand) total() float64 { return d.buffers + d.methods + d.rest }

const (
	hugePageBytes = 2 << 20 // gcl.Alloc rounds buffers up to it, and asks for as much again to begin with one

	// pairBytes is what a pair of replicas needs on the connection: see maxReplicas. Plans of schedules among hundreds
	// of replicas come on top, and are not counted.
	pairBytes = 250

	// socketBytes is what a replica keeps for each other one over sockets, on two lanes: 64 KiB of transport/tcp each,
	// and as much in the kernel.
	socketBytes = 4 * 64 << 10

	// processBytes is what gclperf takes beside it all, patterns of values and binary included: 17 MiB of resident
	// memory with -n 2 -sizes 8 (linux/amd64).
	processBytes = 32 << 20

	// pageTableShare of the memory is taken by the tables of its pages of 4 KiB.
	pageTableShare = 1.0 / 512
)

// addressBytes is the address space that Go has: 2^47 bytes on linux/amd64, and where ints are of 32 bits three
// quarters of 2^32, as buffers lie in one piece each (linux/386: a process with 3,237 MB has had no room for 1,078
// more).
var addressBytes = map[int]float64{32: 3 << 30, 64: 1 << 47}[bits.UintSize]

const byAddresses = "by the address space"

// checkMemory returns an error if what is to be measured needs more memory than there is. local is how many replicas
// are on this host: n, but in a job on several. known is false where nobody
// says how much is available: then the address space is what there is.
func (s *settings) checkMemory(ctx context.Context, local int, available float64, source string, known bool) error {
	if !known {
		available, source = addressBytes, byAddresses
	}
	d := s.demand(local)
	if d.total() <= available && available-d.total() < s.boundMethods(d) {
		for _, coll := range s.collectives {
			n, err := s.countMethods(ctx, coll, d.largest)
			if err != nil {
				return err
			}
			d.methods = max(d.methods, n*float64(local)/float64(s.n))
		}
	}
	if d.total() <= available {
		return nil
	}
	text := fmt.Sprintf("%d replicas with two buffers of %s each need %s of memory",
		local, formatBytes(d.buffer), formatBytes(d.total()))
	if d.methods > 0 {
		text += fmt.Sprintf(", of which the methods keep %s", formatBytes(d.methods))
	}
	return fmt.Errorf("%s, and %s are available (%s): want a smaller -max or -sizes, or a smaller -n",
		text, formatBytes(available), source)
}

// demand adds up what the largest size takes on this host, which has so many of the replicas, without the methods.
func (s *settings) demand(local int) demand {
	n, here := float64(s.n), float64(local)
	d := demand{largest: float64(s.sizes[len(s.sizes)-1])}
	if slices.ContainsFunc(s.collectives, collective.perReplica) {
		d.largest += n * float64(s.dtype.Size()) // rounded up for each replica
	}
	d.buffer = d.largest
	if d.largest >= hugePageBytes {
		d.buffer = math.Ceil(d.largest/hugePageBytes)*hugePageBytes + hugePageBytes
	}
	d.buffers = 2 * here * d.buffer
	d.rest = processBytes + pairBytes*n*n + pageTableShare*d.buffers
	if s.processes {
		d.rest = processBytes*here + socketBytes*here*n + pageTableShare*d.buffers
	}
	return d
}

// growth is by how much more than it needs gcl makes scratch memory; what it had before stays until it is collected.
const growth = 2 * (1 + 1.0/8)

// boundMethods is more than any method keeps: a slot for the data of each replica, and copies, in 32 bits for 16.
func (s *settings) boundMethods(d demand) float64 {
	n := float64(s.n)
	return growth * 2 * n * (n + 2) * d.largest
}

// countMethods is what the methods that are asked for, or those that the environment puts in their place, keep on all
// replicas for a collective on so many bytes.
func (s *settings) countMethods(ctx context.Context, coll collective, bytes float64) (float64, error) {
	options, err := s.allOptions(ctx)
	if err != nil {
		return 0, err
	}
	most := 0.0
	for _, o := range options {
		staged := s.staged(coll, o, bytes)
		tried := []methods.Method{o.Method}
		switch onePass := !s.processes && o.Implementation != gcl.Syncless &&
			(o.Method == methods.Auto || o.Method == methods.Direct); {
		case s.n == 1:
			continue
		case o.Method == methods.Auto && s.ruled(coll, o, bytes) != 0:
			tried = []methods.Method{s.ruled(coll, o, bytes)}
		case onePass:
			if !o.StageFragments {
				staged = 0
			}
			tried = nil
		case o.Method == methods.Native: // of which nobody knows what the engine keeps
			tried = nil
		case o.Method == methods.Auto:
			tried = autoTakes()
		case o.Method.Own(): // which need not do the collective
			if _, err := s.slots(coll, o.Method, o, bytes); errors.Is(err, errors.ErrUnsupported) {
				tried = autoTakes()
			}
		}
		most = max(most, staged)
		for _, m := range tried {
			slots, err := s.slots(coll, m, o, bytes)
			if err != nil {
				return 0, err
			}
			most = max(most, staged+slots)
		}
	}
	return growth * most, nil
}

// ruled is the method by which Auto goes by a rule for so many bytes, on links of one host. It is 0 where no rule fits,
// or where that is one pass over peer memory, or does not do the call.
func (s *settings) ruled(coll collective, o gcl.Options, bytes float64) methods.Method {
	t := methods.Tuning{Rules: o.Tuning}
	if o.Tuning == nil {
		t.Rules = methods.DefaultRules(s.transport)
	}
	q := methods.Case{Collective: schedule.Collective(coll), Ranks: s.n, Bytes: int64(bytes), RankOrder: o.Reproducible,
		Memory: !s.processes}
	switch o.Implementation {
	case gcl.Syncless:
		q.Implementation = methods.Syncless
	case gcl.Syncful, gcl.Hybrid:
		q.Implementation = methods.Syncful
	}
	r := t.Rule(&q)
	if r == nil || r.Method == methods.Direct && r.Implementation != methods.Syncless && q.Memory &&
		q.Implementation != methods.Syncless {
		return 0
	}
	if _, err := s.slots(coll, r.Method, o, bytes); err != nil {
		return 0 // as without rules
	}
	return r.Method
}

// autoTakes are the methods that Auto may take for many bytes where no rule fits: broadcast is for few.
func autoTakes() []methods.Method {
	return slices.DeleteFunc(methods.All(), func(m methods.Method) bool { return m == methods.SendToAll || m.Own() })
}

// allOptions are those of all measurements, after what the environment overrides.
func (s *settings) allOptions(ctx context.Context) (out []gcl.Options, err error) {
	err = gcl.Run(ctx, 1, func(_ context.Context, c *gcl.Comm) error {
		for _, m := range s.methods {
			for _, i := range s.implementations {
				measured, err := c.With(gcl.Options{Method: m, Implementation: i, Reproducible: s.reproducible})
				if err != nil {
					return err
				}
				out = append(out, measured.Options())
			}
		}
		return nil
	})
	if err != nil && ctx.Err() == nil {
		err = innermost(err)
	}
	return out, err
}

// wide reports whether a collective works on 16-bit floats in 32 bits.
func (s *settings) wide(coll collective, o gcl.Options) bool {
	return coll.reduces() && o.Reproducible && (s.dtype == tensor.F16 || s.dtype == tensor.BF16)
}

// staged is what all replicas keep of copies of their data by messages: of the input and, at most as long, the result.
func (s *settings) staged(coll collective, o gcl.Options, bytes float64) float64 {
	switch copies := 2 * float64(s.n) * bytes; {
	case s.wide(coll, o):
		return 2 * copies
	case coll.reduces() && s.op.Squares() || o.StageFragments:
		return copies
	}
	return 0
}

// slots is what the scratch slots of a method's schedule hold, on all replicas.
func (s *settings) slots(coll collective, m methods.Method, o gcl.Options, bytes float64) (float64, error) {
	if s.wide(coll, o) {
		bytes *= 2
	}
	spec := methods.Spec{
		Method: m, Collective: schedule.Collective(coll), Size: s.n, RankOrder: o.Reproducible && coll.reduces(),
		Ring: order(s.n), Second: order(s.n),
	}.Pipelined(int64(bytes), latencyBytes)
	chunks := 0
	for rank := range s.n {
		p, err := spec.Program(rank)
		if err != nil {
			return 0, err
		}
		chunks += slotChunks(p, spec.Chunks())
	}
	return float64(chunks) * bytes / float64(max(spec.Chunks(), 1)), nil
}

// latencyBytes is what gcl takes a link to carry in the latency of a round, when it cuts a pipeline into pieces.
const latencyBytes = 8 << 10

// order is the ranks as they are.
func order(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

// slotChunks is how many chunks the slots of a program hold together, of a schedule of so many chunks.
func slotChunks(p schedule.Program, chunks int) int {
	var slots []int
	note := func(sp schedule.Span) {
		if sp.Buf != schedule.Scratch {
			return
		}
		for sp.Slot >= len(slots) {
			slots = append(slots, 0)
		}
		for _, run := range sp.AppendRuns(nil, chunks) {
			slots[sp.Slot] = max(slots[sp.Slot], run.First+run.Count-run.Base)
		}
	}
	for _, round := range p {
		for _, st := range round.Moves {
			note(st.Dst)
		}
		for _, st := range round.Then {
			note(st.Dst)
		}
	}
	sum := 0
	for _, n := range slots {
		sum += n
	}
	return sum
}

// formatBytes is a number of bytes to three digits, in the largest unit of which there is one.
func formatBytes(n float64) string {
	for _, u := range []struct {
		bytes float64
		name  string
	}{{1 << 60, "EiB"}, {1 << 50, "PiB"}, {1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= u.bytes {
			return fmt.Sprintf("%.3g %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%.3g B", n)
}
