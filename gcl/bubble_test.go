package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/carrier"
	"gogcl.dev/internal/fabric"
)

// The limits of jobs in bubbles, on the clock of the bubble.
const (
	bubbleSilence = 2 * time.Second
	bubbleJoin    = 20 * time.Second
	bubbleLimit   = bubbleJoin + 10*bubbleSilence
)

// parting is how one replica of a job has ended.
type parting struct {
	err         error
	met         bool          // it has joined
	joining, at time.Duration // how long it took to join, and when all was over
}

// TestJobs has replicas join, as processes do, call collectives and leave, through trouble of all kinds:
// docs/design/seeds.md.
func TestJobs(t *testing.T) {
	t.Setenv("GCL_STATUS", "off") // its socket is a real one
	jobs := 500
	if testing.Short() {
		jobs = 50
	}
	tally := fabric.Tally{}
	fabric.Each(t, jobs, func(t *testing.T, seed uint64) {
		s := fabric.NewScene(seed, fabric.None, fabric.Late, fabric.Break, fabric.Reset, fabric.Refuse, fabric.Shortly,
			fabric.Never, fabric.Few, fabric.Absent, fabric.Leave, fabric.Cut, fabric.Stop, fabric.Straggle)
		ends := runJob(s)
		failed, last := false, time.Duration(0)
		for _, e := range ends {
			failed, last = failed || e.err != nil, max(last, e.at)
		}
		tally.Count(s.Trouble, failed, last)
		judge(t, s, ends)
		if left := s.Fabric.Open(); left > 0 {
			t.Errorf("%d ends of connections are open", left)
		}
		if t.Failed() || fabric.Alone() {
			for r, e := range ends {
				t.Logf("replica %d, met %v, joins for %v, ends after %v: %v", r, e.met, e.joining, e.at, e.err)
			}
			t.Logf("%v", s)
		}
	})
	tally.Log(t)
}

// runJob runs the job of a scene.
func runJob(s *fabric.Scene) []parting {
	n := len(s.Processes)
	cfg := gcl.JoinConfig{Size: n, Job: "bubble", Rendezvous: fmt.Sprint(s.Address(0), ":7000"), Transport: "tcp",
		Secret: make([]byte, 32), Timeout: bubbleJoin, Silence: bubbleSilence, Logger: slog.New(slog.DiscardHandler)}
	if s.Hosts == 1 && s.Chances.IntN(2) == 0 {
		cfg.Transport = "unix"
	}
	p := calls{seed: s.Chances.Uint64(), count: 1 + s.Chances.IntN(12),
		pause: time.Duration(s.Chances.Int64N(int64(300 * time.Millisecond)))}
	leaves := s.Chances.IntN(p.count)
	ends := make([]parting, n)
	began := time.Now()
	var all sync.WaitGroup
	for r := range n {
		count := p.count
		switch {
		case r != s.Victim:
		case s.Trouble == fabric.Absent:
			ends[r].met = true
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
			c, err := gcl.Join(carrier.With(context.Background(), s.Processes[r]), cfg)
			ends[r].joining = time.Since(came)
			if err == nil {
				ends[r].met = true
				if err = p.run(c, count); err != nil {
					c.Abort(err)
				}
				err = errors.Join(err, c.Close())
			}
			ends[r].err, ends[r].at = err, time.Since(began)
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

// judge says what is wrong with how the replicas of a scene have ended.
func judge(t *testing.T, s *fabric.Scene, ends []parting) {
	harmed, met := s.Harmed(), true
	for _, e := range ends {
		met = met && e.met
	}
	failing := bubbleLimit // for those that get an error; others may not have noticed
	switch s.Trouble {
	case fabric.Break, fabric.Reset, fabric.Refuse, fabric.Cut, fabric.Stop:
		if met && harmed {
			failing = s.Fabric.LastHarm().Sub(s.Began) + 2*bubbleSilence
		}
	}
	for r, e := range ends {
		limit := bubbleLimit
		if e.err != nil {
			limit = failing
		}
		if e.at > limit || e.joining > bubbleJoin+500*time.Millisecond {
			t.Errorf("replica %d has joined for %v and ended after %v, want at most %v", r, e.joining, e.at, limit)
		}
		if e.err == nil {
			if s.Trouble == fabric.Absent && r != s.Victim {
				t.Errorf("replica %d has no error, though replica %d is absent", r, s.Victim)
			}
			continue
		}
		switch text := e.err.Error(); {
		case strings.Contains(text, "wrong values"):
			t.Errorf("replica %d: %v", r, e.err)
		case !harmed:
			t.Errorf("replica %d fails without a reason: %v", r, e.err)
		case !strings.Contains(text, "replica"):
			t.Errorf("the error of replica %d names none: %v", r, e.err)
		case s.Blameable && r != s.Victim && !s.Blames(e.err):
			t.Errorf("the error of replica %d does not name replica %d: %v", r, s.Victim, e.err)
		case foreign.MatchString(text):
			t.Errorf("replica %d: an error of another kind: %v", r, e.err)
		}
	}
}

// foreign are the words of errors that no trouble of the network can be the reason of.
var foreign = regexp.MustCompile("mismatch|checksum|not authentic|does not speak|deadlock|leaves without|started twice")
