package metrics_test

import (
	"context"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
)

// lastCall is the event of the end of an all-reduce of 8 bytes on two replicas, at replica 0.
func lastCall(t testing.TB) (last gcl.TraceCall) {
	t.Helper()
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		o := gcl.Options{}
		if c.Rank() == 0 {
			o.Trace = &gcl.Trace{CollectiveEnd: func(c gcl.TraceCall, _ error) { last = c }}
		}
		c, err := c.With(o)
		if err != nil {
			return err
		}
		return gcl.AllReduceInPlace(ctx, c.Named("grads"), []float64{1}, gcl.Add)
	})
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// BenchmarkEvent is what an event of the end of a call takes.
func BenchmarkEvent(b *testing.B) {
	call, trace := lastCall(b), metrics.New(nil).Trace()
	b.ReportAllocs()
	for b.Loop() {
		trace.CollectiveEnd(call, nil)
	}
}

// BenchmarkAllReduce is a call of 8 bytes on a group of one, which sends nothing: with metrics=on it is longer by what
// they take, the Trace included.
func BenchmarkAllReduce(b *testing.B) {
	for _, x := range []struct {
		name  string
		trace *gcl.Trace
	}{{"off", nil}, {"empty", &gcl.Trace{}}, {"on", metrics.New(nil).Trace()}} {
		b.Run("metrics="+x.name, func(b *testing.B) {
			b.ReportAllocs()
			err := gcl.Run(b.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
				data := []float64{1}
				for b.Loop() {
					if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
						return err
					}
				}
				return nil
			}, gcl.WithOptions(gcl.Options{Trace: x.trace}))
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}
