package gcl_test

import (
	"context"
	"fmt"
	"log"
	"strings"

	"gogcl.dev/chunks"
	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/transport"
)

// Replicas run at the same time, so that what they print comes in any order. The examples therefore let each of them
// write to its own place in results, and print when all are done.

func ExampleRun() {
	results := make([]float32, 4)
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		gradients := []float32{float32(c.Rank())}
		if err := gcl.AllReduceInPlace(ctx, c, gradients, gcl.Mean); err != nil {
			return err
		}
		results[c.Rank()] = gradients[0]
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results)
	// Output: [1.5 1.5 1.5 1.5]
}

// The first error ends the collectives of all replicas, and Run returns it.
func ExampleRun_error() {
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 2 {
			return fmt.Errorf("no data")
		}
		_, err := gcl.AllReduce(ctx, c, []int32{1, 2, 3}, gcl.Add)
		return err
	})
	fmt.Println(err)
	// Output: gcl: replica 2: no data
}

func ExampleAllReduce() {
	results := make([][]int32, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) (err error) {
		data := [][]int32{{1, 2, 3, 4}, {5, 6, 7, 8}}[c.Rank()]
		results[c.Rank()], err = gcl.AllReduce(ctx, c, data, gcl.Add)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rank 0:", results[0])
	fmt.Println("rank 1:", results[1])
	// Output:
	// rank 0: [6 8 10 12]
	// rank 1: [6 8 10 12]
}

// A destination is used again and again: the To forms allocate nothing.
func ExampleAllReduceTo() {
	results := make([][]int32, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		data, largest := make([]int32, 2), make([]int32, 2)
		for step := range int32(3) {
			data[0], data[1] = step, int32(c.Rank())
			if err := gcl.AllReduceTo(ctx, c, largest, data, gcl.Max); err != nil {
				return err
			}
		}
		results[c.Rank()] = largest
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results)
	// Output: [[2 1] [2 1]]
}

// Three elements do not divide into two shards of one length, so the last one is padded with zeros.
func ExampleReduceScatter() {
	results := make([][]int32, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) (err error) {
		data := [][]int32{{1, 2, 3}, {10, 20, 30}}[c.Rank()]
		results[c.Rank()], err = gcl.ReduceScatter(ctx, c, data, gcl.Add)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("rank 0:", results[0])
	fmt.Println("rank 1:", results[1])
	// Output:
	// rank 0: [11 22]
	// rank 1: [33 0]
}

func ExampleAllGather() {
	results := make([]string, 3)
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		word := []byte([]string{"one", "two", "six"}[c.Rank()])
		all, err := gcl.AllGather(ctx, c, word)
		if err != nil {
			return err
		}
		results[c.Rank()] = string(all)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results)
	// Output: [onetwosix onetwosix onetwosix]
}

// Rank i gets part i of everyone's data, by rank: the rows below become columns.
func ExampleAllToAll() {
	results := make([][]int32, 3)
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) (err error) {
		data := [][]int32{
			{0, 1, 2},
			{10, 11, 12},
			{20, 21, 22},
		}[c.Rank()]
		results[c.Rank()], err = gcl.AllToAll(ctx, c, data)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	for rank, out := range results {
		fmt.Printf("rank %d: %v\n", rank, out)
	}
	// Output:
	// rank 0: [0 10 20]
	// rank 1: [1 11 21]
	// rank 2: [2 12 22]
}

func ExampleBroadcast() {
	results := make([][]float64, 3)
	err := gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) (err error) {
		data := make([]float64, 2) // only the root's is read
		if c.Rank() == 1 {
			data = []float64{3.14, 2.72}
		}
		results[c.Rank()], err = gcl.Broadcast(ctx, c, data, 1)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results)
	// Output: [[3.14 2.72] [3.14 2.72] [3.14 2.72]]
}

// A sum over rows and then one over columns: the first among neighbours, the second among replicas with one place in
// their groups. Both Comms share the replica's connection.
func ExampleComm_Group_lists() {
	groups, err := commgroup.Lists([][]int{{0, 3}, {1, 2, 4}})
	if err != nil {
		log.Fatal(err)
	}
	const replicas = 5
	sums := make([]int64, replicas)
	err = gcl.Run(context.Background(), replicas, func(ctx context.Context, c *gcl.Comm) error {
		c, err := c.Group(groups)
		if err != nil {
			return err
		}
		data := []int64{int64(c.Replica())}
		err = gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		sums[c.Replica()] = data[0]
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sums of {0 3} and {1 2 4}:", sums)
	// Output: sums of {0 3} and {1 2 4}: [3 7 7 3 7]
}

func ExampleComm_Split() {
	const replicas = 5
	sums := make([]int64, replicas)
	err := gcl.Run(context.Background(), replicas, func(ctx context.Context, c *gcl.Comm) error {
		colour := c.Replica() % 2
		c, err := c.Split(ctx, colour)
		if err != nil {
			return err
		}
		data := []int64{int64(c.Replica())}
		err = gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
		sums[c.Replica()] = data[0]
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sums of even and odd replicas:", sums)
	// Output: sums of even and odd replicas: [6 4 6 4 6]
}

func ExampleComm_Group() {
	const replicas = 6
	rows, columns := make([]int64, replicas), make([]int64, replicas)
	err := gcl.Run(context.Background(), replicas, func(ctx context.Context, c *gcl.Comm) error {
		row, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 3})
		if err != nil {
			return err
		}
		column, err := c.Group(commgroup.Group{Type: commgroup.Orthogonal, Size: 2})
		if err != nil {
			return err
		}
		data := []int64{int64(c.Replica())}
		if err := gcl.AllReduceInPlace(ctx, row, data, gcl.Add); err != nil {
			return err
		}
		rows[c.Replica()] = data[0]
		if err := gcl.AllReduceInPlace(ctx, column, data, gcl.Add); err != nil {
			return err
		}
		columns[c.Replica()] = data[0]
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("sums of {0 1 2} and {3 4 5}:", rows)
	fmt.Println("and of those over the rows: ", columns)
	// Output:
	// sums of {0 1 2} and {3 4 5}: [3 3 3 12 12 12]
	// and of those over the rows:  [15 15 15 15 15 15]
}

// Three numbers on four IPUs of one replica: each IPU has a row, and ends with one of four fragments of the sum, of
// which the first is empty. The ladder's ring order is 0 2 3 1.
func ExampleReduceScatterWithinReplica() {
	var scattered chunks.Chunks[int32]
	var gathered [][]int32
	err := gcl.Run(context.Background(), 1, func(ctx context.Context, c *gcl.Comm) (err error) {
		rows := [][]int32{{1, 2, 3}, {10, 20, 30}, {100, 200, 300}, {1000, 2000, 3000}}
		if scattered, err = gcl.ReduceScatterWithinReplica(ctx, c, rows, gcl.Add); err != nil {
			return err
		}
		gathered, err = gcl.AllGatherWithinReplica(ctx, c, scattered)
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	for ipu, chunk := range scattered.List {
		fmt.Printf("IPU %d: index %d %v, gathered %v\n", ipu, chunk.Index, chunk.Data, gathered[ipu])
	}
	// Output:
	// IPU 0: index 0 [], gathered [1111 2222 3333]
	// IPU 1: index 3 [3333], gathered [1111 2222 3333]
	// IPU 2: index 1 [1111], gathered [1111 2222 3333]
	// IPU 3: index 2 [2222], gathered [1111 2222 3333]
}

// Two ranks of two IPUs: rows 0 and 2, of offset 0, are one reduction, rows 1 and 3 another.
func ExampleAllReduceWithinReplica() {
	var out [][]int32
	err := gcl.Run(context.Background(), 1, func(ctx context.Context, c *gcl.Comm) (err error) {
		rows := [][]int32{{1, 2, 3}, {7}, {10, 20, 30}, {70}}
		out, err = gcl.AllReduceWithinReplica(ctx, c, rows, gcl.Add)
		return err
	}, gcl.WithOptions(gcl.Options{IPUsPerRank: 2}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out)
	// Output: [[11 22 33] [77] [11 22 33] [77]]
}

// A Comm has options; With returns one with others. A method given by name is used whatever the size.
func ExampleComm_With() {
	results := make([]int32, 5)
	err := gcl.Run(context.Background(), 5, func(ctx context.Context, c *gcl.Comm) error {
		ring, err := c.With(gcl.Options{Method: methods.MeetInMiddleRing})
		if err != nil {
			return err
		}
		out, err := gcl.AllReduce(ctx, ring, []int32{int32(c.Rank())}, gcl.Add)
		if err != nil {
			return err
		}
		results[c.Rank()] = out[0]
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results)
	// Output: [10 10 10 10 10]
}

// Four numbers whose sum depends on where one begins. A ring begins elsewhere for each element; Reproducible adds in
// the order of the ranks whatever the method: ((1e8 + 1) + -1e8) + 1, where 1e8 + 1 is 1e8 in float32.
func ExampleOptions_reproducible() {
	var plain, reproducible []float32
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		x := []float32{1e8, 1, -1e8, 1}[c.Rank()]
		data := []float32{x, x, x, x}
		ring, err := c.With(gcl.Options{Method: methods.ClockwiseRing})
		if err != nil {
			return err
		}
		sums, err := gcl.AllReduce(ctx, ring, data, gcl.Add)
		if err != nil {
			return err
		}
		inOrder, err := c.With(gcl.Options{Method: methods.ClockwiseRing, Reproducible: true})
		if err != nil {
			return err
		}
		ordered, err := gcl.AllReduce(ctx, inOrder, data, gcl.Add)
		if c.Rank() == 0 { // the others have the same
			plain, reproducible = sums, ordered
		}
		return err
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("round the ring:", plain)
	fmt.Println("in rank order: ", reproducible)
	// Output:
	// round the ring: [0 1 0 1]
	// in rank order:  [1 1 1 1]
}

// Communication beside computation: Start returns at once, and Wait says when the buffer is the caller's again.
func ExampleComm_Start() {
	results := make([]string, 2)
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		layer1 := []float32{1, 2, 3}
		sum := c.Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, layer1, gcl.Add)
		})

		layer2 := float32(0) // computed meanwhile
		for i := range 10 {
			layer2 += float32(i)
		}

		if err := sum.Wait(); err != nil {
			return err
		}
		results[c.Rank()] = fmt.Sprint(layer1, layer2)
		return nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(results[0])
	fmt.Println(results[1])
	// Output:
	// [2 4 6] 45
	// [2 4 6] 45
}

// A Trace that counts what replica 0 sends, by method.
func ExampleTrace() {
	sent := map[string]int{} // written on one goroutine, as only replica 0 is counted
	trace := &gcl.Trace{Segment: func(c gcl.TraceCall, _ int, s gcl.TraceSegment) {
		if c.Replica == 0 && s.Kind == transport.Send {
			sent[c.Method.String()] += s.Bytes
		}
	}}
	err := gcl.Run(context.Background(), 4, func(ctx context.Context, c *gcl.Comm) error {
		for _, m := range []methods.Method{methods.SendToAll, methods.ClockwiseRing} {
			c, err := c.With(gcl.Options{Method: m, Implementation: gcl.Syncless, Trace: trace})
			if err != nil {
				return err
			}
			if err := gcl.AllReduceInPlace(ctx, c, make([]float32, 1000), gcl.Add); err != nil {
				return err
			}
		}
		return nil
	})
	fmt.Println(sent, err)
	// Output: map[broadcast:12000 clockwise_ring:6000] <nil>
}

// Replica 1 leaves out a call. Dump shows that it has made one fewer than the other, which was in the third.
func ExampleDump() {
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		for step := range 3 {
			c := c.Named(fmt.Sprintf("step %d", step))
			if step == 2 && c.Rank() == 1 {
				_, err := gcl.AllGather(ctx, c, []float32{1}) // where the other reduces
				return err
			}
			if err := gcl.AllReduceInPlace(ctx, c, []float32{1}, gcl.Add); err != nil {
				return err
			}
		}
		return nil
	})
	for line := range strings.Lines(gcl.Dump(err)) {
		if strings.HasPrefix(line, "replica ") { // the tables below have times
			fmt.Print(line)
		}
	}
	// Output:
	// replica 0, connection 0: 3 collectives
	// replica 1, connection 0: 3 collectives
}

func ExampleParseOptions() {
	options, err := gcl.ParseOptions(map[string]string{
		"collectiveImplementation": "Syncless",
		"method":                   "bidirectional_ring_pair",
		"maxBytesPerTile":          "20000",
	})
	if err != nil {
		log.Fatal(err)
	}
	err = gcl.Run(context.Background(), 3, func(ctx context.Context, c *gcl.Comm) error {
		sum, err := gcl.AllReduce(ctx, c, []int32{1, 2, 3}, gcl.Add)
		if c.Rank() == 0 {
			fmt.Println(sum, "by", c.Options().Method)
		}
		return err
	}, gcl.WithOptions(options))
	if err != nil {
		log.Fatal(err)
	}
	_, err = gcl.ParseOptions(map[string]string{"link": "gwlink"})
	fmt.Println(err)
	// Output:
	// [3 6 9] by bidirectional_ring_pair
	// gcl: option link=gwlink: no such value, the closest is gw-link; want one of auto-link, ipu-link, gw-link
}
