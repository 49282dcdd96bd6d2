package gcl_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// onOneHost is an endpoint that says of all pairs of replicas that they have the same link.
type onOneHost struct {
	transport.Endpoint
	link transport.Link
	look func(transport.Call)
}

func (e *onOneHost) Host(replica int) int {
	if replica < 0 || replica >= e.Size() {
		return -1
	}
	return 0
}

func (e *onOneHost) Link(a, b int) transport.Link {
	if a == b || e.Host(a) < 0 || e.Host(b) < 0 {
		return transport.Link{}
	}
	return e.link
}

func (e *onOneHost) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	e.look(call)
	return e.Endpoint.Exchange(ctx, call, batch)
}

// TestAutoOnSockets: between processes an all-reduce of few bytes goes by recursive doubling, but in rank order. All
// members agree, Explain says so, and the results are right.
func TestAutoOnSockets(t *testing.T) {
	socket := transport.Link{Class: transport.SocketLink, Latency: 5 * time.Microsecond, BytesPerSecond: 3e9}
	reproducible := gcl.Options{Reproducible: true}
	for _, x := range []struct {
		replicas int
		elements int
		options  gcl.Options
		want     methods.Method
		why      string
	}{
		{4, 16 << 10, gcl.Options{}, methods.RecursiveDoubling, "links/sockets.txt:15)"},
		{4, 16<<10 + 1, gcl.Options{}, methods.Direct, "links/sockets.txt:16)"},
		{2, 32 << 10, gcl.Options{}, methods.RecursiveDoubling, "links/sockets.txt:13)"},
		{3, 100, gcl.Options{}, methods.SendToAll, "links/sockets.txt:10)"},
		{6, 100, gcl.Options{}, methods.RecursiveDoubling, "links/sockets.txt:17)"},
		{4, 100, reproducible, methods.SendToAll, "links/sockets.txt:10)"},
		{4, 5000, reproducible, methods.Direct, "links/sockets.txt:12)"},
		{4, 100, gcl.Options{MaxBroadcastSize: 1600}, methods.SendToAll, "4 x 400, is at or below 1600"},
		{4, 100, gcl.Options{MaxBroadcastSize: gcl.NoBroadcast}, methods.RecursiveDoubling, "links/sockets.txt:15)"},
		{4, 100, gcl.Options{Method: methods.ClockwiseRing}, methods.ClockwiseRing, "as the options ask"},
	} {
		t.Run(fmt.Sprintf("n=%d/elements=%d/%+v", x.replicas, x.elements, x.options), func(t *testing.T) {
			var mu sync.Mutex // guards seen
			seen := map[methods.Method]bool{}
			ends, err := inproc.New(x.replicas)
			if err != nil {
				t.Fatal(err)
			}
			for i, e := range ends {
				ends[i] = &onOneHost{e, socket, func(call transport.Call) {
					mu.Lock()
					defer mu.Unlock()
					seen[methods.Method(call.Method)] = true
				}}
			}
			replicas(t, x.replicas, func(ctx context.Context, c *gcl.Comm) error {
				c = withOptions(c, x.options)
				e, err := c.Explain(schedule.AllReduce, int64(4*x.elements), tensor.F32)
				if err != nil || e.Method != x.want || !strings.Contains(e.Why, x.why) {
					return fmt.Errorf("%v: want %v, %q; have\n%v", err, x.want, x.why, e)
				}
				data := make([]float32, x.elements)
				for i := range data {
					data[i] = float32(i%1000 + c.Rank())
				}
				if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
					return err
				}
				for i, have := range data {
					n := c.Size()
					if want := float32(i%1000*n + n*(n-1)/2); have != want {
						return fmt.Errorf("element %d is %v, want %v", i, have, want)
					}
				}
				return nil
			}, gcl.WithEndpoints(ends))
			if len(seen) != 1 || !seen[x.want] {
				t.Errorf("the call went by %v, want %v", seen, x.want)
			}
		})
	}
}

// slowMemory is an endpoint with peer memory as slow as a test wants, between all pairs of replicas.
type slowMemory struct {
	near
	link transport.Link
}

func (e *slowMemory) Host(int) int                 { return 0 }
func (e *slowMemory) Link(_, _ int) transport.Link { return e.link }

// TestExplainPricesLinks: messages and peer memory cost what the transport says.
func TestExplainPricesLinks(t *testing.T) {
	const n, bytes = 4, 1 << 20
	link := transport.Link{Class: transport.MemoryLink, Latency: time.Millisecond, BytesPerSecond: 1e9,
		Barrier: time.Second, CopyBytesPerSecond: 1 << 20}
	ends, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range ends {
		ends[i] = &slowMemory{e.(near), link}
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		for _, x := range []struct {
			bytes  int64
			method methods.Method
			by     gcl.Implementation
			want   time.Duration
		}{
			{bytes, methods.Direct, gcl.Syncful, 2*n*time.Second + time.Second}, // two barriers and a pass
			{0, methods.Direct, gcl.Syncless, 2 * time.Millisecond},
			{0, methods.ClockwiseRing, gcl.Syncless, 2 * (n - 1) * time.Millisecond},
			{4e6, methods.ClockwiseRing, gcl.Syncless, 2 * (n - 1) * 2 * time.Millisecond},
		} {
			e, err := c.Explain(schedule.AllReduce, x.bytes, tensor.F32)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(e.Candidates, func(y gcl.Candidate) bool {
				return y.Method == x.method && y.Implementation == x.by
			})
			if at < 0 || e.Candidates[at].Estimate != x.want {
				return fmt.Errorf("%v %v: want %v; have\n%v", x.method, x.by, x.want, e)
			}
		}
		return nil
	}, gcl.WithEndpoints(ends))
}

// TestTensorsShareMessages: from which size on a tensor of several has messages of its own is a number of the links.
func TestTensorsShareMessages(t *testing.T) {
	const tensors = 4
	for _, x := range []struct {
		class transport.LinkClass
		bytes int // of a tensor
		want  int // messages from a replica in a round
	}{
		{transport.MemoryLink, 4<<10 - 4, 1},
		{transport.MemoryLink, 4 << 10, tensors},
		{transport.SocketLink, 4 << 10, tensors},
		{transport.EngineLink, 4 << 10, 1},
		{transport.EngineLink, 16<<10 - 4, 1},
		{transport.EngineLink, 16 << 10, tensors},
	} {
		ends, err := inproc.New(2)
		if err != nil {
			t.Fatal(err)
		}
		link := transport.Link{Class: x.class, Latency: time.Microsecond, BytesPerSecond: 1e9}
		for i, e := range ends {
			ends[i] = &onOneHost{e, link, func(transport.Call) {}}
		}
		replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			sent := 0
			c = withOptions(c, gcl.Options{Method: methods.SendToAll, Trace: &gcl.Trace{
				Segment: func(_ gcl.TraceCall, _ int, s gcl.TraceSegment) {
					if s.Kind == transport.Send {
						sent++
					}
				},
			}})
			data := make([][]float32, tensors)
			for i := range data {
				data[i] = make([]float32, x.bytes/4)
			}
			if err := gcl.AllReduceManyInPlace(ctx, c, data, gcl.Add); err != nil {
				return err
			}
			if sent != x.want {
				return fmt.Errorf("%d messages of %d bytes over %v, want %d", sent, x.bytes, x.class, x.want)
			}
			return nil
		}, gcl.WithEndpoints(ends))
	}
}
