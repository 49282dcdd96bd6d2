// Command quickstart runs each of GCL's five collectives once on four replicas, and shows what went in and came out.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"gogcl.dev/gcl"
)

// replicas is how many there are. Each is a goroutine; gcl.Run starts them.
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

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// run shows the demos on w. The replicas run at the same time, so none of them prints: each notes what it saw in a
// place of its own, and the notes are printed when all are done.
func run(ctx context.Context, w io.Writer) error {
	notes := make([][replicas]string, len(demos))
	err := gcl.Run(ctx, replicas, func(ctx context.Context, c *gcl.Comm) error {
		for i, d := range demos {
			in := input(c.Rank(), d.elems)
			out, err := d.call(ctx, c, in)
			if err != nil {
				return err
			}
			notes[i][c.Rank()] = fmt.Sprintf("%-23s ->  %v", fmt.Sprint(in), out)
		}
		return nil
	})
	if err != nil {
		return err
	}
	var page strings.Builder
	for i, d := range demos {
		fmt.Fprintf(&page, "%s\n", d.title)
		for rank, note := range notes[i] {
			fmt.Fprintf(&page, "  replica %d  %s\n", rank, note)
		}
		page.WriteString("\n")
	}
	_, err = io.WriteString(w, page.String())
	return err
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
