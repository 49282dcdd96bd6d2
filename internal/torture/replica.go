package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/tensor"
)

// order is what torture tells a process that it has started, in the environment variable orderVariable.
type order struct {
	Seed      uint64
	Processes int    // of newPlan
	Network   string // of newPlan
	Rank      int
	Where     string // of JoinConfig.Rendezvous
	Corrupt   int    // a step of which the replica spoils the result, or -1

	Stand   *standOrder   `json:",omitempty"` // of mode stand, in place of a plan
	Survive *surviveOrder `json:",omitempty"` // of mode survive, in place of a plan

	host string // the file of the network namespace to start it in; "": this one
}

const orderVariable = "GCLTORTURE_ORDER"

// report is how a replica ended. A line with it is the last thing that the replica writes.
type report struct {
	Rank  int
	Error string // "": all results are right

	Wrong     bool // a result is not right
	Aborted   bool // gcl.ErrAborted
	Closed    bool // gcl.ErrClosed
	Mismatch  bool // gcl.ErrMismatch
	Cancelled bool // the cause of the cancelled context
	Own       bool // the error that the function of RunProcess has returned
	Panicked  bool // *gcl.PanicError
	Peer      int  // whom a *gcl.PeerError names, or -1

	Left []string // goroutines, descriptors and the like

	Survived *survived `json:",omitempty"` // of mode survive
}

// The lines that a replica writes, beside its report in JSON.
const (
	atLine   = "at "   // and the step that it begins
	stopLine = "stop " // it is about to stop itself
	outLine  = "out "  // its program has ended, and it waits for the end of its standard input
	endLine  = "end "  // and the report
	goodLine = "good " // and when it has done the first step after others were gone, in nanoseconds of the clock
)

// causeOf is the text of every error that a victim makes.
func causeOf(seed uint64) string { return fmt.Sprintf("torture by seed %d", seed) }

// patience is the time for a run.
const patience = 10 * time.Second

// joinTime is the time for all to come, in a run in which one does not.
const joinTime = 3 * time.Second

// leaveTime is the time for a replica to give back what it has, when it has ended.
const leaveTime = 4 * time.Second

// replica is a process of a run. It returns the exit code.
func replica(text string) int {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 2
	}
	if o.Stand != nil {
		return say(standReplica(o))
	}
	if o.Survive != nil {
		return say(surviveReplica(o))
	}
	p := newPlan(o.Seed, o.Processes, o.Network)
	cfg := gcl.JoinConfig{Rank: o.Rank, Size: p.n, Job: fmt.Sprint("torture ", o.Seed), Rendezvous: o.Where,
		Transport: p.transport, Secret: []byte("torture"), Timeout: patience}
	if p.event == silence || p.event == garbage {
		cfg.Silence = silenceTime
	}
	if p.moment == joining {
		cfg.Timeout = joinTime
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.I64, tensor.U8} {
		if err := ownOperators[d](); err != nil {
			fmt.Fprintln(os.Stderr, "torture:", err)
			return 2
		}
	}
	warmUp()
	goroutines, descriptors := runtime.NumGoroutine(), len(openDescriptors())
	own, cancelled := errors.New(causeOf(o.Seed)), errors.New(causeOf(o.Seed))
	var stop context.CancelCauseFunc
	v := newVictim(&p, own)
	if o.Rank == p.victim && p.moment == joining {
		go v.strike()
	}
	err := gcl.RunProcess(context.Background(), cfg, func(ctx context.Context, c *gcl.Comm) error {
		ctx, stop = context.WithCancelCause(ctx)
		v.comm, v.cancel = c, func() { stop(cancelled) }
		defer v.rest()
		err := p.run(ctx, c, func(k int) error {
			if o.Rank != p.victim {
				return nil
			}
			return v.begin(k)
		}, o.Corrupt)
		if o.Rank == p.victim && p.moment == closing && err == nil {
			go v.strike()
		}
		return err
	})
	if stop != nil { // not before: after a panic other steps may be running
		stop(nil)
	}
	r := newReport(o.Rank, err, own, cancelled)
	var changed int
	if p.event == silence && o.Rank != p.victim {
		fmt.Println(outLine)
		io.Copy(io.Discard, os.Stdin)
		changed = kept.changed()
	}
	for until := time.Now().Add(leaveTime); ; time.Sleep(time.Millisecond) {
		r.Left = nil
		if changed > 0 {
			r.Left = append(r.Left, fmt.Sprintf("%d buffers that change after their calls", changed))
		}
		if n := runtime.NumGoroutine(); n > goroutines {
			r.Left = append(r.Left, fmt.Sprintf("%d goroutines", n-goroutines))
		}
		if n := len(openDescriptors()) - descriptors; n > 0 {
			r.Left = append(r.Left, fmt.Sprintf("%d descriptors: %s", n, strings.Join(openDescriptors(), ", ")))
		}
		if n := len(segments()); n > 0 {
			r.Left = append(r.Left, fmt.Sprintf("%d segments of shared memory", n))
		}
		if len(r.Left) == 0 || time.Now().After(until) {
			break
		}
	}
	if len(r.Left) > 0 {
		stacks := make([]byte, 1<<20)
		os.Stderr.Write(stacks[:runtime.Stack(stacks, true)])
	}
	return say(r)
}

// say writes a report, and returns the exit code.
func say(r report) int {
	line, err := json.Marshal(r)
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		return 2
	}
	fmt.Println(endLine + string(line))
	return 0
}

// newReport says what an error is. own and cancelled are those that the victim makes.
func newReport(rank int, err, own, cancelled error) report {
	r := report{Rank: rank, Peer: -1}
	if err == nil {
		return r
	}
	var wrong *wrongError
	var panicked *gcl.PanicError
	r.Error = err.Error()
	r.Wrong = errors.As(err, &wrong)
	r.Aborted, r.Closed = errors.Is(err, gcl.ErrAborted), errors.Is(err, gcl.ErrClosed)
	r.Mismatch = errors.Is(err, gcl.ErrMismatch)
	r.Cancelled, r.Own = errors.Is(err, cancelled), errors.Is(err, own)
	r.Panicked = errors.As(err, &panicked)
	if peer, ok := errors.AsType[*gcl.PeerError](err); ok {
		r.Peer = peer.Replica
	}
	return r
}
