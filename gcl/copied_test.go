package gcl_test

import (
	"context"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// TestCommsAreMadeDuringCalls: a Comm is made of another, and asked, while that is in calls of two sizes in turn. The
// race detector looks whether anything that calls change is read.
func TestCommsAreMadeDuringCalls(t *testing.T) {
	for _, x := range []struct {
		name, method string // pat does no all-reduce
		from         func(c *gcl.Comm) error
	}{
		{"With", "auto", func(c *gcl.Comm) error { _, err := c.With(gcl.Options{}); return err }},
		{"Named", "auto", func(c *gcl.Comm) error { c.Named("x"); return nil }},
		{"Explain", "auto", askForAllReduce},
		{"Explain", "pat", askForAllReduce},
	} {
		t.Run(x.name+"/"+x.method, func(t *testing.T) {
			m, err := methods.Parse(x.method)
			if err != nil {
				t.Fatal(err)
			}
			err = gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
				c, err := c.With(gcl.Options{Method: m})
				if err != nil {
					return err
				}
				var asking sync.WaitGroup
				defer asking.Wait()
				asking.Go(func() {
					for range 50 {
						if err := x.from(c); err != nil {
							t.Error(err)
						}
					}
				})
				for i := range 50 {
					data := make([]float32, 16*(1+i%2))
					if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil {
						return err
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func askForAllReduce(c *gcl.Comm) error {
	_, err := c.Explain(schedule.AllReduce, 64, tensor.F32)
	return err
}
