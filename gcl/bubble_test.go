package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/fabric"
	"gogcl.dev/internal/netstack"
)

// The limits of jobs in bubbles, on the clock of the bubble.
const (
	bubbleSilence = 2 * time.Second
	bubbleJoin    = 20 * time.Second
	bubbleLimit   = bubbleJoin + 10*bubbleSilence
)

// TestJobs has replicas join, as processes do, call collectives and leave, through trouble of all kinds.
func TestJobs(t *testing.T) {
	t.Setenv("GCL_STATUS", "off") // its socket is a real one
	jobs := fabric.Jobs{Run: runJob, Join: bubbleJoin, Silence: bubbleSilence, Limit: bubbleLimit,
		Wrong: "wrong values",
		Never: regexp.MustCompile(
			"mismatch|checksum|not authentic|does not speak|deadlock|leaves without|started twice")}
	jobs.Test(t)
}

// runJob runs the job of a scene.
func runJob(_ *testing.T, s *fabric.Scene) []fabric.Parting {
	n := len(s.Processes)
	cfg := gcl.JoinConfig{Size: n, Job: "bubble", Rendezvous: fmt.Sprint(s.Address(0), ":7000"), Transport: "tcp",
		Secret: make([]byte, 32), Timeout: bubbleJoin, Silence: bubbleSilence, Logger: slog.New(slog.DiscardHandler)}
	if s.Hosts == 1 && s.Chances.IntN(2) == 0 {
		cfg.Transport = "unix"
	}
	p := calls{seed: s.Chances.Uint64(), count: 1 + s.Chances.IntN(12),
		pause: time.Duration(s.Chances.Int64N(int64(300 * time.Millisecond)))}
	leaves := s.Chances.IntN(p.count)
	ends := make([]fabric.Parting, n)
	began := time.Now()
	var all sync.WaitGroup
	for r := range n {
		count := p.count
		switch {
		case r != s.Victim:
		case s.Trouble == fabric.Absent:
			ends[r].Met = true
			continue
		case s.Trouble == fabric.Leave:
			count = leaves
		}
		all.Go(func() {
			if r == s.Victim && s.Trouble == fabric.Straggle {
				time.Sleep(bubbleJoin / 2)
			}
			cfg, came := cfg, time.Now()
			cfg.Rank = r
			c, err := gcl.Join(netstack.With(context.Background(), s.Processes[r]), cfg)
			ends[r].Joining = time.Since(came)
			if err == nil {
				ends[r].Met = true
				if err = p.run(c, count); err != nil {
					c.Abort(err)
				}
				err = errors.Join(err, c.Close())
			}
			ends[r].Err, ends[r].At = err, time.Since(began)
		})
	}
	all.Wait()
	time.Sleep(time.Minute) // what is left ends by itself, or the bubble fails
	return ends
}

// calls are the collectives of a job.
type calls struct {
	seed  uint64
	count int
	pause time.Duration // of each replica in turn, before a call
}

// run makes the first calls, and checks their results.
func (p calls) run(c *gcl.Comm, count int) error {
	for k := range count {
		if k%c.Size() == c.Rank() {
			time.Sleep(p.pause)
		}
		chances := rand.New(rand.NewPCG(p.seed, uint64(k)))
		if err := call(c, chances.IntN(4), chances.IntN(c.Size()), chances.IntN(1<<chances.IntN(14))); err != nil {
			return err
		}
	}
	return nil
}

// call makes one collective of n elements of each replica.
func call(c *gcl.Comm, kind, root, n int) error {
	ctx, size := context.Background(), c.Size()
	of := func(replica, length int) []int64 {
		in := make([]int64, length)
		for i := range in {
			in[i] = int64((i + 3) * (replica + 7) * (i ^ replica + 1))
		}
		return in
	}
	sum := func(length int) []int64 {
		out := make([]int64, length)
		for r := range size {
			for i, x := range of(r, length) {
				out[i] += x
			}
		}
		return out
	}
	var got, want []int64
	var err error
	switch kind {
	case 0:
		got, err = gcl.AllReduce(ctx, c, of(c.Rank(), n), gcl.Add)
		want = sum(n)
	case 1:
		got, err = gcl.AllGather(ctx, c, of(c.Rank(), n))
		for r := range size {
			want = append(want, of(r, n)...)
		}
	case 2:
		got, err = gcl.ReduceScatter(ctx, c, of(c.Rank(), n*size), gcl.Add)
		want = sum(n * size)[c.Rank()*n:][:n]
	default:
		got, err = of(c.Rank(), n), nil
		err = gcl.BroadcastInPlace(ctx, c, got, root)
		want = of(root, n)
	}
	if err == nil && !slices.Equal(got, want) {
		return fmt.Errorf("wrong values: call of kind %d, %d elements", kind, n)
	}
	return err
}
