// Command trouble is a job that goes wrong in a way that is asked for, to see what can be seen of it:
//
//	go build -o . ./cmd/gclrun ./internal/trouble
//	GCL_DUMP_DIR=dump ./gclrun -n 8 -grace 1s ./trouble -kind lock
//	./gclrun explain dump
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

func main() { command.Main("trouble", run) }

// kind is a way in which a job goes wrong.
type kind struct {
	name string
	does string // what the replica does that is to blame
	harm func(ctx context.Context, c *gcl.Comm) error
	over string // the transport that it takes; "": any
}

// kinds are all of them. The replica to blame does its harm in the place of an all-reduce, with others after it.
var kinds = []kind{
	{name: "none", does: "nothing", harm: next},
	{name: "user", does: "computes", harm: func(ctx context.Context, c *gcl.Comm) error {
		compute()
		return next(ctx, c)
	}},
	{name: "lock", does: "waits for a lock", harm: func(ctx context.Context, c *gcl.Comm) error {
		takeLock()
		return next(ctx, c)
	}},
	{name: "fewer", does: "makes one call fewer, and returns",
		harm: func(context.Context, *gcl.Comm) error { return nil }},
	{name: "order", does: "makes two calls in another order", harm: func(ctx context.Context, c *gcl.Comm) error {
		return errors.Join(c.Named("epoch").Barrier(ctx), next(ctx, c))
	}},
	{name: "group", does: "makes a call in another group", harm: func(ctx context.Context, c *gcl.Comm) error {
		half, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: c.Size() / 2})
		if err != nil {
			return err
		}
		return next(ctx, half.Named("half"))
	}},
	{name: "stopped", does: "is stopped by a signal", harm: func(ctx context.Context, c *gcl.Comm) error {
		return errors.Join(raise(stopSignal), next(ctx, c))
	}},
	{name: "killed", does: "is killed by a signal",
		harm: func(context.Context, *gcl.Comm) error { return raise(killSignal) }},
	{name: "silent", does: "has connections that carry nothing any more (Linux)", harm: next, over: "tcp"},
	{name: "error", does: "returns an error", harm: func(context.Context, *gcl.Comm) error { return errData }},
	{name: "full", does: "returns an error, and can write no file (Linux)",
		harm: func(context.Context, *gcl.Comm) error { return errors.Join(errData, writeNothing()) }},
	{name: "panic", does: "panics", harm: func(_ context.Context, c *gcl.Comm) error { return look(nil, c.Rank()) }},
	{name: "slow", does: "comes late to every other call, without an end"},
}

// errData is what goes wrong outside of the library.
var errData = errors.New("samples-0003.bin: no such file")

// look panics.
func look(table []error, rank int) error { return table[rank] }

// calls is how many calls go well before the harm.
const calls = 20

// run is the program.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("trouble", flag.ContinueOnError)
	var names []string
	for _, k := range kinds {
		names = append(names, k.name)
	}
	name := flags.String("kind", "none", "`what` goes wrong: "+strings.Join(names, ", "))
	victim := flags.Int("replica", 3, "which `replica` is to blame")
	limit := flags.Duration("limit", 0, "how long a call may take; 0: as long as it likes")
	stall := flags.Duration("stall", 30*time.Second, "after which a call that waits is logged")
	late := flags.Duration("late", 2*time.Millisecond, "how late the replica of kind slow comes")
	silence := flags.Duration("silence", 0, "JoinConfig.Silence; 0: its default")
	var does strings.Builder
	does.WriteString("A job that goes wrong, to be started by gclrun.\n\nWhat the replica does that is to blame:\n\n")
	for _, k := range kinds {
		fmt.Fprintf(&does, "  %-8s %s\n", k.name, k.does)
	}
	if code, ok := command.Flags(flags, args, stdout, stderr, does.String()); !ok {
		return code
	}
	i := slices.Index(names, *name)
	if i < 0 {
		return command.Mistake("trouble", fmt.Errorf("-kind %q, want one of %s", *name, strings.Join(names, ", ")),
			stderr)
	}
	cfg := gcl.JoinConfig{Silence: *silence, Transport: kinds[i].over}
	body := func(ctx context.Context, c *gcl.Comm) error {
		return kinds[i].job(ctx, c.Named("grads"), *victim, *limit, *late)
	}
	err := gcl.RunProcess(ctx, cfg, body, gcl.WithStallAfter(*stall))
	if err != nil {
		return command.Ended(ctx, "trouble", err, stderr)
	}
	fmt.Fprintln(stdout, "done")
	return command.OK
}

// job is what a replica does.
func (k *kind) job(ctx context.Context, c *gcl.Comm, victim int, limit, late time.Duration) error {
	slow := k.name == "slow" && c.Replica() == victim
	for call := 0; call < calls || k.name == "slow"; call++ {
		if slow && call%2 == 0 {
			time.Sleep(late)
		}
		if err := next(ctx, c); err != nil {
			return err
		}
	}
	if k.name == "silent" {
		if err := cutOff(ctx, c, victim); err != nil {
			return err
		}
	}
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	harm := next
	if c.Replica() == victim {
		harm = k.harm
	}
	if err := harm(ctx, c); err != nil || k.name == "fewer" && c.Replica() == victim {
		return err
	}
	if err := next(ctx, c); err != nil {
		return err
	}
	return c.Named("epoch").Barrier(ctx)
}

// next is a step of the program.
func next(ctx context.Context, c *gcl.Comm) error {
	_, err := gcl.AllReduce(ctx, c, make([]float32, 1000), gcl.Mean)
	return err
}

// compute goes on for as long as the process, but leaves a machine of few cores some time for others.
func compute() {
	for {
		time.Sleep(time.Millisecond)
	}
}

// takeLock waits for a lock that this goroutine holds.
func takeLock() {
	var mu sync.Mutex
	mu.Lock()
	mu.Lock()
}

// raise sends this process a signal.
func raise(s os.Signal) error {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := self.Signal(s); err != nil {
		return err
	}
	time.Sleep(time.Second) // until it comes
	return nil
}
