package sim

import (
	"fmt"
	"math"
	"slices"
	"time"

	"gogcl.dev/methods/cost"
)

// Config says what is simulated. Its zero value lacks a network only.
type Config struct {
	// Model is the network, of 1 to 8,192 replicas, and the processors at its ends. It is that of package cost, so that
	// price and time come from the same numbers.
	cost.Model

	// Queued has messages wait in line for each cable, first come, first served, and pass on while they arrive (cut
	// through). Without it the messages on a cable share it fairly: max-min fairness.
	Queued bool

	// Seed decides on the faults that come by chance. The same seed has the same happen at the same instants.
	Seed uint64

	// Faults are none in the zero value.
	Faults Faults

	// Wait is synctest.Wait in a bubble of package testing/synctest: it returns when all other goroutines of the bubble
	// wait. Nobody else in the bubble may call it while endpoints are open. Then time is that of the bubble: time.Now,
	// timers and deadlines go by the network's. What takes the time, such as a perfetto.Timeline, is to be made in the
	// bubble.
	//
	// New calls Wait once. Until all endpoints are closed the times of a gcl.Trace go by package time in the whole
	// program. So calls outside of the bubble that begin or end meanwhile have wrong lengths there. A program that is
	// stuck outside of Exchange is a deadlock of the bubble.
	//
	// Without it a replica counts as waiting when it has begun an Exchange, and an instant is over when all do. So a
	// replica is to make its calls one after the other, and is not to wait, outside of them, for what others do in
	// theirs. Time on the processor counts as none, and clocks outside go on as ever. That holds while no replica lets
	// the others wait for a second of real time. After that it counts as away until its next Exchange: messages arrive
	// without it, and silences that have begun end, but time does not go on to faults that are planned.
	Wait func()
}

// Faults are what goes wrong. Replicas are named by their ids.
type Faults struct {
	// Jitter has each message arrive later, by up to so much.
	Jitter time.Duration

	// Slow are replicas that begin each Exchange late.
	Slow []Slow

	// Deaths are replicas that end without a word.
	Deaths []Death

	// Partitions cut replicas off from each other.
	Partitions []Partition

	// Silence is how long after the last word of a replica it counts as lost at the others: a *transport.LostError
	// aborts them. 0 is DefaultSilence.
	Silence time.Duration
}

// DefaultSilence is Faults.Silence where that is 0. It is that of package tcp.
const DefaultSilence = 10 * time.Second

// Slow is a replica that begins each Exchange late.
type Slow struct {
	Replica int
	By      time.Duration
}

// Death is the end of a replica: in one of its calls of Exchange, or at an instant. Its own calls fail from then on
// with [ErrDead].
//
// The others learn of a death by silence alone where nothing but the network connects them: gcl.Run ends the contexts
// of all when one fails, and gcl.New does not.
type Death struct {
	Replica int
	Call    int           // the first is 1. 0: At counts
	At      time.Duration // since New
}

// Partition is a cut through the network, for good: from an instant on no bytes arrive from some replicas at others.
// Those lose them.
type Partition struct {
	From, To []int
	Both     bool          // nor do any the other way
	At       time.Duration // since New
}

// maxReplicas bounds what endpoints keep for each pair.
const maxReplicas = 1 << 13

// check refuses a Config that cannot be.
func (c *Config) check() error {
	if err := c.Model.Check(); err != nil {
		return fmt.Errorf("sim: %w", err)
	}
	n := c.Network.Replicas()
	if n < 1 || n > maxReplicas {
		return fmt.Errorf("sim: a network of %d replicas, want 1 to %d", n, maxReplicas)
	}
	f := &c.Faults
	if f.Jitter < 0 {
		return fmt.Errorf("sim: jitter of %v, want 0 or more", f.Jitter)
	}
	if f.Silence < 0 {
		return fmt.Errorf("sim: a silence of %v, want more than 0, or 0 for %v", f.Silence, DefaultSilence)
	}
	known := func(what string, i int, replicas ...int) error {
		for _, r := range replicas {
			if r < 0 || r >= n {
				return fmt.Errorf("sim: %s %d: replica %d, want 0 to %d", what, i, r, n-1)
			}
		}
		return nil
	}
	for i, s := range f.Slow {
		if err := known("slow replica", i, s.Replica); err != nil {
			return err
		}
		if s.By < 0 {
			return fmt.Errorf("sim: slow replica %d: late by %v, want 0 or more", i, s.By)
		}
	}
	for i, d := range f.Deaths {
		if err := known("death", i, d.Replica); err != nil {
			return err
		}
		switch {
		case d.Call < 0 || d.At < 0:
			return fmt.Errorf("sim: death %d: in call %d, at %v: want neither less than 0", i, d.Call, d.At)
		case d.Call > 0 && d.At > 0:
			return fmt.Errorf("sim: death %d: in call %d and at %v, want one of them", i, d.Call, d.At)
		}
	}
	for i, p := range f.Partitions {
		if err := known("partition", i, slices.Concat(p.From, p.To)...); err != nil {
			return err
		}
		for _, r := range p.From {
			if slices.Contains(p.To, r) {
				return fmt.Errorf("sim: partition %d: replica %d is on both sides", i, r)
			}
		}
		switch {
		case len(p.From) == 0 || len(p.To) == 0:
			return fmt.Errorf("sim: partition %d: from %d replicas to %d, want 1 or more", i, len(p.From), len(p.To))
		case p.At < 0:
			return fmt.Errorf("sim: partition %d: at %v, want 0 or more", i, p.At)
		}
	}
	return nil
}

// tryWait calls Wait, if there is one, and returns its panic as an error.
func (c *Config) tryWait() (err error) {
	if c.Wait == nil {
		return nil
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("sim: Wait panics, want synctest.Wait in a bubble: %v", r)
		}
	}()
	c.Wait()
	return nil
}

// duration rounds to nanoseconds.
func duration(seconds float64) time.Duration {
	if ns := math.Round(seconds * 1e9); ns < math.MaxInt64 {
		return time.Duration(ns)
	}
	return math.MaxInt64
}
