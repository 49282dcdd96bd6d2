package gcl_test

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
	"gogcl.dev/transport/inproc"
)

// TestGalleryByName: options have the methods of the gallery by their names, without methods.Register. Calls that one
// does not do go as by auto.
func TestGalleryByName(t *testing.T) {
	for _, l := range methods.Gallery() {
		o, err := gcl.ParseOptions(map[string]string{"method": l.Name})
		if err != nil || o.Method.String() != l.Name {
			t.Errorf("%s is %v, %v", l.Name, o.Method, err)
		}
	}
	t.Setenv("GCL_OPTIONS", `{"method": "circulant"}`)
	var w went
	replicas(t, 5, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, gcl.Options{Trace: w.trace()})
		data := []float32{float32(c.Rank()), 1}
		if err := gcl.AllReduceInPlace(ctx, c, data, gcl.Add); err != nil || data[0] != 10 || data[1] != 5 {
			return fmt.Errorf("%v, %w", data, err)
		}
		e, err := c.Explain(schedule.Broadcast, 64, tensor.F32)
		if err != nil || !strings.Contains(e.Why, "not circulant, which the options ask for: ") || len(e.Skipped) != 0 {
			return fmt.Errorf("%v, %w", e, err)
		}
		return gcl.BroadcastInPlace(ctx, c, data, 2)
	})
	if have := w.list(); !slices.Equal(have, []string{"all-reduce: circulant, messages", "broadcast: direct, small"}) {
		t.Errorf("%q", have)
	}
}

// TestGalleryNameIsTaken: a name of the gallery stands for the generator that the program gives it, where it does. A
// replica that has not done so has another schedule.
func TestGalleryNameIsTaken(t *testing.T) {
	m := own(t, "circulant")
	call := func(ctx context.Context, c *gcl.Comm) error {
		data := []float32{1}
		return gcl.AllReduceInPlace(ctx, withOptions(c, gcl.Options{Method: m}), data, gcl.Add)
	}
	err := gcl.Run(t.Context(), 3, call, gcl.WithMethod("circulant", forgetful))
	if err == nil || !contains(err, "circulant: all-reduce over 3 ranks: the schedule does not prove") {
		t.Errorf("%v", err)
	}
	replicas(t, 3, call, gcl.WithMethod("circulant", star))
	replicas(t, 3, call)
	const n = 3
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	ctx, errs := watched(t), make(chan error, n)
	for r, e := range endpoints {
		var o []gcl.CommOption
		if r == 1 {
			o = append(o, gcl.WithMethod("circulant", star))
		}
		c, err := gcl.New(e, o...)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			err := call(ctx, c)
			errs <- errors.Join(err, c.Close())
		}()
	}
	var all []error
	for range n {
		all = append(all, <-errs)
	}
	if err := errors.Join(all...); !errors.Is(err, gcl.ErrMismatch) ||
		!contains(err, "the schedules that their methods make") {
		t.Errorf("%v", err)
	}
}

// TestGalleryInLargeGroups: Explain does not prove schedules of large groups for methods that nobody asks for.
func TestGalleryInLargeGroups(t *testing.T) {
	tree := own(t, "binomial_tree")
	for n, want := range map[int]bool{256: true, 257: false} {
		replicas(t, n, func(_ context.Context, c *gcl.Comm) error {
			if c.Rank() != 0 {
				return nil
			}
			for _, m := range []methods.Method{methods.Auto, tree} {
				e, err := withOptions(c, gcl.Options{Method: m}).Explain(schedule.Reduce, 4, tensor.F32)
				if err != nil {
					return err
				}
				offered := slices.ContainsFunc(e.Candidates, func(x gcl.Candidate) bool { return x.Method == tree })
				if offered != (want || m == tree) {
					return fmt.Errorf("%v among %d, asked for %v: candidate %v", tree, n, m, offered)
				}
			}
			return nil
		})
	}
}
