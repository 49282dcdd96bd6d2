package gcl_test

import (
	"context"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// sent makes one call on n replicas and returns the method and the number of rounds that its messages tell of.
func sent(t *testing.T, n int, body func(context.Context, *gcl.Comm) error) (method methods.Method, rounds int) {
	t.Helper()
	var mu sync.Mutex // guards the results
	replicas(t, n, body, gcl.WithEndpoints(tapped(t, n, func(call transport.Call, _ []transport.Transfer) {
		mu.Lock()
		defer mu.Unlock()
		method, rounds = methods.Method(call.Method), max(rounds, int(call.Round)+1)
	})))
	return method, rounds
}

// Auto takes broadcast for a little data, but never in a group with an explicit stride above 1.
func TestAutoChooses(t *testing.T) {
	for _, x := range []struct {
		name  string
		group commgroup.Group
		size  int
		want  methods.Method
	}{
		{"a little", commgroup.Group{}, 2, methods.Broadcast},
		{"a lot", commgroup.Group{}, 1 << 18, methods.Direct},
		{"a little in pairs", commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 1}, 2, methods.Broadcast},
		{"a little across", commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, 2, methods.Broadcast},
		{"a little with a stride", commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 2}, 2, methods.Direct},
	} {
		method, _ := sent(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, grouped(c, x.group), make([]float32, x.size), gcl.Add)
		})
		if method != x.want {
			t.Errorf("%s: %v, want %v", x.name, method, x.want)
		}
	}
}

// What goes down a chain is cut in the more pieces the more it is: a pipeline, not a relay.
func TestChainsArePipelines(t *testing.T) {
	const n = 4
	for _, x := range []struct {
		name string
		call func(ctx context.Context, c *gcl.Comm, data []float32) error
	}{
		{"broadcast", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.BroadcastInPlace(ctx, c, data, 0)
		}},
		{"reproducible", func(ctx context.Context, c *gcl.Comm, data []float32) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Method: methods.ClockwiseRing, Reproducible: true}), data, gcl.Add)
		}},
	} {
		rounds := map[int]int{}
		for _, size := range []int{1, 1 << 18} {
			_, rounds[size] = sent(t, n, func(ctx context.Context, c *gcl.Comm) error {
				return x.call(ctx, with(c, methods.ClockwiseRing), make([]float32, size))
			})
		}
		if rounds[1] < n-1 || rounds[1<<18] < rounds[1]+4 {
			t.Errorf("%s: %d rounds for one element, %d for a MiB", x.name, rounds[1], rounds[1<<18])
		}
	}
}
