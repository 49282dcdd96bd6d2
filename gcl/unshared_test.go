package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// unshared is an endpoint that lays no buffers open, or reaches the memory of certain members only.
type unshared struct {
	near
	open    bool
	reaches func(members []int) bool // nil: all
	refused *atomic.Int64
	shared  *atomic.Int64
}

func (u unshared) Reaches(members []int) bool { return u.reaches == nil || u.reaches(members) }

func (u unshared) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	if !u.open {
		u.refused.Add(1)
		return transport.ErrNotShared
	}
	u.shared.Add(1)
	return u.near.Share(ctx, call, members, mine, rounds, w)
}

// unsharedEndpoints wraps those of n replicas.
func unsharedEndpoints(t *testing.T, n int, u unshared) []transport.Endpoint {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range endpoints {
		u.near = e.(near)
		endpoints[i] = u
	}
	return endpoints
}

// sums calls a reduction of a size on one tensor and on several, and checks them.
func sums(ctx context.Context, c *gcl.Comm, size int) error {
	one, two, wide := make([]int32, size), make([]int32, size), make([]int64, size)
	for i := range one {
		one[i], two[i], wide[i] = int32(i+c.Rank()), int32(i*c.Rank()), int64(i-c.Rank())
	}
	alone := slices.Clone(one)
	b := c.Batch(schedule.AllReduce, gcl.Add, 0)
	gcl.Append(b, one, one)
	gcl.Append(b, two, two)
	gcl.Append(b, wide, wide)
	if err := errors.Join(gcl.AllReduceInPlace(ctx, c, alone, gcl.Add), b.Run(ctx), c.Barrier(ctx)); err != nil {
		return err
	}
	n := c.Size()
	ranks := n * (n - 1) / 2
	for i := range one {
		if want := int32(n*i + ranks); alone[i] != want || one[i] != want || two[i] != int32(i*ranks) ||
			wide[i] != int64(n*i-ranks) {
			return fmt.Errorf("element %d: %d, %d, %d, %d, want %d twice, %d, %d",
				i, alone[i], one[i], two[i], wide[i], want, i*ranks, n*i-ranks)
		}
	}
	return nil
}

// TestNotShared: where a member's buffers cannot be laid open, calls go by messages, under the numbers that they had,
// whatever the method; the trace says so.
func TestNotShared(t *testing.T) {
	const n, size = 3, 5000
	for _, m := range append(methods.All(), methods.Auto) {
		t.Run("method="+m.String(), func(t *testing.T) {
			var refused, shared, byMessages atomic.Int64
			endpoints := unsharedEndpoints(t, n, unshared{refused: &refused, shared: &shared})
			trace := &gcl.Trace{CollectiveEnd: func(e gcl.TraceCall, err error) {
				if e.Path == gcl.PathMessages && err == nil {
					byMessages.Add(1)
				}
			}}
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				return errors.Join(sums(ctx, c, size), sums(ctx, c, size))
			}, gcl.WithEndpoints(endpoints),
				gcl.WithOptions(gcl.Options{Method: m, Implementation: gcl.Syncful, Trace: trace}))
			if want := int64(n * 2 * 2); refused.Load() != want || byMessages.Load() != want {
				t.Errorf("%d calls refused to be shared and %d went by messages, want %d",
					refused.Load(), byMessages.Load(), want)
			}
		})
	}
}

// TestReaches: peer memory is a group's affair. A group whose members the transport does not bring together goes by
// messages, and Explain knows.
func TestReaches(t *testing.T) {
	const n = 4
	var refused, shared atomic.Int64
	inPairs := func(members []int) bool {
		return !slices.ContainsFunc(members, func(m int) bool { return m/2 != members[0]/2 })
	}
	endpoints := unsharedEndpoints(t, n, unshared{open: true, reaches: inPairs, refused: &refused, shared: &shared})
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		if err := sums(ctx, c, 5000); err != nil {
			return err
		}
		if got := shared.Load(); got != 0 {
			return fmt.Errorf("%d Shares of a group that does not reach its members' memory", got)
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		pair, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		if err != nil {
			return err
		}
		return sums(ctx, pair, 5000)
	}, gcl.WithEndpoints(endpoints))
	if got := shared.Load(); got != 2*n {
		t.Errorf("%d Shares in pairs, want %d", got, 2*n)
	}
}
