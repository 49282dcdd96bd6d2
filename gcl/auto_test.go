package gcl_test

import (
	"context"
	"sync"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
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
		{"a little", commgroup.Group{}, 2, methods.SendToAll},
		{"a lot", commgroup.Group{}, 1 << 18, methods.Direct},
		{"a little in pairs", commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 1}, 2, methods.SendToAll},
		{"a little across", commgroup.Group{Type: commgroup.Orthogonal, Size: 2}, 2, methods.SendToAll},
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

// Auto goes by the same numbers when replicas are to step together but share no memory.
func TestAutoChoosesForBarriers(t *testing.T) {
	for size, want := range map[int]methods.Method{2: methods.SendToAll, 1 << 18: methods.Direct} {
		method, _ := sent(t, 4, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Implementation: gcl.Syncful}),
				make([]float32, size), gcl.Add)
		})
		if method != want {
			t.Errorf("%d elements: %v, want %v", size, method, want)
		}
	}
}

// memoryTap is an endpoint with peer memory that tells by which of its methods calls are carried out.
type memoryTap struct {
	near
	look func(by string, call transport.Call)
}

func (e *memoryTap) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if len(batch) > 0 {
		e.look("Exchange", call)
	}
	return e.near.Exchange(ctx, call, batch)
}

func (e *memoryTap) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	e.look("Share", call)
	return e.near.Share(ctx, call, members, mine, rounds, w)
}

func (e *memoryTap) Gather(ctx context.Context, call transport.Call, members []int, mine []byte, size int,
	c transport.Combiner) ([][]byte, []byte, error) {
	e.look("Gather", call)
	return e.near.Gather(ctx, call, members, mine, size, c)
}

// Where replicas share memory, Auto is direct, by one barrier for little data and by two for more; other methods and
// Syncless send messages.
func TestAutoOnPeerMemory(t *testing.T) {
	const n = 4
	auto, much := gcl.Options{}, 1<<18
	for _, x := range []struct {
		options gcl.Options
		size    int
		want    string
	}{
		{auto, 2, "Gather direct"},
		{auto, 1024, "Gather direct"}, // 4 KiB
		{auto, 1025, "Share direct"},
		{auto, much, "Share direct"},
		{gcl.Options{Reproducible: true}, 2, "Gather direct"},
		{gcl.Options{Implementation: gcl.Syncful}, 2, "Gather direct"},
		{gcl.Options{Implementation: gcl.Syncful}, much, "Share direct"},
		{gcl.Options{Method: methods.Direct}, much, "Share direct"},
		{gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, 2, "Share clockwise_ring"},
		{gcl.Options{Method: methods.ClockwiseRing}, 2, "Exchange clockwise_ring"},
		{gcl.Options{Implementation: gcl.Syncless}, 2, "Exchange broadcast"},
		{gcl.Options{Implementation: gcl.Syncless}, much, "Exchange direct"},
		{gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, much, "Exchange direct"},
	} {
		endpoints, err := inproc.New(n)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex // guards seen
		seen := map[string]bool{}
		for i, e := range endpoints {
			endpoints[i] = &memoryTap{e.(near), func(by string, call transport.Call) {
				mu.Lock()
				defer mu.Unlock()
				seen[by+" "+methods.Method(call.Method).String()] = true
			}}
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, x.size), gcl.Add)
		}, gcl.WithEndpoints(endpoints), gcl.WithOptions(x.options))
		if len(seen) != 1 || !seen[x.want] {
			t.Errorf("%+v, %d elements: %v, want %s", x.options, x.size, seen, x.want)
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
			return gcl.AllReduceInPlace(ctx,
				withOptions(c, gcl.Options{Method: methods.ClockwiseRing, Reproducible: true}), data, gcl.Add)
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
