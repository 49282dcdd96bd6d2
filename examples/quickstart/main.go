// Command quickstart runs each of GCL's five collectives once on four replicas, and shows what went in and came out.
//
//	go run ./examples/quickstart
//
// Each replica is a goroutine. Under a launcher each is a process:
//
//	go build -o quickstart ./examples/quickstart
//	go run ./cmd/gclrun -n 4 ./quickstart
//	mpirun -np 4 ./quickstart
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"strings"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
)

// replicas is how many there are. gcl.RunOrJoin starts them, or joins those that a launcher has started.
const replicas = 4

// demo is one collective: what to call it, and the call.
type demo struct {
	title string
	elems int // how many elements each replica puts in
	call  func(ctx context.Context, c *gcl.Comm, in []int32) (out []int32, err error)
}

// demos are GCL's five collectives, in the order in which they are shown.
var demos = []demo{
	{"all-reduce, Add: everyone gets the sum of all", 4,
		func(ctx context.Context, c *gcl.Comm, in []int32) ([]int32, error) {
			return gcl.AllReduce(ctx, c, in, gcl.Add)
		}},
	{"reduce-scatter, Add: replica i gets part i of the sum", 4,
		func(ctx context.Context, c *gcl.Comm, in []int32) ([]int32, error) {
			return gcl.ReduceScatter(ctx, c, in, gcl.Add)
		}},
	{"all-gather: everyone gets what everyone had, one after another", 1,
		func(ctx context.Context, c *gcl.Comm, in []int32) ([]int32, error) {
			return gcl.AllGather(ctx, c, in)
		}},
	{"all-to-all: replica i gets part i of what everyone had", 4,
		func(ctx context.Context, c *gcl.Comm, in []int32) ([]int32, error) {
			return gcl.AllToAll(ctx, c, in)
		}},
	{"broadcast from 2: everyone gets what replica 2 had", 4,
		func(ctx context.Context, c *gcl.Comm, in []int32) ([]int32, error) {
			return gcl.Broadcast(ctx, c, in, 2)
		}},
}

func main() { command.Main("quickstart", run) }

// run looks at the command line, which has nothing but -h, shows the demos, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	if code, ok := command.Flags(flags, args, stdout, stderr, "Runs five collectives on four replicas, and shows what "+
		"went in and came out."); !ok {
		return code
	}
	if err := show(ctx, stdout); err != nil {
		return command.Ended(ctx, "quickstart", err, stderr)
	}
	return command.OK
}

// show shows the demos on w. The replicas run at the same time, so none of them prints: each notes what it saw, and
// replica 0, which gets all the notes, prints when all are done. The others may be other processes.
func show(ctx context.Context, w io.Writer) error {
	return gcl.RunOrJoin(ctx, replicas, func(ctx context.Context, c *gcl.Comm) error {
		notes := make([]byte, len(demos)*noteBytes)
		for i, d := range demos {
			in := input(c.Rank(), d.elems)
			out, err := d.call(ctx, c, in)
			if err != nil {
				return err
			}
			copy(notes[i*noteBytes:(i+1)*noteBytes], fmt.Sprintf("%-23s ->  %v", fmt.Sprint(in), out))
		}
		all, err := gcl.AllGather(ctx, c, notes)
		if err != nil || c.Rank() != 0 {
			return err
		}
		_, err = io.WriteString(w, page(all))
		return err
	})
}

// noteBytes is the room for what a replica saw of one demo.
const noteBytes = 80

// page is the text for the notes of all replicas.
func page(all []byte) string {
	var b strings.Builder
	for i, d := range demos {
		fmt.Fprintf(&b, "%s\n", d.title)
		for rank := range replicas {
			at := (rank*len(demos) + i) * noteBytes
			fmt.Fprintf(&b, "  replica %d  %s\n", rank, strings.TrimRight(string(all[at:at+noteBytes]), "\x00"))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// input is what a replica puts in: 1 2 3 4 on replica 0, 10 20 30 40 on replica 1, 100 200 300 400 on replica 2, and so
// on. Every digit of a sum then tells whose it is.
func input(rank, elems int) []int32 {
	unit := int32(1)
	for range rank {
		unit *= 10
	}
	in := make([]int32, elems)
	for j := range in {
		in[j] = int32(j+1) * unit
	}
	return in
}
