package gcl_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// confusedBroadcasts lists a broadcast, and then calls that a replica confuses with it, each with a part of its
// description.
func confusedBroadcasts(o gcl.Options) []variant {
	cast := func(name, text string, root, size int) variant {
		return variant{name: name, text: []string{text}, call: func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, withOptions(c, o), make([]int32, size), root)
		}}
	}
	out := []variant{
		cast("broadcast", "broadcast #1 (int32 x 5, root 0, ", 0, 5),
		cast("another length", "broadcast #1 (int32 x 6, root 0, ", 0, 6),
		cast("another root", "broadcast #1 (int32 x 5, root 1, ", 1, 5),
		{name: "another type", text: []string{"broadcast #1 (float32 x 5, root 0, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.BroadcastInPlace(ctx, withOptions(c, o), make([]float32, 5), 0)
			}},
		{name: "several tensors", text: []string{"broadcast #1 (tensors, int32 x 5 in all, root 0, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				return batchInPlace(ctx, withOptions(c, o), schedule.Broadcast,
					[][]int32{make([]int32, 2), make([]int32, 3)}, 0, 0)
			}},
		{name: "all-reduce", text: []string{"all-reduce #1 (ADD int32 x 5, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]int32, 5), gcl.Add)
			}},
		{name: "barrier", text: []string{"barrier #1 ("}, call: func(ctx context.Context, c *gcl.Comm) error { return withOptions(c, o).Barrier(ctx) }},
		{name: "one call later", text: []string{"broadcast #2 (int32 x 5, root 0, "},
			call: func(ctx context.Context, c *gcl.Comm) error {
				refuse(ctx, c)
				return gcl.BroadcastInPlace(ctx, withOptions(c, o), make([]int32, 5), 0)
			}},
	}
	for _, other := range []struct {
		name, text string
		options    gcl.Options
		size       int
	}{
		{"other options", "broadcast #1 (int32 x 5, root 0, ", gcl.Options{Method: o.Method, Implementation: o.Implementation, Reproducible: !o.Reproducible}, 5},
		{"a large one", "broadcast #1 (int32 x 5000, root 0, ", o, 5000},
		{"all-reduce by a ring", "all-reduce #1 (ADD int32 x 7, clockwise_ring, ", gcl.Options{Method: methods.ClockwiseRing}, 7},
		{"large all-reduce", "all-reduce #1 (ADD int32 x 7000, ", o, 7000},
	} {
		out = append(out, variant{name: other.name, text: []string{other.text},
			call: func(ctx context.Context, c *gcl.Comm) error {
				if strings.HasPrefix(other.text, "broadcast") {
					return gcl.BroadcastInPlace(ctx, withOptions(c, other.options), make([]int32, other.size), 0)
				}
				return gcl.AllReduceInPlace(ctx, withOptions(c, other.options), make([]int32, other.size), gcl.Add)
			}})
	}
	return out
}

// lives runs a replica each: it sleeps, makes a call, sleeps and closes, by the bubble's clock. It returns the errors
// of call and Close together.
func lives(ctx context.Context, t *testing.T, calls []variant, before, after []time.Duration,
	opts ...gcl.CommOption) []error {
	comms, errs := joined(t, len(calls), opts...), make([]error, len(calls))
	var all sync.WaitGroup
	for r, c := range comms {
		all.Go(func() {
			time.Sleep(before[r])
			err := calls[r].call(ctx, c)
			time.Sleep(after[r])
			errs[r] = errors.Join(err, c.Close())
		})
	}
	all.Wait()
	return errs
}

// TestBroadcastDisagreement: of a broadcast of which one replica disagrees every replica hears, at the call or at
// Close, who was in which call, in whichever order they come, look and leave, and although nobody makes another call.
func TestBroadcastDisagreement(t *testing.T) {
	kinds := []struct {
		name    string
		options gcl.Options
	}{
		{"small", gcl.Options{}},
		{"messages/method=direct", gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}},
		{"messages/method=clockwise_ring", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless}},
		{"messages/method=recursive_doubling", gcl.Options{Method: methods.RecursiveDoubling, Implementation: gcl.Syncless}},
		{"rounds", gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}},
	}
	tries := 2
	switch {
	case *full:
		tries = 12
	case underRace:
		tries = 1
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, kind := range kinds {
		all := confusedBroadcasts(kind.options)
		for _, n := range []int{2, 3, 5} {
			for odd := range n {
				for _, theirs := range all[1:] {
					for try := range tries * 4 {
						if underRace && try > 1 {
							break // 0 is by chance, 1 is not
						}
						calls, before, after := make([]variant, n), make([]time.Duration, n), make([]time.Duration, n)
						for r := range n {
							calls[r] = all[0]
							before[r] = time.Duration(rng.IntN(4)) * 10 * time.Millisecond
							after[r] = time.Duration(rng.IntN(3)) * 25 * time.Millisecond
							if try%4 == 0 { // chance decides
								before[r], after[r] = 0, 0
							}
						}
						calls[odd] = theirs
						var errs []error
						synctest.Test(t, func(t *testing.T) { errs = lives(watched(t), t, calls, before, after) })
						for r, err := range errs {
							if errors.Is(err, gcl.ErrMismatch) && all[0].in(err.Error()) && theirs.in(err.Error()) {
								continue
							}
							t.Errorf("%s, n=%d, replica %d makes %s, the others broadcast, before %v, after %v: "+
								"replica %d: %v",
								kind.name, n, odd, theirs.name, before, after, r, err)
						}
					}
				}
			}
		}
	}
}

// Closing a Dup after a broadcast that others have not had waits for nobody, and leaves the first connection open.
func TestCloseOfDupWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			data := []int32{int32(c.Rank())}
			if c.Rank() == 2 { // it takes the data after the others have closed the Dup
				if err := c.Barrier(ctx); err != nil {
					return err
				}
			}
			if err := errors.Join(gcl.BroadcastInPlace(ctx, d, data, 0), d.Close()); err != nil || c.Rank() == 2 {
				return errors.Join(err, check("data", data, []int32{0}))
			}
			return c.Barrier(ctx)
		})
		if took := time.Since(start); took >= time.Second {
			t.Errorf("the bubble's clock has gone on by %v", took)
		}
	})
}

// One goroutine that closes all replicas, of which some have not had a broadcast, is held up once.
func TestCloseOneAfterTheOther(t *testing.T) {
	for _, o := range []gcl.Options{{}, {Method: methods.ClockwiseRing, Implementation: gcl.Syncless}} {
		synctest.Test(t, func(t *testing.T) {
			comms := joined(t, 8)
			var all sync.WaitGroup
			for _, c := range comms[:4] {
				all.Go(func() {
					err := gcl.BroadcastInPlace(watched(t), withOptions(c, o), []int32{1}, 0)
					// in the ring, replica 3 waits for 4
					if last := c.Rank() == 3 && o.Method != methods.Auto; (err != nil) != last {
						t.Errorf("replica %d: %v", c.Rank(), err)
					}
				})
			}
			synctest.Wait()
			start, told := time.Now(), 0
			for _, c := range comms {
				if errors.Is(c.Close(), gcl.ErrMismatch) {
					told++
				}
			}
			if took := time.Since(start); took > 1100*time.Millisecond {
				t.Errorf("the bubble's clock has gone on by %v", took)
			}
			all.Wait()
			if o.Method == methods.Auto && told != 4 {
				t.Errorf("%d of the 4 that leave without it say so", told)
			}
		})
	}
}

// A broadcast that is no longer on record, for all the calls of other groups since, is nobody's fault.
func TestCloseLongAfterABroadcast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		replicas(t, 3, func(ctx context.Context, c *gcl.Comm) error {
			if err := gcl.BroadcastInPlace(ctx, with(c, methods.ClockwiseRing), make([]int32, 5), 0); err != nil {
				return err
			}
			alone := grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1})
			for range 1100 * (1 - c.Rank()%2) { // not on replica 1
				if err := alone.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if took := time.Since(start); took >= time.Second {
			t.Errorf("the bubble's clock has gone on by %v", took)
		}
	})
}

// A connection forgets its Dups when they are closed.
func TestDupsAreForgotten(t *testing.T) {
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		for range 3 {
			d, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			if err := d.Close(); err != nil {
				return err
			}
		}
		if n := gcl.OpenDups(c); n != 0 {
			t.Errorf("replica %d: %d Dups", c.Rank(), n)
		}
		return nil
	})
}

// TestBroadcastDisagreementThenElsewhere: who has had its data by a broadcast by messages, and has been in other calls
// since, on its own or in another group, is compared by what it has broadcast all the same.
func TestBroadcastDisagreementThenElsewhere(t *testing.T) {
	const n, odd = 6, 5
	direct := gcl.Options{Method: methods.SendToAll, Implementation: gcl.Syncless}
	all := confusedBroadcasts(direct)
	rows := [][]int32{{1}, {2}}
	for _, x := range []struct {
		name string
		call func(ctx context.Context, c *gcl.Comm) error
	}{
		{"within the replica", func(ctx context.Context, c *gcl.Comm) error {
			_, err := gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
			return err
		}},
		{"alone", func(ctx context.Context, c *gcl.Comm) error {
			return grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 1}).Barrier(ctx)
		}},
		{"in pairs, peer memory", func(ctx context.Context, c *gcl.Comm) error {
			return grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 3}).Barrier(ctx)
		}},
		{"in pairs, messages", func(ctx context.Context, c *gcl.Comm) error {
			return withOptions(grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 3}),
				direct).Barrier(ctx)
		}},
		{"in pairs, often", func(ctx context.Context, c *gcl.Comm) error {
			pair := withOptions(grouped(c, commgroup.Group{Type: commgroup.Consecutive, Size: 2, Stride: 3}), direct)
			for range 40 { // more than a replica that leaves knows one by one
				if err := pair.Barrier(ctx); err != nil {
					return err
				}
			}
			return nil
		}},
	} {
		for _, theirs := range all[1:] {
			synctest.Test(t, func(t *testing.T) {
				ours := all[0]
				calls, before, after := make([]variant, n), make([]time.Duration, n), make([]time.Duration, n)
				for r := range n {
					calls[r] = ours
					if r == 1 || r == 4 { // one of the pairs {0, 3}, {1, 4}, {2, 5}
						calls[r].call = func(ctx context.Context, c *gcl.Comm) error {
							return errors.Join(ours.call(ctx, c), x.call(ctx, c))
						}
					}
				}
				calls[odd], before[odd] = theirs, 100*time.Millisecond // when 1 to 4 are closed
				for r, err := range lives(watched(t), t, calls, before, after) {
					if !errors.Is(err, gcl.ErrMismatch) || !ours.in(err.Error()) || !theirs.in(err.Error()) {
						t.Errorf("%s, replica %d makes %s: replica %d: %v", x.name, odd, theirs.name, r, err)
					}
				}
			})
		}
	}
}

// TestBroadcastDisagreementThenAnother: who has left after two broadcasts, the first of which another replica goes
// without, is compared by the first, although its root is still there.
func TestBroadcastDisagreementThenAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := confusedBroadcasts(gcl.Options{})
		ours, theirs := all[0], all[len(all)-1]
		twice := ours
		twice.call = func(ctx context.Context, c *gcl.Comm) error {
			err := ours.call(ctx, c)
			star := gcl.Options{Method: methods.SendToAll, Implementation: gcl.Syncless}
			return errors.Join(err, gcl.BroadcastInPlace(ctx, withOptions(c, star), make([]int32, 3), 0))
		}
		calls := []variant{twice, twice, theirs}
		errs := lives(watched(t), t, calls, []time.Duration{0, 0, 100 * time.Millisecond}, make([]time.Duration, 3))
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) || !ours.in(err.Error()) || !theirs.in(err.Error()) {
				t.Errorf("replica %d: %v", r, err)
			}
		}
	})
}

// TestBroadcastOnADupDisagreement: the Close of the first connection waits for those who have not come to a broadcast
// by messages on a Dup, and hears that one of them makes another call there.
func TestBroadcastOnADupDisagreement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := confusedBroadcasts(gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless})
		onDup := func(v variant) variant {
			call := v.call
			v.call = func(ctx context.Context, c *gcl.Comm) error {
				d, err := c.Dup(ctx)
				if err != nil {
					return err
				}
				return call(ctx, d)
			}
			return v
		}
		ours, theirs := onDup(all[0]), onDup(all[2])
		calls := []variant{ours, ours, theirs}
		errs := lives(watched(t), t, calls, []time.Duration{0, 0, 100 * time.Millisecond}, make([]time.Duration, 3))
		for r, err := range errs {
			if !errors.Is(err, gcl.ErrMismatch) || !ours.in(err.Error()) || !theirs.in(err.Error()) {
				t.Errorf("replica %d: %v", r, err)
			}
		}
	})
}

// TestDupClosedBeforeTheOthers: the root of a broadcast on a Dup, which closes that before the others come, hears from
// the Close of the first connection that a replica has closed the Dup without the broadcast.
func TestDupClosedBeforeTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, comms, errs := watched(t), joined(t, 3), make([]error, 3)
		var all sync.WaitGroup
		for r, c := range comms {
			all.Go(func() {
				d, err := c.Dup(ctx)
				if err != nil {
					t.Error(err)
					return
				}
				if r < 2 {
					err = gcl.BroadcastInPlace(ctx, d, make([]int32, 5), 0)
				} else {
					time.Sleep(10 * time.Millisecond)
				}
				err = errors.Join(err, d.Close())
				time.Sleep(50 * time.Millisecond)
				errs[r] = errors.Join(err, c.Close())
			})
		}
		all.Wait()
		for r, err := range errs {
			if want := "replica 2 leaves without broadcast #1 (int32 x 5, root 0, "; !errors.Is(err, gcl.ErrMismatch) ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("replica %d: %v, want %s...", r, err, want)
			}
		}
	})
}
