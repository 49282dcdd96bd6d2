package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/transport"
)

// surviveOrder is what a process of mode survive is told.
type surviveOrder struct {
	Size      int
	Transport string
	Silence   time.Duration
	Steps     int
	Comers    int  // that come in place of those that are killed
	Newcomer  bool // this process does
}

// survived is what a replica has done.
type survived struct {
	Steps      int
	State      uint64 // of these steps
	Members    []int  // ranks at the beginning of those that are left
	LeftBehind bool   // its error is transport.ErrLeftBehind
	Grown      int64  // when it has done the first step with the last that has come, in nanoseconds of the clock

	came  int    // how many have come
	next  uint64 // state after the step that is being made
	made  bool   // it has that
	alone bool   // others are gone, and there has been no step since
	grows bool   // one has come, and there has been no step since
}

// surviveReplica is a process of mode survive.
func surviveReplica(o order) report {
	s := o.Survive
	cfg := gcl.JoinConfig{Rank: o.Rank, Size: s.Size, Job: fmt.Sprint("survive ", o.Seed), Rendezvous: o.Where,
		Transport: s.Transport, Secret: []byte("torture survives this"), Timeout: survivePatience, Silence: s.Silence}
	cfg.Newcomer = s.Newcomer
	elastic := gcl.Elastic{Min: 1}
	if s.Comers > 0 {
		elastic.Max = s.Size
	}
	var got survived
	err := gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
		return got.work(ctx, c, s)
	}, gcl.WithElastic(elastic))
	r := newReport(o.Rank, err, nil, nil)
	got.LeftBehind = errors.Is(err, transport.ErrLeftBehind)
	r.Survived = &got
	return r
}

// work commits steps until there are enough, and all that have died have been replaced if others come in their places.
// It is called again when the members have changed.
func (g *survived) work(ctx context.Context, c *gcl.Comm, o *surviveOrder) error {
	if change, changed := c.Change(); !changed {
		for r := range o.Size {
			g.Members = append(g.Members, r)
		}
	} else if err := g.take(ctx, c, change, o.Size); err != nil {
		return err
	}
	sums := make([]uint64, 1000)
	for g.Steps < o.Steps || g.came < o.Comers {
		if g.Steps%10 == 0 {
			fmt.Println(atLine, g.Steps)
		}
		g.made = false
		done, err := c.Commit(ctx, func() (err error) {
			g.next, err = g.step(ctx, c, sums)
			g.made = err == nil
			return err
		})
		if done {
			g.Steps, g.State, g.made = g.Steps+1, g.next, false
			if g.alone {
				fmt.Println(goodLine, time.Now().UnixNano())
			}
			if g.grows {
				g.Grown = time.Now().UnixNano()
			}
			g.alone, g.grows = false, false
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take goes on from the steps that are done, with other members. Of a job of size at first, those that come have the
// ranks from size on.
func (g *survived) take(ctx context.Context, c *gcl.Comm, change gcl.Change, size int) error {
	blank := slices.Contains(change.Came, c.Replica())
	if !blank {
		switch change.Committed {
		case uint64(g.Steps):
		case uint64(g.Steps) + 1:
			if !g.made {
				return &wrongError{fmt.Errorf("step %d counts as done, and this replica has failed in it", g.Steps)}
			}
			g.Steps, g.State = g.Steps+1, g.next
		default:
			return &wrongError{fmt.Errorf("%d steps count as done, and this replica has done %d", change.Committed,
				g.Steps)}
		}
		members := make([]int, 0, c.Size())
		for _, before := range change.Replicas {
			members = append(members, g.Members[before])
		}
		for len(members) < c.Size() {
			members, g.came, g.grows = append(members, size+g.came), g.came+1, true
		}
		g.Members, g.alone, g.made = members, g.alone || len(change.Left) > 0, false
	}
	if len(change.Came) == 0 {
		return nil
	}
	all := make([]uint64, 3+c.Size())
	if !blank {
		all[0], all[1], all[2] = uint64(g.Steps), g.State, uint64(g.came)
		for i, member := range g.Members {
			all[3+i] = uint64(member)
		}
	}
	own := slices.Clone(all)
	if err := gcl.BroadcastInPlace(ctx, c, all, change.Givers[0]); err != nil {
		return err
	}
	if !blank && !slices.Equal(own, all) {
		return &wrongError{fmt.Errorf("replica %d gives %v, and this one has %v", change.Givers[0], all, own)}
	}
	g.Steps, g.State, g.came, g.grows = int(all[0]), all[1], int(all[2]), true
	g.Members = g.Members[:0]
	for _, member := range all[3:] {
		g.Members = append(g.Members, int(member))
	}
	return nil
}

// step returns the state after the next step: a hash over what all members give to it.
func (g *survived) step(ctx context.Context, c *gcl.Comm, sums []uint64) (uint64, error) {
	value := func(member, i int) uint64 {
		return uint64(member+1) * uint64(g.Steps+3) * uint64(i+7) * 0x9e3779b97f4a7c15
	}
	for i := range sums {
		sums[i] = value(g.Members[c.Replica()], i)
	}
	if err := gcl.AllReduceInPlace(ctx, c, sums, gcl.Add); err != nil {
		return 0, err
	}
	state := g.State
	for i, sum := range sums {
		var want uint64
		for _, member := range g.Members {
			want += value(member, i)
		}
		if sum != want {
			return 0, &wrongError{fmt.Errorf("step %d, element %d: %#x, want %#x of %v", g.Steps, i, sum, want,
				g.Members)}
		}
		state = state*31 + sum
	}
	return state, nil
}
