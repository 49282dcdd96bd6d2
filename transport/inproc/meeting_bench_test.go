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

func BenchmarkMeeting(b *testing.B) {
	for _, n := range []int{2, 4, 8} {
		members := make([]int, n)
		for i := range members {
			members[i] = i
		}
		bench := func(name string, op func(ctx context.Context, e transport.PeerMemory, seq uint64) error) {
			b.Run(fmt.Sprintf("op=%s/n=%d", name, n), func(b *testing.B) {
				eps, err := inproc.New(n)
				if err != nil {
					b.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				defer cancel()
				b.ReportAllocs()
				var wg sync.WaitGroup
				for _, e := range eps {
					wg.Go(func() {
						for i := range b.N {
							if err := op(ctx, e.(transport.PeerMemory), uint64(i)); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			})
		}
		bench("meet+part", func(ctx context.Context, e transport.PeerMemory, seq uint64) error {
			_, err := e.Meet(ctx, transport.Call{Seq: seq}, members, transport.Memory{})
			if err != nil {
				return err
			}
			return e.Part(ctx)
		})
		var buf [8]byte
		bench("gather", func(ctx context.Context, e transport.PeerMemory, seq uint64) error {
			_, _, err := e.Gather(ctx, transport.Call{Seq: seq}, members, buf[:], 8, sum{})
			return err
		})
	}
}
