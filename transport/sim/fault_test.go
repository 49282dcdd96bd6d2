package sim_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/perfetto"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/transport"
	"gogcl.dev/transport/sim"
)

var (
	seeds = flag.Int("seeds", 300, "how many seeds TestSeeds tries")
	seed  = flag.Int("seed", -1, "the one that it tries")
)

// TestSeeds: jobs with jitter, a slow replica and, in one of four, a death end all, and with an error where there was a
// death only. A second run of a seed goes the same way.
func TestSeeds(t *testing.T) {
	first, end := 0, *seeds
	if *seed >= 0 {
		first, end = *seed, *seed+1
	} else if underRace {
		end = min(end, 40)
	}
	network, failed := star(t, 8), map[int]bool{}
	for seed := first; seed < end; seed++ {
		dies := seed%4 == 0
		c := sim.Config{Model: cost.Model{Network: network}, Seed: uint64(seed), Faults: sim.Faults{
			Jitter: 20 * time.Microsecond,
			Slow:   []sim.Slow{{Replica: seed % 8, By: time.Duration(seed%3) * time.Microsecond}},
		}}
		switch {
		case seed%8 == 4:
			c.Faults.Deaths = []sim.Death{{Replica: seed % 7, At: time.Duration(1+seed%5) * time.Microsecond}}
		case dies:
			c.Faults.Deaths = []sim.Death{{Replica: seed % 7, Call: 1 + seed%3}}
		}
		method := []methods.Method{methods.RecursiveDoubling, methods.ClockwiseRing, methods.MeetInMiddleRing}[seed%3]
		var hashes [2]uint64
		for i := range hashes {
			net, errs := apart(t, c, method)
			for rank, err := range errs {
				if !dies && err != nil || err != nil && !errors.Is(err, sim.ErrDead) &&
					!errors.As(err, new(*transport.LostError)) {
					t.Fatalf("-seed %d: replica %d: %v", seed, rank, err)
				}
				if err != nil {
					failed[seed] = true
				}
			}
			hashes[i] = net.Hash()
		}
		if hashes[0] != hashes[1] {
			t.Fatalf("-seed %d: two runs differ: %x, %x", seed, hashes[0], hashes[1])
		}
	}
	t.Logf("%d seeds, %d with an error", end-first, len(failed))
	if *seed < 0 && len(failed) < (end-first)/8 {
		t.Errorf("%d of %d seeds have an error", len(failed), end-first)
	}
}

// apart runs an all-reduce on replicas that know of each other by the network only, unlike those of gcl.Run, whose
// contexts end together.
func apart(t *testing.T, c sim.Config, m methods.Method) (*sim.Net, []error) {
	t.Helper()
	net, eps := open(t, c)
	errs := make([]error, len(eps))
	var replicas sync.WaitGroup
	for rank, e := range eps {
		replicas.Go(func() {
			c, err := gcl.New(e, gcl.WithOptions(gcl.Options{Method: m, Strict: true}))
			if err != nil {
				errs[rank] = err
				return
			}
			in, out := make([]float32, 64), make([]float32, 64)
			in[0] = float32(rank)
			errs[rank] = gcl.AllReduceTo(context.Background(), c, out, in, gcl.Add)
			if want := float32(len(eps) * (len(eps) - 1) / 2); errs[rank] == nil && out[0] != want {
				errs[rank] = fmt.Errorf("%v, want %v", out[0], want)
			}
			c.Close()
		})
	}
	replicas.Wait()
	return net, errs
}

// exchange has all replicas make a call to each other, one byte each way, until one fails, and returns their errors.
func exchange(eps []transport.Endpoint) []error {
	errs := make([]error, len(eps))
	done := make(chan int)
	for rank, e := range eps {
		go func() {
			for round := uint32(0); errs[rank] == nil; round++ {
				var batch []transport.Transfer
				for p := range eps {
					if p != rank {
						batch = append(batch, transport.Transfer{Peer: p, Buf: []byte{1}},
							transport.Transfer{Peer: p, Kind: transport.Recv, Buf: []byte{0}})
					}
				}
				errs[rank] = e.Exchange(context.Background(), transport.Call{Group: 1, Seq: 1, Round: round}, batch)
			}
			done <- rank
		}()
	}
	for range eps {
		<-done
	}
	for _, e := range eps {
		e.Close()
	}
	return errs
}

// TestLost: who hears of whom, and when, after a death and after partitions.
func TestLost(t *testing.T) {
	const silence = time.Second
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		faults sim.Faults
		want   string // by replica: whom it has lost, or who has told it of whom
	}{
		{"death", sim.Faults{Deaths: []sim.Death{{Replica: 2, At: ms}}}, "0:lost 2, 0:lost 2, dead, 0:lost 2"},
		{"death in a call", sim.Faults{Deaths: []sim.Death{{Replica: 0, Call: 3}}},
			"dead, 1:lost 0, 1:lost 0, 1:lost 0"},
		{"one way", sim.Faults{Partitions: []sim.Partition{{From: []int{3}, To: []int{0, 1, 2}, At: ms}}},
			"0:lost 3, 0:lost 3, 0:lost 3, 0:lost 3"},
		{"both ways", sim.Faults{Partitions: []sim.Partition{{From: []int{3, 2}, To: []int{0, 1}, Both: true, At: ms}}},
			"0:lost 2, 0:lost 2, 2:lost 0, 2:lost 0"},
		{"between two", sim.Faults{Partitions: []sim.Partition{{From: []int{3}, To: []int{1}, Both: true, At: ms}}},
			"1:lost 3, 1:lost 3, 1:lost 3, 1:lost 3"},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.faults.Silence = silence
			net, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, 4)}, Faults: c.faults})
			var got []string
			for rank, err := range exchange(eps) {
				var where *transport.RoundError
				var aborted *transport.AbortError
				var lost *transport.LostError
				switch {
				case !errors.As(err, &where) || where.Replica != rank || !errors.As(err, &aborted):
					t.Errorf("replica %d: %v", rank, err)
				case errors.Is(err, sim.ErrDead):
					got = append(got, "dead")
				case errors.As(err, &lost):
					got = append(got, fmt.Sprintf("%d:lost %d", aborted.Replica, lost.Replica))
				}
			}
			if got := strings.Join(got, ", "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			if at := net.Now(); at < silence || at > silence+ms+100*time.Microsecond {
				t.Errorf("at %v", at)
			}
		})
	}
}

// TestAway: a replica that is long outside of calls does not bring about a fault that is planned for much later.
func TestAway(t *testing.T) {
	sim.Hurry(t)
	plan := sim.Faults{Deaths: []sim.Death{{Replica: 2, At: time.Hour}},
		Partitions: []sim.Partition{{From: []int{1}, To: []int{2}, At: time.Hour}}}
	net, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, 3)}, Faults: plan})
	err := gcl.Run(context.Background(), len(eps), func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 0 {
			sim.AwaitAway(net, 0)
		}
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 8), gcl.Add)
	}, gcl.WithEndpoints(eps))
	if err != nil || net.Now() >= time.Second {
		t.Errorf("%v, at %v", err, net.Now())
	}
}

// TestTooLate: a time that nothing has room for is an error of the calls, and of a replay.
func TestTooLate(t *testing.T) {
	const want = "time ends after 4.612e+09 s"
	slow := must(t)(cost.Torus([]int{4}, cost.Link{BytesPerSecond: 1e-3}))
	for name, c := range map[string]sim.Config{
		"message":   {Model: cost.Model{Network: slow}},
		"queued":    {Model: cost.Model{Network: slow}, Queued: true},
		"processor": {Model: cost.Model{Network: star(t, 4), FoldBytesPerSecond: 1e-320}},
		"overhead":  {Model: cost.Model{Network: star(t, 4), Overhead: math.MaxInt64}},
		"jitter":    {Model: cost.Model{Network: star(t, 4)}, Faults: sim.Faults{Jitter: math.MaxInt64}},
		"late":      {Model: cost.Model{Network: star(t, 4)}, Faults: sim.Faults{Slow: []sim.Slow{{By: math.MaxInt64}}}},
	} {
		t.Run(name, func(t *testing.T) {
			if _, _, err := allReduce(c, 1<<22, methods.Direct); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
			_, _, err := inBubble(t, c, func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, make([]float32, 1<<22), gcl.Add)
			})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v in a bubble, want %s", err, want)
			}
		})
	}
	never := sim.Faults{Deaths: []sim.Death{{Replica: 1, At: math.MaxInt64}}}
	_, _, err := inBubble(t, sim.Config{Model: cost.Model{Network: star(t, 4)}, Faults: never},
		func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 8), gcl.Add)
		})
	if err != nil {
		t.Errorf("%v with a death that never comes", err)
	}
	s := build(t, allReduceOf(methods.Direct, 4))
	_, err = sim.Replay(context.Background(), cost.Model{Network: slow}, s, places(4), 1<<40)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v of a replay, want %s", err, want)
	}
}

// TestSlow: a slow replica is late once for each call.
func TestSlow(t *testing.T) {
	run := func(f sim.Faults) time.Duration {
		c := sim.Config{Model: cost.Model{Network: star(t, 4)}, Faults: f}
		net, _, err := allReduce(c, 64, methods.RecursiveDoubling)
		if err != nil {
			t.Fatal(err)
		}
		return net.Now()
	}
	plain, slow := run(sim.Faults{}), run(sim.Faults{Slow: []sim.Slow{{Replica: 1, By: time.Millisecond}}})
	if slow != plain+2*time.Millisecond { // of two rounds
		t.Errorf("%v with a slow replica, %v without", slow, plain)
	}
}

// inBubble has a body run on replicas whose network's time is that of a bubble.
func inBubble(t *testing.T, c sim.Config, body func(context.Context, *gcl.Comm) error, options ...gcl.CommOption) (
	net *sim.Net, took time.Duration, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		c.Wait = synctest.Wait
		var eps []transport.Endpoint
		net, eps = open(t, c)
		err = gcl.Run(context.Background(), len(eps), body, append(options, gcl.WithEndpoints(eps),
			gcl.WithStallAfter(0))...)
		took = time.Since(began)
	})
	return net, took, err
}

// TestBubble: in a bubble time.Now, the elapsed time of calls, time.Sleep and deadlines go by the network's time.
func TestBubble(t *testing.T) {
	model := cost.Model{Network: star(t, 8)}
	plain, _, err := allReduce(sim.Config{Model: model}, 1<<12, methods.RecursiveDoubling)
	if err != nil {
		t.Fatal(err)
	}
	reduce := func(ctx context.Context, c *gcl.Comm) error {
		in, out := make([]float32, 1<<12), make([]float32, 1<<12)
		return gcl.AllReduceTo(ctx, c, out, in, gcl.Add)
	}
	var elapsed time.Duration
	options := gcl.WithOptions(gcl.Options{Method: methods.RecursiveDoubling, Trace: &gcl.Trace{
		CollectiveEnd: func(c gcl.TraceCall, _ error) {
			if c.Replica == 0 {
				elapsed = c.Elapsed()
			}
		}}})
	net, took, err := inBubble(t, sim.Config{Model: model}, reduce, options)
	if err != nil || net.Now() != plain.Now() || took != plain.Now() || elapsed != plain.Now() {
		t.Errorf("%v: %v of the network, %v of the bubble, %v by the Trace, want %v", err, net.Now(), took, elapsed,
			plain.Now())
	}

	const late = time.Minute
	net, took, err = inBubble(t, sim.Config{Model: model}, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 3 {
			time.Sleep(late)
		}
		return reduce(ctx, c)
	}, options)
	if err != nil || took != net.Now() || took != late+plain.Now() {
		t.Errorf("%v: %v of the network and %v of the bubble with a replica late by %v", err, net.Now(), took, late)
	}

	const limit = time.Second
	_, took, err = inBubble(t, sim.Config{Model: model}, func(ctx context.Context, c *gcl.Comm) error {
		ctx, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		if c.Replica() == 3 {
			time.Sleep(late)
		}
		return reduce(ctx, c)
	}, options)
	if !errors.Is(err, context.DeadlineExceeded) || took < limit || took > late {
		t.Errorf("%v after %v, want a deadline of %v", err, took, limit)
	}
}

// TestCircle: replicas that wait for each other on two lanes are told so, and do not wait for ever.
func TestCircle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, 2)}, Wait: synctest.Wait})
		errs := make(chan error)
		for rank, e := range eps {
			lane, err := e.Dup(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if rank == 0 {
				lane = e
			}
			go func() {
				errs <- lane.Exchange(context.Background(), transport.Call{Group: 1, Seq: 1},
					[]transport.Transfer{{Peer: 1 - rank, Kind: transport.Recv, Buf: make([]byte, 8)}})
			}()
		}
		for range eps {
			if err := <-errs; !errors.As(err, new(*transport.DeadlockError)) {
				t.Errorf("%v, want a deadlock", err)
			}
		}
		for _, e := range eps {
			e.Close()
		}
	})
}

// TestBubbles: a network begins in the bubble of one that has ended.
func TestBubbles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 3 {
			_, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, 4)}, Wait: synctest.Wait})
			if err := gcl.Run(context.Background(), len(eps), func(ctx context.Context, c *gcl.Comm) error {
				return gcl.AllReduceInPlace(ctx, c, make([]float32, 8), gcl.Add)
			}, gcl.WithEndpoints(eps), gcl.WithStallAfter(0)); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestOutside: New says so where there is no bubble.
func TestOutside(t *testing.T) {
	_, _, err := sim.New(sim.Config{Model: cost.Model{Network: star(t, 4)}, Wait: synctest.Wait})
	if err == nil || !strings.Contains(err.Error(), "want synctest.Wait in a bubble") {
		t.Errorf("%v, want an error of Wait", err)
	}
}

// TestStuck: a program in a bubble whose replicas wait outside of calls, or in calls for such a one, is a deadlock of
// the bubble. That ends the process, so it is another one.
func TestStuck(t *testing.T) {
	const variable = "GOGCL_SIM_STUCK"
	switch where := os.Getenv(variable); where {
	case "":
		for _, where := range []string{"outside", "inside"} {
			again := exec.Command(os.Args[0], "-test.run=^TestStuck$", "-test.timeout=1m")
			again.Env = append(os.Environ(), variable+"="+where)
			if out, err := again.CombinedOutput(); err == nil || !strings.Contains(string(out), "deadlock: ") {
				t.Errorf("%s: %v, want a deadlock: %s", where, err, out)
			}
		}
	default:
		synctest.Test(t, func(t *testing.T) {
			_, eps := open(t, sim.Config{Model: cost.Model{Network: star(t, 2)}, Wait: synctest.Wait})
			if where == "inside" {
				go eps[0].Exchange(context.Background(), transport.Call{Group: 1, Seq: 1},
					[]transport.Transfer{{Peer: 1, Kind: transport.Recv, Buf: make([]byte, 8)}})
			}
			<-make(chan int)
		})
	}
}

// TestConfig: what cannot be is refused.
func TestConfig(t *testing.T) {
	good := cost.Model{Network: star(t, 4)}
	with := func(f sim.Faults) sim.Config { return sim.Config{Model: good, Faults: f} }
	empty := must(t)(cost.Torus([]int{100, 100}, cable))
	for _, c := range []struct {
		config sim.Config
		want   string
	}{
		{sim.Config{}, "no network"},
		{sim.Config{Model: cost.Model{Network: good.Network, Overhead: -1}}, "overhead of -1ns"},
		{sim.Config{Model: cost.Model{Network: empty}}, "10000 replicas, want 1 to 8192"},
		{with(sim.Faults{Jitter: -1}), "jitter of -1ns"},
		{with(sim.Faults{Silence: -1}), "silence of -1ns"},
		{with(sim.Faults{Slow: []sim.Slow{{Replica: 4}}}), "slow replica 0: replica 4, want 0 to 3"},
		{with(sim.Faults{Slow: []sim.Slow{{By: -1}}}), "late by -1ns"},
		{with(sim.Faults{Deaths: []sim.Death{{Replica: -1}}}), "death 0: replica -1"},
		{with(sim.Faults{Deaths: []sim.Death{{Call: 1, At: 1}}}), "want one of them"},
		{with(sim.Faults{Deaths: []sim.Death{{Call: -1}}}), "want neither less than 0"},
		{with(sim.Faults{Partitions: []sim.Partition{{From: []int{1}, To: []int{1}}}}), "on both sides"},
		{with(sim.Faults{Partitions: []sim.Partition{{From: []int{1}}}}), "from 1 replicas to 0"},
		{with(sim.Faults{Partitions: []sim.Partition{{From: []int{1}, To: []int{9}}}}), "replica 9, want 0 to 3"},
		{with(sim.Faults{Partitions: []sim.Partition{{From: []int{1}, To: []int{0}, At: -1}}}), "at -1ns"},
	} {
		_, _, err := sim.New(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %s", c.config.Faults, err, c.want)
		}
	}
}

// TestPerfetto: a file for Perfetto has the times of the network.
func TestPerfetto(t *testing.T) {
	var net *sim.Net
	var out bytes.Buffer
	synctest.Test(t, func(t *testing.T) {
		var eps []transport.Endpoint
		net, eps = open(t, sim.Config{Model: cost.Model{Network: star(t, 4)}, Wait: synctest.Wait})
		var timeline perfetto.Timeline // whose time is the bubble's
		err := gcl.Run(context.Background(), len(eps), func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 1<<20), gcl.Add)
		}, gcl.WithEndpoints(eps), gcl.WithOptions(gcl.Options{Method: methods.RecursiveDoubling,
			Trace: timeline.Trace()}))
		if err == nil {
			_, err = timeline.WriteTo(&out)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	var file struct {
		TraceEvents []struct {
			Ph      string
			Name    string
			TS, Dur float64 // microseconds
		}
	}
	if err := json.Unmarshal(out.Bytes(), &file); err != nil {
		t.Fatal(err)
	}
	calls, want := 0, net.Now().Seconds()*1e6
	for _, e := range file.TraceEvents {
		if e.Ph == "X" && strings.HasPrefix(e.Name, "all-reduce") {
			calls++
			if math.Abs(e.Dur-want) > 0.1 { // a Timeline keeps events of an instant 4 ns apart
				t.Errorf("%s takes %v us, want %v", e.Name, e.Dur, want)
			}
		}
	}
	if calls != 4 {
		t.Errorf("%d calls in the file, want 4: %s", calls, out.Bytes()[:min(out.Len(), 2000)])
	}
}
