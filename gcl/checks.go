package gcl

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/kernel"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// NotFiniteError is what Options.CheckFinite has found on one replica: the first element, in order, that is NaN or
// infinite. Another replica of the same process has it in the chain of its error too; one of another process has its
// text.
type NotFiniteError struct {
	Replica int
	Result  bool // it is in the result; else in what the replica gave
	Tensor  int  // which of several tensors, operands, or IPUs of a mapping, from 0 on; of one tensor 0
	Element int  // in that tensor, from 0 on
	DType   tensor.DType
	Value   float64

	what string // the name of one of several, or ""
}

func (e *NotFiniteError) words() string {
	of, where := "the input", ""
	if e.Result {
		of = "the result"
	}
	if e.what != "" {
		where = fmt.Sprintf("%s %d: ", e.what, e.Tensor)
	}
	return fmt.Sprintf("%selement %d of %s, %v, is %v, not a finite number", where, e.Element, of, e.DType, e.Value)
}
func (e *NotFiniteError) Error() string { return "gcl: " + e.words() }

// UnequalError is what Options.CheckEqual has found: members of a group hold different results of a call that gives all
// of them the same. All members have it as the error of the call, each made by itself of the same digests.
//
// The fault is of a machine of those named, as a rule: a replica that passes on what it has got wrong can make most
// members wrong. Digests shows who is alike.
type UnequalError struct {
	Replicas []int    // those that differ from most members, ascending by rank; all, where no result is that of most
	Members  []int    // the replicas of the group by rank
	Digests  []uint64 // of the members' results
}

func (e *UnequalError) words() string {
	var each []string
	for rank, replica := range e.Members {
		if slices.Contains(e.Replicas, replica) {
			each = append(each, fmt.Sprintf("%016x on replica %d", e.Digests[rank], replica))
		}
	}
	digests := strings.Join(each, ", ")
	others := len(e.Members) - len(e.Replicas)
	switch {
	case others == 0:
		return fmt.Sprintf("no result is that of most replicas (digests %s): the machine of one computes or moves data "+
			"wrongly", digests)
	case len(e.Replicas) == 1:
		return fmt.Sprintf("the result of replica %d differs from that of the %d others (digests %s, %016x on the "+
			"others): its machine computes or moves data wrongly", e.Replicas[0], others, digests, e.majority())
	}
	return fmt.Sprintf("the results of replicas %s differ from that of the %d others (digests %s, %016x on the others): "+
		"their machines compute or move data wrongly", replicasText(e.Replicas), others, digests, e.majority())
}
func (e *UnequalError) Error() string { return "gcl: " + e.words() }

// majority is the digest of a member that is not named.
func (e *UnequalError) majority() uint64 {
	rank := slices.IndexFunc(e.Members, func(replica int) bool { return !slices.Contains(e.Replicas, replica) })
	return e.Digests[rank]
}

// unequal makes the error of members with digests by rank, or nil if they are equal.
func unequal(members []int, digests []byte) error {
	at := func(rank int) uint64 { return binary.NativeEndian.Uint64(digests[8*rank:]) }
	equal := true
	for rank := range members {
		equal = equal && at(rank) == at(0)
	}
	if equal {
		return nil
	}
	e := &UnequalError{Members: slices.Clone(members)}
	count := map[uint64]int{}
	for rank := range members {
		e.Digests = append(e.Digests, at(rank))
		count[at(rank)]++
	}
	for rank, replica := range members {
		if 2*count[at(rank)] <= len(members) {
			e.Replicas = append(e.Replicas, replica)
		}
	}
	return e
}

// performChecked carries out a job that has been checked, with Options.CheckFinite or CheckEqual.
func (c *Comm) performChecked(ctx context.Context, k *call, j *job.Job, f *transport.Call) error {
	err := c.performFinite(ctx, j, f)
	if err != nil || c.compares == nil || !j.Alike() {
		return err
	}
	made := c.group.made
	if made.alike++; made.alike%uint64(c.options.CheckEqual) != 0 {
		return nil
	}
	return c.compare(ctx, j, f)
}

// performFinite carries out a job that has been checked, with Options.CheckFinite if that is set. What is not finite is
// a *NotFiniteError, of which no other replica knows.
func (c *Comm) performFinite(ctx context.Context, j *job.Job, f *transport.Call) error {
	look := c.options.CheckFinite && j.Combines()
	if look {
		if err := findNotFinite(j, j.Ins, false); err != nil {
			return err
		}
	}
	if err := c.caller.Perform(ctx, j, f); err != nil || !look {
		return err
	}
	return findNotFinite(j, j.Outs, true)
}

// findNotFinite looks at one side of all operands of a job.
func findNotFinite(j *job.Job, all [][]byte, result bool) error {
	for t, data := range all {
		dtype := j.DTypes[t]
		if i := kernel.NotFinite(kernel.Type(dtype), data); i >= 0 {
			return &NotFiniteError{Result: result, Tensor: t, Element: i, DType: dtype,
				Value: floatOf(dtype, data[i*dtype.Size():])}
		}
	}
	return nil
}

// floatOf is the first float in data.
func floatOf(dtype tensor.DType, data []byte) float64 {
	e := binary.NativeEndian
	switch dtype {
	case tensor.F16:
		return float64(tensor.Float16(e.Uint16(data)).Float32())
	case tensor.BF16:
		return float64(tensor.BFloat16(e.Uint16(data)).Float32())
	case tensor.F32:
		return float64(math.Float32frombits(e.Uint32(data)))
	}
	return math.Float64frombits(e.Uint64(data))
}

// comparison is what a connection compares results with. It is used by whoever has the connection's turn.
type comparison struct {
	job job.Job
	own [8]byte
	all []byte // digests by rank
}

// compare compares digests of the results of a job with the other members, in a call of its own in the group. If that
// fails, it is the call that f says.
func (c *Comm) compare(ctx context.Context, j *job.Job, f *transport.Call) error {
	l := c.conn
	x := &l.comparison
	digest := uint64(0)
	for _, out := range j.Outs {
		digest = wire.Digest(digest, out)
	}
	binary.NativeEndian.PutUint64(x.own[:], digest)
	x.all = slices.Grow(x.all[:0], 8*c.Size())[:8*c.Size()]

	k := call{ask: newAsk(schedule.AllGather, 0, 0), dtype: tensor.U64, dst: x.all, src: x.own[:], dstLen: c.Size(),
		srcLen: 1}
	var own transport.Call
	c.describe(&k, &own)
	own.Seq = c.number(&k)
	listener := l.Listener
	l.Listener = nil
	l.Flight.End(false) // of the call that is compared
	l.Flight.Begin(c.label, &own, ticks.Now())
	x.job.One(&k.Ask, k.dtype, k.dst, k.src, &k.parts, nil, c.Size())
	err := c.compares.Perform(ctx, &x.job, &own)
	l.Listener = listener
	if err != nil {
		*f = own
		return err
	}
	return unequal(c.group.Members, x.all)
}
