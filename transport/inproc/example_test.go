package inproc_test

import (
	"context"
	"fmt"
	"log"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// Two replicas exchange a message in one round. Package gcl does this for every round of a schedule.
func Example() {
	ends, err := inproc.New(2)
	if err != nil {
		log.Fatal(err)
	}
	received := make([][]byte, len(ends))
	var replicas errgroup.Group
	for rank, end := range ends {
		peer := 1 - rank
		replicas.Go(func() error {
			defer end.Close()
			received[rank] = make([]byte, 5)
			return end.Exchange(context.Background(), transport.Call{Group: 1, Seq: 1, Count: 5}, []transport.Transfer{
				{Peer: peer, Kind: transport.Send, Buf: fmt.Appendf(nil, "from%d", rank)},
				{Peer: peer, Kind: transport.Recv, Buf: received[rank]},
			})
		})
	}
	fmt.Println(replicas.Wait())
	fmt.Printf("%s %s\n", received[0], received[1])
	// Output:
	// <nil>
	// from1 from0
}
