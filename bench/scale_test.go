package bench

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// BenchmarkScale is an all-reduce of 16 KiB by many replicas of one process: first-ms is the first call, ms and
// worst-ms the later ones, with late from when the replica that is late has come.
//
//	go test -bench Scale -benchtime 20x ./bench
func BenchmarkScale(b *testing.B) {
	ways := []struct {
		options gcl.Options
		sizes   []int
	}{
		{gcl.Options{Method: methods.Direct, Implementation: gcl.Syncless}, []int{64, 128, 256, 1024}},
		{gcl.Options{Method: methods.Direct, Implementation: gcl.Syncful}, []int{64, 128, 256, 1024}},
		{gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful}, []int{64, 256}},
	}
	for _, w := range ways {
		for _, n := range w.sizes {
			for _, late := range []time.Duration{0, 5 * time.Millisecond} {
				name := fmt.Sprintf("method=%v/impl=%v/n=%d/late=%v",
					w.options.Method, w.options.Implementation, n, late)
				b.Run(name, func(b *testing.B) {
					s := newSwarm(n, w.options, late)
					first := s.call()
					var sum, worst time.Duration
					for b.Loop() {
						took := s.call()
						sum, worst = sum+took, max(worst, took)
					}
					if err := s.end(); err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(milliseconds(first), "first-ms")
					b.ReportMetric(milliseconds(sum)/float64(b.N), "ms")
					b.ReportMetric(milliseconds(worst), "worst-ms")
				})
			}
		}
	}
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// TestSwarm has replicas make a few calls, each of them late in turn.
func TestSwarm(t *testing.T) {
	s := newSwarm(3, gcl.Options{}, time.Microsecond)
	for range 5 {
		if took := s.call(); took <= 0 {
			t.Errorf("a call took %v", took)
		}
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
}

// swarm is replicas that make a call when they are told to.
type swarm struct {
	starts []chan int // by replica: the number of the call
	calls  sync.WaitGroup
	late   time.Duration
	came   time.Time // when the last replica began the call in progress
	number int
	done   chan error
}

// newSwarm starts n replicas. In each call one of them, in turn, is late.
func newSwarm(n int, o gcl.Options, late time.Duration) *swarm {
	s := &swarm{late: late, done: make(chan error, 1)}
	for range n {
		s.starts = append(s.starts, make(chan int, 1))
	}
	go func() {
		s.done <- gcl.Run(context.Background(), n, func(ctx context.Context, c *gcl.Comm) error {
			return s.replica(ctx, c, o)
		})
	}()
	return s
}

// replica makes the calls of one replica, and goes on being told of them after an error.
func (s *swarm) replica(ctx context.Context, c *gcl.Comm, o gcl.Options) error {
	with, err := c.With(o)
	data := make([]float32, 4<<10)
	for number := range s.starts[c.Replica()] {
		if s.late > 0 && number%c.Replicas() == c.Replica() {
			time.Sleep(s.late)
			s.came = time.Now()
		}
		if err == nil {
			err = gcl.AllReduceInPlace(ctx, with, data, gcl.Add)
		}
		s.calls.Done()
	}
	return err
}

// call has all replicas make a call, and returns how long that took from when the last of them began it.
func (s *swarm) call() time.Duration {
	s.calls.Add(len(s.starts))
	s.came = time.Now()
	for _, start := range s.starts {
		start <- s.number
	}
	s.number++
	s.calls.Wait()
	return time.Since(s.came)
}

// end has the replicas return.
func (s *swarm) end() error {
	for _, start := range s.starts {
		close(start)
	}
	return <-s.done
}
