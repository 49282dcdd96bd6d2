package gcl_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// numbered is an endpoint without peer memory that keeps the calls it is given.
type numbered struct {
	transport.Endpoint
	calls *[]transport.Call
}

func (e numbered) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	*e.calls = append(*e.calls, call)
	return e.Endpoint.Exchange(ctx, call, batch)
}

// TestNumbersAscend: what transport.Call says of Seq holds where members of a group are in calls of their own, in
// phases of one whole group and in phases of another. A transport that is told a smaller number after a greater
// one takes the call for one gone by, and the program for one that disagrees.
func TestNumbersAscend(t *testing.T) {
	const n = 6
	machine, err := topology.New(topology.Config{Replicas: []int{2, 2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	// Domain {0, 1} is a group of its own, and has phases of both of these.
	var wholes []commgroup.Group
	for _, lists := range [][][]int{{{0, 1, 2, 3}, {4, 5}}, {{0, 1, 4, 5}, {2, 3}}} {
		g, err := commgroup.Lists(lists)
		if err != nil {
			t.Fatal(err)
		}
		wholes = append(wholes, g)
	}
	wholes = append(wholes, commgroup.Group{})
	pairs := commgroup.Group{Type: commgroup.Consecutive, Size: 2}
	eps, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	made := make([][]transport.Call, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for r, e := range eps {
		c, err := gcl.New(numbered{e, &made[r]}, gcl.WithTopology(machine))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			defer func() {
				if err := c.Close(); errs[r] == nil {
					errs[r] = err
				}
			}()
			in := grouped(c, pairs)
			var hybrids []*gcl.Comm
			for _, g := range wholes {
				hybrids = append(hybrids, withOptions(grouped(c, g), gcl.Options{Implementation: gcl.Hybrid}))
			}
			// The groups' counts go apart: 1, 2, 3 of the wholes by turns, and one of a pair after each.
			for turn := range 6 {
				for i, h := range hybrids {
					if turn%3 > i {
						continue
					}
					for _, c := range []*gcl.Comm{h, in} {
						if _, errs[r] = gcl.AllReduce(t.Context(), c, []float32{1}, gcl.Add); errs[r] != nil {
							return
						}
						if errs[r] = gcl.BroadcastInPlace(t.Context(), c, []int8{1}, 1); errs[r] != nil {
							return
						}
					}
				}
			}
		})
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			t.Fatalf("replica %d: %v", r, err)
		}
		last := map[uint64]transport.Call{}
		for _, c := range made[r] {
			if before, ok := last[c.Group]; ok {
				if c.Seq < before.Seq {
					t.Fatalf("replica %d: group %#x: call %#x after call %#x", r, c.Group, c.Seq, before.Seq)
				}
				if c.Seq == before.Seq && !c.Same(before) {
					t.Fatalf("replica %d: two calls have one number: %+v and %+v", r, before, c)
				}
			}
			last[c.Group] = c
		}
		if !slices.ContainsFunc(made[r], func(c transport.Call) bool { return c.Seq>>63 == 1 }) {
			t.Errorf("replica %d had no phases", r)
		}
	}
}
