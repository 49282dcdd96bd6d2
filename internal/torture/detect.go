package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/meddler"
	"gogcl.dev/transport"
	"gogcl.dev/transport/tcp"
)

// detecting is what mode detect does: it does harm to the data connection between two replicas.
type detecting struct {
	runs, jobs int
	harm       string
	silence    time.Duration
}

// harms are what may happen to a data connection: which bytes come through, and whether it is reset.
var harms = map[string]struct {
	filter  func(back bool, b []byte) []byte
	reset   bool
	garbled bool // what is left of the stream may be read as something that is no message
}{
	"silence": {filter: func(bool, []byte) []byte { return nil }},
	"one-way": {filter: func(back bool, b []byte) []byte {
		if back {
			return nil
		}
		return b
	}},
	"lost":  {filter: func(_ bool, b []byte) []byte { return b[:max(len(b)-195, 0)] }, garbled: true},
	"reset": {filter: func(_ bool, b []byte) []byte { return b }, reset: true},
}

// detect carries out mode detect.
func detect(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var d detecting
	flags := flag.NewFlagSet("torture detect", flag.ContinueOnError)
	flags.StringVar(&d.harm, "harm", "silence", "`what` happens: silence (nothing comes through any more), one-way (nothing "+
		"in one direction), lost (195 bytes of what comes through at a time are missing), reset")
	flags.IntVar(&d.runs, "runs", 300, "number of `runs`")
	flags.IntVar(&d.jobs, "j", 4, "number of `runs` at a time")
	flags.DurationVar(&d.silence, "silence", 2*time.Second, "Config.Silence")
	err := command.Parse(flags, args, stdout, "Does harm to the data connection between two replicas while they "+
		"exchange messages, and prints after how long both have an error that names the other one.")
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	_, known := harms[d.harm]
	switch {
	case err != nil:
	case !known:
		err = fmt.Errorf("-harm %s, want silence, one-way, lost or reset", d.harm)
	case d.runs < 1 || d.jobs < 1 || d.jobs > 64 || d.silence <= 0:
		err = fmt.Errorf("-runs %d, -j %d, -silence %v: want 1 or more, 1 to 64, more than 0", d.runs, d.jobs, d.silence)
	}
	if err != nil {
		return command.Mistake("torture", err, stderr)
	}
	var mu sync.Mutex // guards what follows
	var times []time.Duration
	failed := each(ctx, d.runs, d.jobs, func(int) error {
		took, err := d.one(ctx)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			times = append(times, took)
		}
		return err
	})
	slices.Sort(times)
	if n := len(times); n > 0 {
		at := func(p int) time.Duration { return times[(n-1)*p/100].Round(time.Millisecond) }
		fmt.Fprintf(stdout, "%s, Silence %v: %d runs, p50 %v, p90 %v, p99 %v, greatest %v\n", d.harm, d.silence, n, at(50),
			at(90), at(99), at(100))
	}
	switch {
	case ctx.Err() != nil:
		return command.Ended(ctx, "torture", ctx.Err(), stderr)
	case failed != nil:
		fmt.Fprintf(stderr, "torture: %v\n", failed)
		return command.Failed
	}
	return command.OK
}

// calmRounds is how many rounds go well before the harm.
const calmRounds = 50

// one does harm once, and returns how long it takes until both replicas have an error.
func (d *detecting) one(ctx context.Context) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, 10*d.silence+time.Minute)
	defer cancel()
	harm := harms[d.harm]
	var harmed atomic.Bool
	var listeners [2]*tcp.Listener
	addresses := make([]tcp.Address, 2)
	for r := range listeners {
		c := tcp.Config{Rank: r, Size: 2, Network: tcp.TCP, Job: "detect", Secret: make([]byte, 32), Silence: d.silence,
			Crowded: true}
		if listeners[r], err = tcp.Listen(c); err != nil {
			return 0, err
		}
		addresses[r] = listeners[r].Address()
	}
	proxy, err := meddler.New(addresses[1].TCP, func(number int, back bool, b []byte) []byte {
		if number == 0 || !harmed.Load() { // replica 0 dials the control connection first
			return b
		}
		return harm.filter(back, b)
	})
	if err != nil {
		return 0, err
	}
	defer proxy.Close()
	addresses[1].TCP = proxy.Address()
	var began time.Time
	var once sync.Once
	var errs [2]error
	var ended [2]time.Time
	var both sync.WaitGroup
	for r, l := range listeners {
		both.Go(func() {
			e, err := l.Connect(ctx, addresses)
			if err != nil {
				errs[r] = err
				return
			}
			defer e.Close()
			buf := make([]byte, 1000)
			for k := 0; errs[r] == nil; k++ {
				if k == calmRounds {
					once.Do(func() {
						began = time.Now()
						harmed.Store(true)
						if harm.reset {
							proxy.Reset(1)
						}
					})
				}
				errs[r] = e.Exchange(ctx, transport.Call{Group: 1, Seq: uint64(k + 1)}, []transport.Transfer{
					{Kind: transport.Send, Peer: 1 - r, Buf: buf}, {Kind: transport.Recv, Peer: 1 - r, Buf: make([]byte, 1000)}})
			}
			ended[r] = time.Now()
		})
	}
	both.Wait()
	for r, err := range errs {
		if cause := context.Cause(ctx); cause != nil {
			return 0, fmt.Errorf("replica %d: %w", r, cause)
		}
		if began.IsZero() {
			return 0, fmt.Errorf("replica %d, before the harm: %w", r, err)
		}
		var lost *transport.LostError
		if !errors.As(err, &lost) && !harm.garbled {
			return 0, fmt.Errorf("replica %d: %w: want that the other one is lost", r, err)
		}
	}
	return max(ended[0].Sub(began), ended[1].Sub(began)), nil
}
