package main

import (
	"context"
	"io"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// mode is one of the things that torture does. Each has a file of its own, and its own flags.
type mode struct {
	name string // first argument of the command line
	does string
	run  func(ctx context.Context, args []string, stdout, stderr io.Writer) int // returns the exit code
}

// modes are those that have a name. Without one torture does what the package's comment says first.
var modes = []mode{
	{"blame", "ends one replica of a job again and again, and looks at whom the launcher blames", blame},
	{"detect", "does harm to a data connection, and prints how long it takes to be found", detect},
	{"stand", "runs one job on a busy machine with replicas that pause: none is to count as lost", stand},
	{"survive", "ends replicas of a job whose others go on without them, and looks at what they have done", survive},
	{"soak", "runs a job for long, and looks at what grows in its replicas", soak},
}

// each carries out runs 0 to n-1, so many at a time. After one with an error, or when ctx ends, it begins no other. It
// returns the first error, when all that it has begun have ended.
func each(ctx context.Context, n, atATime int, one func(k int) error) error {
	var all errgroup.Group
	all.SetLimit(atATime)
	var failed atomic.Bool
	for k := 0; k < n && !failed.Load() && ctx.Err() == nil; k++ {
		all.Go(func() error {
			err := one(k)
			if err != nil {
				failed.Store(true)
			}
			return err
		})
	}
	return all.Wait()
}
