package inproc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// BenchmarkExchange measures rounds: two replicas that send a message to and fro (pingpong), n that each send one to
// every other (alltoall), and n that each send one to the next (ring).
func BenchmarkExchange(b *testing.B) {
	for _, size := range []int{8, 1 << 10, 32 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("pattern=pingpong/n=2/size=%d", size), func(b *testing.B) {
			rounds(b, 2, size, func(rank int, in, out [][]byte) [][]transport.Transfer {
				send := []transport.Transfer{{Peer: 1 - rank, Kind: transport.Send, Buf: out[0]}}
				recv := []transport.Transfer{{Peer: 1 - rank, Kind: transport.Recv, Buf: in[0]}}
				if rank == 0 {
					return [][]transport.Transfer{send, recv}
				}
				return [][]transport.Transfer{recv, send}
			})
		})
	}
	for _, n := range []int{2, 4, 8} {
		for _, size := range []int{8, 1 << 10, 32 << 10, 1 << 20} {
			b.Run(fmt.Sprintf("pattern=alltoall/n=%d/size=%d", n, size), func(b *testing.B) {
				rounds(b, n, size, func(rank int, in, out [][]byte) [][]transport.Transfer {
					var batch []transport.Transfer
					for k := 1; k < n; k++ {
						to, from := (rank+k)%n, (rank+n-k)%n
						batch = append(batch,
							transport.Transfer{Peer: to, Kind: transport.Send, Buf: out[to]},
							transport.Transfer{Peer: from, Kind: transport.Recv, Buf: in[from]})
					}
					return [][]transport.Transfer{batch}
				})
			})
			b.Run(fmt.Sprintf("pattern=ring/n=%d/size=%d", n, size), func(b *testing.B) {
				rounds(b, n, size, func(rank int, in, out [][]byte) [][]transport.Transfer {
					return [][]transport.Transfer{{
						{Peer: (rank + 1) % n, Kind: transport.Send, Buf: out[0]},
						{Peer: (rank + n - 1) % n, Kind: transport.Recv, Buf: in[0]},
					}}
				})
			})
		}
	}
}

// rounds runs b.N times the batches that each replica makes of its buffers, one in and one out for each peer.
func rounds(b *testing.B, n, size int, batches func(rank int, in, out [][]byte) [][]transport.Transfer) {
	eps, err := inproc.New(n)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	work := make([][][]transport.Transfer, n)
	for r := range work {
		in, out := make([][]byte, n), make([][]byte, n)
		for p := range in {
			in[p], out[p] = make([]byte, size), make([]byte, size)
		}
		work[r] = batches(r, in, out)
	}
	run := func(rank, times int) {
		for i := range times {
			for _, batch := range work[rank] {
				call := transport.Call{Seq: uint64(i)}
				if err := eps[rank].Exchange(ctx, call, batch); err != nil {
					b.Error(err)
					return
				}
			}
		}
	}
	all := func(times int) {
		var wg sync.WaitGroup
		for r := 1; r < n; r++ {
			wg.Go(func() { run(r, times) })
		}
		run(0, times)
		wg.Wait()
	}
	all(3)
	b.SetBytes(int64(size))
	b.ReportAllocs()
	b.ResetTimer()
	all(b.N)
	b.StopTimer()
	for _, e := range eps {
		if err := e.Close(); err != nil {
			b.Error(err)
		}
	}
}
