package gcl_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// tap is an endpoint whose batches somebody looks at, and may change, before they go out.
type tap struct {
	transport.Endpoint
	look func([]transport.Transfer)
}

func (e *tap) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	e.look(batch)
	return e.Endpoint.Exchange(ctx, call, batch)
}

// tapped connects n replicas by endpoints with a tap each.
func tapped(t testing.TB, n int, look func([]transport.Transfer)) []transport.Endpoint {
	t.Helper()
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range endpoints {
		endpoints[i] = &tap{e, look}
	}
	return endpoints
}

// counted connects n replicas and counts their transfers.
func counted(t testing.TB, n int) (*atomic.Int64, []transport.Endpoint) {
	count := new(atomic.Int64)
	return count, tapped(t, n, func(batch []transport.Transfer) { count.Add(int64(len(batch))) })
}

// heldBack lets no replica send before all have come to their first Exchange with something to send.
func heldBack(endpoints []transport.Endpoint) []transport.Endpoint {
	var all sync.WaitGroup
	all.Add(len(endpoints))
	for i, e := range endpoints {
		endpoints[i] = &holding{Endpoint: e, all: &all}
	}
	return endpoints
}

type holding struct {
	transport.Endpoint
	once sync.Once
	all  *sync.WaitGroup
}

func (e *holding) Exchange(ctx context.Context, call transport.Call, batch []transport.Transfer) error {
	if len(batch) > 0 {
		e.once.Do(func() {
			e.all.Done()
			e.all.Wait()
		})
	}
	return e.Endpoint.Exchange(ctx, call, batch)
}
