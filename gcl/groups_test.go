package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// partition is one way to divide n replicas, as the formulas of SEMANTICS.md have it.
type partition struct {
	group        commgroup.Group
	size, stride int
}

// members are the replicas in the group of r: member i of group g is floor(g/s)*s*k + g mod s + i*s.
func (p partition) members(r int) []int {
	k, s := p.size, p.stride
	g := r%s + s*(r/(s*k))
	out := make([]int, k)
	for i := range out {
		out[i] = g/s*s*k + g%s + i*s
	}
	return out
}

// partitions lists all ways to divide n replicas into equal groups, in all ways to say them.
func partitions(n int) []partition {
	out := []partition{
		{commgroup.Group{}, n, 1},
		{commgroup.Group{Type: commgroup.All, Size: n}, n, 1},
		{commgroup.Group{Type: commgroup.Consecutive}, n, 1},
	}
	for k := 1; k <= n; k++ {
		if n%k == 0 {
			out = append(out, partition{commgroup.Group{Type: commgroup.Orthogonal, Size: k}, k, n / k})
		}
		for s := 1; s*k <= n; s++ {
			if n%(s*k) == 0 {
				out = append(out, partition{commgroup.Group{Type: commgroup.Consecutive, Size: k, Stride: s}, k, s})
			}
		}
	}
	return out
}

// TestGroups tries all collectives, by all methods, in all groups. The data tells replicas apart, not only ranks.
func TestGroups(t *testing.T) {
	for _, n := range groupedReplicas {
		for _, p := range partitions(n) {
			t.Run(fmt.Sprintf("n=%d/group=%v", n, p.group), func(t *testing.T) {
				size := 3*p.size + 1
				data := inputs[int64](gcl.Local, n, size)
				replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
					members := p.members(c.Replica())
					own := make([][]int64, p.size)
					for rank, r := range members {
						own[rank] = data[r]
					}
					sum, greatest, placed := newReduceCase(gcl.Add, own), newReduceCase(gcl.Max, own), newMoveCase(own)
					c = grouped(c, p.group)
					if got := c.Members(); !slices.Equal(got, members) || c.Size() != len(members) ||
						members[c.Rank()] != c.Replica() || c.Replicas() != n {
						return fmt.Errorf("replica %d is rank %d of %d in %v among %d, want one of %v among %d",
							c.Replica(), c.Rank(), c.Size(), got, c.Replicas(), members, n)
					}
					for _, m := range testMethods {
						c := with(c, m)
						if err := errors.Join(
							sum.try(ctx, c),
							greatest.try(ctx, c),
							placed.try(ctx, c),
							c.Barrier(ctx),
						); err != nil {
							return fmt.Errorf("method=%v: %w", m, err)
						}
					}
					return nil
				})
			})
		}
	}
}

// Two groups in one program, rows and columns of a 3 by 4 grid, in turn and with different lengths: none takes the
// other's messages.
func TestGroupsInterleave(t *testing.T) {
	for _, m := range testMethods {
		replicas(t, 12, func(ctx context.Context, c *gcl.Comm) error {
			c = with(c, m)
			row := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 4})
			column := grouped(c, commgroup.Group{Type: commgroup.Orthogonal, Size: 3})
			x, y := c.Replica()%4, c.Replica()/4
			for step := range 20 {
				v := []int32{int32(c.Replica()), int32(step)}
				for range step % 3 { // rows do more than columns, and some rows more than others
					if err := gcl.AllReduceInPlace(ctx, row, v[:1], gcl.Max); err != nil {
						return err
					}
				}
				if y == step%3 {
					if err := gcl.BroadcastInPlace(ctx, row, v, step%4); err != nil {
						return err
					}
				}
				v = []int32{int32(c.Replica()), int32(step)}
				across, err1 := gcl.AllGather(ctx, column, v)
				along, err2 := gcl.AllReduce(ctx, row, v, gcl.Add)
				all, err3 := gcl.AllReduce(ctx, c, v[:1], gcl.Add)
				s := int32(step)
				if err := errors.Join(err1, err2, err3,
					check("column", across, []int32{int32(x), s, int32(x + 4), s, int32(x + 8), s}),
					check("row", along, []int32{int32(16*y + 6), 4 * s}),
					check("all", all, []int32{66}),
				); err != nil {
					return fmt.Errorf("method=%v step %d: %w", m, step, err)
				}
			}
			return nil
		})
	}
}

// Comms of one group made in different ways count their calls together. (Auto may choose differently for a group with
// an explicit stride.)
func TestGroupMadeTwice(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		c = with(c, methods.Direct)
		a := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2})
		b := grouped(grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}),
			commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
		for i := range 10 {
			by := a
			if c.Replica() >= 2 && i%3 > 0 { // {0 2} and {1 3}: one member of each changes between the two
				by = b
			}
			sum, err := gcl.AllReduce(ctx, by, []int32{int32(i)}, gcl.Add)
			if err := errors.Join(err, check("sum", sum, []int32{int32(2 * i)})); err != nil {
				return err
			}
		}
		return nil
	})
}

// Members gives a slice away, and Comms do not change.
func TestCommIsImmutable(t *testing.T) {
	replicas(t, 4, func(ctx context.Context, c *gcl.Comm) error {
		c.Members()[0] = 99
		pair := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		other := withOptions(c, gcl.Options{Reproducible: true})
		switch {
		case !slices.Equal(c.Members(), []int{0, 1, 2, 3}):
			return fmt.Errorf("members %v", c.Members())
		case c.Size() != 4 || pair.Size() != 2 || other.Size() != 4:
			return fmt.Errorf("sizes %d, %d, %d", c.Size(), pair.Size(), other.Size())
		case c.Options() != gcl.Options{} || pair.Options() != gcl.Options{} || !other.Options().Reproducible:
			return errors.New("options")
		}
		return nil
	})
}

func TestGroupErrors(t *testing.T) {
	replicas(t, 8, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			group commgroup.Group
			names []string
		}{
			{commgroup.Group{Type: commgroup.Consecutive, Size: 3}, []string{"8", "3"}},
			{commgroup.Group{Type: commgroup.Consecutive, Size: 4, Stride: 4}, []string{"8", "size 4", "stride 4"}},
			{commgroup.Group{Type: commgroup.Consecutive, Size: 1, Stride: 3}, []string{"8", "size 1", "stride 3"}},
			{commgroup.Group{Type: commgroup.Consecutive, Size: -2}, []string{"-2"}},
			{commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: -1}, []string{"-1"}},
			{commgroup.Group{Type: commgroup.All, Size: 4}, []string{"8", "4"}},
			{commgroup.Group{Type: commgroup.Orthogonal, Size: 16}, []string{"8", "16"}},
			{commgroup.Group{Type: commgroup.Orthogonal, Size: 2, Stride: 2}, []string{"8", "2"}},
			{commgroup.Group{Type: 7}, []string{"7"}},
		} {
			out, err := c.Group(x.group)
			if err == nil || out != nil {
				return fmt.Errorf("%v of 8: %v, no error", x.group, out)
			}
			for _, name := range x.names {
				if !strings.Contains(err.Error(), name) {
					return fmt.Errorf("%v of 8: %q does not name %q", x.group, err, name)
				}
			}
		}
		return c.Barrier(ctx)
	})
}
