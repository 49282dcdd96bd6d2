package methodtest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
)

// ladder is an all-reduce down a chain of ranks and back.
var ladder = methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
	if r.Collective != schedule.AllReduce {
		return nil, fmt.Errorf("a ladder does all-reduce only: %w", errors.ErrUnsupported)
	}
	b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
	for t := range r.Size - 1 {
		b.Fold(t, t, t+1, 0, 1)
		b.Copy(2*(r.Size-1)-1-t, t+1, t, 0, 1)
	}
	return b.Build()
})

// TestRegistered: what programs have of a method that is registered for the whole process.
func TestRegistered(t *testing.T) {
	if err := methods.Register("ladder", ladder); err != nil {
		t.Fatal(err)
	}
	m, err := methods.Parse("ladder")
	if err != nil || !slices.Contains(methods.All(), m) {
		t.Fatalf("%v, %v", m, err)
	}
	o, err := gcl.ParseOptions(map[string]string{"method": "ladder"})
	if err != nil || o.Method != m {
		t.Errorf("%v, %v", o, err)
	}
	_, err = gcl.ParseOptions(map[string]string{"method": "lader"})
	if err == nil || !strings.Contains(err.Error(), "the closest is ladder") {
		t.Errorf("%v", err)
	}
	nothing := func(context.Context, *gcl.Comm) error { return nil }
	taken := gcl.Run(t.Context(), 2, nothing, gcl.WithMethod("ladder", ladder))
	if taken == nil || !strings.Contains(taken.Error(), "the name ladder is taken: a method has been registered by it") {
		t.Errorf("%v", taken)
	}
	t.Setenv("GCL_OPTIONS", `{"method": "ladder"}`)
	err = gcl.Run(t.Context(), 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, i := range []gcl.Implementation{gcl.Syncless, gcl.Syncful} {
			var went []string
			c, err := c.With(gcl.Options{Implementation: i, Reproducible: true, Trace: &gcl.Trace{
				MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) { went = append(went, c.Method.String()) },
			}})
			if err != nil {
				return err
			}
			data := []int32{int32(c.Rank())}
			if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil || data[0] != 6 {
				return fmt.Errorf("%v, %w", data, err)
			}
			if _, err := gcl.AllGather(ctx, c, data); err != nil {
				return err
			}
			if !slices.Equal(went, []string{"ladder", "direct"}) {
				return fmt.Errorf("went by %v", went)
			}
			e, err := c.Explain(schedule.AllGather, 64, tensor.I32)
			if err != nil {
				return err
			}
			if len(e.Skipped) != 1 || e.Skipped[0].Method != m ||
				!strings.Contains(e.Why, "a ladder does all-reduce only") {
				return fmt.Errorf("explained as %v", e)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
