// Package sim connects replicas of one process by a network that is not there, and whose time is simulated: the real
// library runs on it, with as many replicas as memory has room for, and takes as long as the network of package cost
// would have it take.
//
//	torus, err := cost.Torus([]int{8, 8}, cost.Link{BytesPerSecond: 12.5e9, Latency: time.Microsecond})
//	net, eps, err := sim.New(sim.Config{Model: cost.Model{Network: torus}})
//	err = gcl.Run(ctx, len(eps), body, gcl.WithEndpoints(eps))
//	fmt.Println(net.Now()) // how long it took there
//
// # Time
//
// Replicas are goroutines, and take no time. Messages do:
//
//	begins       when both its ends have come to it
//	on its way   on all links of its route at once, at the rate that the fullest of them leaves it
//	arrives      the latency of all links after its last byte was sent
//	is done      when it has been taken; of a chain of folds, when those before it have been
//	Exchange     ends when its messages are done, and then the processor with their overhead and its folds
//
// Links are shared fairly: no message could be faster but at the cost of one that is no faster than it (max-min
// fairness). With [Config.Queued] messages wait in line instead. A link of several cables gives each message one of
// them, that with least to carry.
//
// Time goes on when all replicas wait. The events of an instant happen in an order that does not hang on which
// goroutine was first, so that a run is the same every time, with the faults of [Config.Faults]: [Net.Hash] says so in
// a number. How it is known that all wait is said at [Config.Wait].
//
// Time is [cost.Model.Price] to the nanosecond where all replicas are in step. Where they are not, it may be less,
// since real rounds have no barrier, or more, since a message of a round meets some of another one. It may also be more
// where a cable of a round is not full all the time, which a price takes it to be. The page docs/design/sim.md has a
// table.
//
// # Without data
//
// [Replay] runs a schedule over the same network without replicas, buffers and goroutines: for times of sizes, and of
// numbers of replicas, that no memory holds.
package sim
