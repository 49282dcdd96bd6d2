package inproc_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// sum is a Combiner that adds bytes.
type sum struct{}

func (sum) Combine(dst []byte, all [][]byte) {
	copy(dst, all[0])
	for _, a := range all[1:] {
		for i := range dst {
			dst[i] += a[i]
		}
	}
}

// idle is a Worker that does nothing.
type idle struct{}

func (idle) Piece([]transport.Memory, int, int) {}

// near is what the endpoints offer beside Exchange.
type near interface {
	transport.PeerMemory
	transport.Boards
}

func BenchmarkMeeting(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		members := make([]int, n)
		for i := range members {
			members[i] = i
		}
		bench := func(name string, op func(ctx context.Context, e near, seq uint64) error) {
			b.Run(fmt.Sprintf("op=%s/n=%d", name, n), func(b *testing.B) {
				eps, err := inproc.New(n)
				if err != nil {
					b.Fatal(err)
				}
				ctx := b.Context()
				b.ReportAllocs()
				var wg sync.WaitGroup
				for _, e := range eps {
					wg.Go(func() {
						for i := range b.N {
							if err := op(ctx, e.(near), uint64(i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
		for _, rounds := range [][]int{{n}, {n, n}, {n, n, n, n, n, n, n, n}} {
			bench(fmt.Sprintf("share/rounds=%d", len(rounds)), func(ctx context.Context, e near, seq uint64) error {
				return e.Share(ctx, transport.Call{Seq: seq}, members, transport.Memory{}, rounds, idle{})
			})
		}
		var buf [8]byte
		bench("gather", func(ctx context.Context, e near, seq uint64) error {
			_, _, err := e.Gather(ctx, transport.Call{Seq: seq}, members, buf[:], 8, sum{})
			return err
		})
	}
}
