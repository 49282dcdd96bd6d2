package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/tcp"
)

// The tests of this file have replicas of this process work over sockets and over tcp.Shm, where sends are buffered,
// and peer memory is that of Alloc or none. Other tests show what methods and operators do; these thin it out.

// onSockets runs a test on unix sockets; on other systems, and with -full, over TCP; with -full, over shared memory.
func onSockets(t *testing.T, test func(t *testing.T, network tcp.Network)) {
	onNetworks(t, func(t *testing.T, network tcp.Network) {
		if network != tcp.Unix && runtime.GOOS == "linux" && !*full {
			t.Skip("TestSockets and the suite of transports are for all networks")
		}
		test(t, network)
	})
}

// onNetworks runs a test on each network.
func onNetworks(t *testing.T, test func(t *testing.T, network tcp.Network)) {
	leaktest.Check(t)
	for _, network := range []tcp.Network{tcp.Unix, tcp.TCP, tcp.Shm} {
		t.Run("network="+string(network), func(t *testing.T) {
			if network != tcp.TCP && runtime.GOOS != "linux" {
				t.Skip("unix sockets and shared memory need Linux")
			}
			if network == tcp.TCP && underRace && runtime.GOOS == "linux" {
				t.Skip("the goroutines are those of unix sockets")
			}
			test(t, network)
		})
	}
}

// endpointsOn makes endpoints over sockets.
func endpointsOn(t testing.TB, network tcp.Network, n int) []transport.Endpoint {
	t.Helper()
	endpoints, err := tcp.New(n, network)
	if err != nil {
		t.Fatal(err)
	}
	return endpoints
}

// sockets has Run use replicas over sockets.
func sockets(t testing.TB, network tcp.Network, n int) gcl.CommOption {
	t.Helper()
	return gcl.WithEndpoints(endpointsOn(t, network, n))
}

// apartOn makes Comms over sockets that know no more of each other than those of processes do: each has flight
// recorders of its own.
func apartOn(t testing.TB, network tcp.Network, n int) []*gcl.Comm {
	t.Helper()
	comms := make([]*gcl.Comm, n)
	for i, e := range endpointsOn(t, network, n) {
		comms[i] = must(gcl.New(e))
	}
	return comms
}

// TestSockets tries collectives, methods, operators and element types over sockets. Operators and lengths know nothing
// of networks: all of them are tried on unix sockets, a few on the others, and under the race detector few on all.
func TestSockets(t *testing.T) {
	onNetworks(t, func(t *testing.T, network tcp.Network) {
		opts := func(t *testing.T, n int) []gcl.CommOption { return []gcl.CommOption{sockets(t, network, n)} }
		add := []gcl.Operator{gcl.Add}
		thin := !*full && (underRace || network != tcp.Unix)
		tables := []crossed{
			{1, add, []int{97}, fewWays()},
			{2, add, []int{1, 4099}, bothWays()},
			{3, []gcl.Operator{gcl.Add, gcl.SquareAdd}, []int{0, 1, 4, 4099, 100_003}, eachMethod()},
			{5, add, []int{4, 4099}, eachMethod()},
		}
		if thin {
			tables[2] = crossed{3, add, []int{0, 4099}, eachMethod()}
			tables[3].sizes = []int{4}
			tables = append(tables, crossed{4, []gcl.Operator{gcl.SquareAdd}, []int{100_003}, fewWays()})
		}
		crossOn[float32](t, tables, opts)
		few := func(n int, ops []gcl.Operator) []crossed {
			if thin {
				ops = ops[:min(len(ops), 2)]
			}
			return []crossed{{n, ops, []int{1, 4099}, fewWays()}}
		}
		crossOn[tensor.BFloat16](t, few(4, operators[tensor.BFloat16]()), opts)
		crossOn[float64](t, few(3, []gcl.Operator{gcl.Mean, gcl.Max}), opts)
		crossOn[int64](t, few(3, operators[int64]()), opts)
		crossOn[uint8](t, few(2, []gcl.Operator{gcl.Add, gcl.Mul}), opts)
		crossOn[bool](t, few(3, operators[bool]()), opts)
	})
}

// TestMatrixShared is TestMatrix over memory that processes share, with buffers that peers reach and others. Without
// -full it is of float32 in the groups of TestSockets, and of three lengths.
func TestMatrixShared(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("shared memory between processes needs Linux")
	}
	opts := func(t *testing.T, n int) []gcl.CommOption { return []gcl.CommOption{sockets(t, tcp.Shm, n)} }
	few := func(tables []crossed) []crossed {
		if *full {
			return tables
		}
		for i := range tables {
			tables[i].sizes = []int{0, tables[i].n + 1, 4099}
		}
		return slices.DeleteFunc(tables, func(x crossed) bool { return x.n > 5 || x.n == 4 })
	}
	crossOn[float32](t, few(matrixCases(*full)), opts)
	if *full {
		crossOn[tensor.BFloat16](t, matrixCases(false), opts)
	}
}

// TestSocketsRooted tries reduce, gather and scatter over sockets.
func TestSocketsRooted(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		for _, n := range []int{2, 3, 4} {
			for _, o := range eachMethod() {
				var cases []rootedCase[float32]
				for i, size := range []int{0, 1, 4*n + 1, 5003} {
					if !underRace || i >= 2 {
						cases = append(cases, newRootedCase(gcl.Add, i%n, inputs[float32](gcl.Add, n, size)))
					}
				}
				tryRooted(t, n, o, cases, sockets(t, network, n))
			}
		}
	})
}

// TestSocketsMany tries the forms on several tensors over sockets, and those of a Batch.
func TestSocketsMany(t *testing.T) {
	const n = 3
	onSockets(t, func(t *testing.T, network tcp.Network) {
		large := []int{4500 * n, 3, 1200*n + 11, 0, 16009, n, 3000 * n}
		cases := []manyCase{newManyCase(gcl.Add, n, large), newManyCase(gcl.Max, n, []int{5}),
			newManyCase(gcl.Mean, n, large[:3]), newManyCase(gcl.LogicalOr, n, large[1:4]),
			newManyCase(gcl.Add, n, nil)}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, o := range append(manyOptions(n), gcl.Options{Reproducible: true}) {
				c := withOptions(c, o)
				for _, x := range cases {
					if err := errors.Join(x.tryReductions(ctx, c), x.tryMoves(ctx, c)); err != nil {
						return fmt.Errorf("method=%v implementation=%v op=%v: %w",
							o.Method, o.Implementation, x.op, err)
					}
				}
			}
			for _, lengths := range [][]int{{}, {7}, {3, 0, 900}, {20000, 1}} {
				for _, collective := range schedule.Collectives() {
					if err := tryBatch(ctx, c, collective, lengths); err != nil {
						return fmt.Errorf("batch: %v of %v: %w", collective, lengths, err)
					}
				}
			}
			return nil
		}, sockets(t, network, n))
	})
}

// TestSocketsHybrid tries phases within and across link domains over sockets.
func TestSocketsHybrid(t *testing.T) {
	const n = 4
	onSockets(t, func(t *testing.T, network tcp.Network) {
		sum, moved := newReduceCase(gcl.Add, inputs[float32](gcl.Add, n, 4099)),
			newMoveCase(inputs[float32](gcl.Local, n, 4099))
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			for _, m := range testMethods {
				c := withOptions(c, gcl.Options{Method: m, Implementation: gcl.Hybrid})
				if err := errors.Join(sum.try(ctx, c), moved.try(ctx, c)); err != nil {
					return fmt.Errorf("method=%v: %w", m, err)
				}
			}
			return nil
		}, sockets(t, network, n), gcl.WithTopology(hosts(t, 2, 2)))
	})
}

// TestSocketsGroups tries groups over sockets, on several connections at a time: what is on one does not get into
// another.
func TestSocketsGroups(t *testing.T) {
	const n = 6
	onSockets(t, func(t *testing.T, network tcp.Network) {
		parts := partitions(n)
		data := inputs[int64](gcl.Local, n, 1001)
		cases := make([][]reduceCase[int64], len(parts)) // by partition and replica
		for i, p := range parts {
			for r := range n {
				own := make([][]int64, p.size)
				for rank, member := range p.members(r) {
					own[rank] = data[member]
				}
				cases[i] = append(cases[i], newReduceCase(gcl.Add, own))
			}
		}
		replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
			first := c
			var works []*gcl.Work
			for i, p := range parts {
				d, err := first.Dup(ctx)
				if err != nil {
					return err
				}
				works = append(works, grouped(d, p.group).Start(ctx, func(ctx context.Context, c *gcl.Comm) error {
					for _, m := range testMethods {
						if err := cases[i][c.Replica()].try(ctx, with(c, m)); err != nil {
							return fmt.Errorf("group %v, method %v: %w", p.group, m, err)
						}
					}
					return nil
				}))
			}
			for _, w := range works {
				if err := w.Wait(); err != nil {
					return err
				}
			}
			for i, p := range parts {
				if err := cases[i][c.Replica()].try(ctx, grouped(first, p.group)); err != nil {
					return err
				}
			}
			return nil
		}, sockets(t, network, n))
	})
}

// TestSocketsMismatch: replicas of which one is in another call all get ErrMismatch, with both sides, while nobody
// leaves.
func TestSocketsMismatch(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		random := rand.New(rand.NewPCG(3, 3))
		for _, n := range []int{2, 3, 4} {
			all := slices.DeleteFunc(variants(n), func(v variant) bool { // Auto carries these out in another way here
				return v.name == "method=auto" || v.name == "operator=LOCAL"
			})
			for i := range all {
				theirs, ours := all[i], all[(i+1)%len(all)]
				if i%2 == 1 {
					ours = all[(i+1+random.IntN(len(all)-1))%len(all)]
				}
				ctx, stop := lookOn(t)
				for _, w := range confuse(ctx, t, n, i%n, theirs, ours, sockets(t, network, n)) {
					t.Error(w)
				}
				stop()
			}
		}
	})
}

// TestSocketsProgramsPart is TestProgramsPart for replicas that know no more of each other than processes do. One of
// them at least gets ErrMismatch, the odd one gets an error, and nobody waits for ever. A replica that has left before
// may not hear of it.
func TestSocketsProgramsPart(t *testing.T) {
	calls, rooted := programCalls()
	local := len(calls) - 1
	refused := len(calls) - 2
	onSockets(t, func(t *testing.T, network tcp.Network) {
		rng := rand.New(rand.NewPCG(1, 8))
		tries := 150
		if network == tcp.TCP {
			tries = 50
		}
		if underRace || testing.Short() {
			tries /= 3
		}
		for range tries {
			p := newOddProgram(rng, calls, rooted, refused)
			if p.other == p.program[p.at] || p.other == local {
				continue
			}
			p.delay(func() time.Duration { return time.Duration(max(rng.IntN(8)-5, 0)) * time.Millisecond })
			errs := make([]error, p.replicas)
			ctx, stop := lookOn(t)
			var all sync.WaitGroup
			for r, c := range apartOn(t, network, p.replicas) {
				all.Go(func() { errs[r] = p.run(ctx, r, c) })
			}
			all.Wait()
			stop()
			found := slices.ContainsFunc(errs, func(err error) bool { return errors.Is(err, gcl.ErrMismatch) })
			for r, err := range errs {
				peer := (*gcl.PeerError)(nil)
				if found && (err == nil && r != p.odd || errors.Is(err, gcl.ErrMismatch) ||
					errors.Is(err, gcl.ErrAborted) || errors.As(err, &peer)) {
					continue
				}
				t.Errorf("replica %d: %v, mismatch found: %v%s", r, err, found, p.text(errs))
				break
			}
		}
	})
}

// TestSocketsClose: what Close says over sockets where a collective with a root has been sent and not read.
func TestSocketsClose(t *testing.T) {
	onSockets(t, func(t *testing.T, network tcp.Network) {
		cast := func(ctx context.Context, c *gcl.Comm) error {
			return gcl.BroadcastInPlace(ctx, withOptions(c, gcl.Options{Method: methods.Direct}), make([]int32, 100), 0)
		}
		nothing := func(context.Context, *gcl.Comm) error { return nil }
		for _, x := range []struct {
			name   string
			late   time.Duration // of the others, after the root
			others func(ctx context.Context, c *gcl.Comm) error
			want   func(r int, err error) bool
		}{
			{"all call", 0, cast, func(_ int, err error) bool { return err == nil }},
			{"all call, late", 30 * time.Millisecond, cast, func(_ int, err error) bool { return err == nil }},
			{"others leave", 0, nothing, func(r int, err error) bool {
				var peer *gcl.PeerError
				return r != 0 || errors.As(err, &peer) && peer.Replica != 0
			}},
			{"others leave, late", 30 * time.Millisecond, nothing, func(r int, err error) bool {
				var peer *gcl.PeerError
				return r != 0 || errors.As(err, &peer) && peer.Replica != 0
			}},
			{"others in a barrier", 0, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) },
				func(_ int, err error) bool { return errors.Is(err, gcl.ErrMismatch) }},
		} {
			const n = 3
			errs := make([]error, n)
			ctx, stop := lookOn(t)
			var all sync.WaitGroup
			for r, c := range apartOn(t, network, n) {
				all.Go(func() {
					call := cast
					if r != 0 {
						call = x.others
						time.Sleep(x.late)
					}
					errs[r] = errors.Join(call(ctx, c), c.Close())
				})
			}
			all.Wait()
			stop()
			for r, err := range errs {
				if !x.want(r, err) {
					t.Errorf("%s: replica %d: %v", x.name, r, err)
				}
			}
		}
	})
}
