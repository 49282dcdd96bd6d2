package gcl

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"gogcl.dev/gcl/internal/carry/job"
	"gogcl.dev/gcl/internal/wire"
	"gogcl.dev/internal/ticks"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
)

// UnequalError is what Options.CheckEqual has found: members of a group hold different results of a call that gives all
// of them the same. All members have it as the error of the call, each made by itself of the same digests: but a digest
// that changes on its way to a member is an error of that one alone.
//
// Those named differ from most members. A replica that gets or computes something wrong and passes it on, as in a ring,
// can make most members wrong; then the others are named. Digests shows who is alike.
type UnequalError struct {
	Replicas []int    // those that differ from most members, ascending by rank; all, where no result is that of most
	Members  []int    // the replicas of the group by rank
	Digests  []uint64 // of the members' results
}

func (e *UnequalError) words() string {
	var named []string
	others, theirs := 0, uint64(0)
	for rank, digest := range e.Digests[:min(len(e.Digests), len(e.Members))] {
		if replica := e.Members[rank]; slices.Contains(e.Replicas, replica) {
			named = append(named, fmt.Sprintf("%016x on replica %d", digest, replica))
		} else {
			others, theirs = others+1, digest
		}
	}
	digests := strings.Join(named, ", ")
	if others == 0 {
		return fmt.Sprintf("no result is that of most replicas (digests %s): a machine computes or moves data wrongly", digests)
	}
	whose, guilty := "the results of replicas %s differ", "their machines compute or move"
	if len(e.Replicas) == 1 {
		whose, guilty = "the result of replica %s differs", "its machine computes or moves"
	}
	return fmt.Sprintf(whose+" from that of the %d others (digests %s, %016x on the others): most likely %s data wrongly",
		replicasText(e.Replicas), others, digests, theirs, guilty)
}
func (e *UnequalError) Error() string { return "gcl: " + e.words() }

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
func (c *Comm) performChecked(ctx context.Context, j *job.Job, f *transport.Call) error {
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
	l.Flight.End(false, 0) // of the call that is compared
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
