package sim_test

import (
	"context"
	"fmt"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/cost"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport/sim"
)

// The same program on two networks of 64 replicas: how long would its all-reduce of 256 KiB take?
func Example() {
	for _, name := range []string{"torus:8x8:12.5e9,1us", "fattree:8x8:12.5e9,1us"} {
		network, err := cost.ParseNetwork(name)
		if err != nil {
			fmt.Println(err)
			return
		}
		net, endpoints, err := sim.New(sim.Config{Model: cost.Model{Network: network}})
		if err != nil {
			fmt.Println(err)
			return
		}
		body := func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 64<<10), gcl.Add)
		}
		err = gcl.Run(context.Background(), len(endpoints), body, gcl.WithEndpoints(endpoints),
			gcl.WithOptions(gcl.Options{Method: methods.Direct}))
		fmt.Println(name, net.Now(), err)
	}
	// Output:
	// torus:8x8:12.5e9,1us 68.429µs <nil>
	// fattree:8x8:12.5e9,1us 49.288µs <nil>
}

// How long would 1 GiB take over 512 replicas, for which there is no memory here?
func ExampleReplayTraffic() {
	network, err := cost.ParseNetwork("torus:8x8x8:12.5e9,1us")
	if err != nil {
		fmt.Println(err)
		return
	}
	ranks := make([]int, network.Replicas())
	for i := range ranks {
		ranks[i] = i
	}
	spec := methods.Spec{Collective: schedule.AllReduce, Method: methods.ClockwiseRing, Size: len(ranks), Ring: ranks,
		Second: ranks}
	traffic, err := spec.Traffic()
	if err != nil {
		fmt.Println(err)
		return
	}
	model := cost.Model{Network: network, Overhead: time.Microsecond}
	took, err := sim.ReplayTraffic(context.Background(), model, traffic, ranks, 1<<30)
	fmt.Println(took, err)
	// Output:
	// 176.573148ms <nil>
}
