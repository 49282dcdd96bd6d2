package tcp

import (
	"errors"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/meddler"
	"gogcl.dev/transport"
)

// A replica that has left listens no more. One that dials it for a lane then waits for its word, which is on its way,
// and does not call it lost.
func TestDialAfterLeaving(t *testing.T) {
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	eps := make([]transport.Endpoint, 2)
	listeners, addresses, err := listenAll(Config{Size: 2, Network: TCP, Job: t.Name()})
	if err != nil {
		t.Fatal(err)
	}
	mine := slices.Clone(addresses)
	var held atomic.Bool // what replica 1 says
	release := make(chan bool)
	proxy, err := meddler.New(addresses[1].TCP, func(_ int, back bool, b []byte) []byte {
		if back && held.Load() {
			<-release
		}
		return b
	})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	mine[1].TCP = proxy.Address()
	var all sync.WaitGroup
	for rank, l := range listeners {
		all.Go(func() {
			known := addresses
			if rank == 0 {
				known = mine
			}
			var err error
			if eps[rank], err = l.Connect(t.Context(), known); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
	eps[0].(*endpoint).generation.mesh.at(1).address.TCP = gone.Addr().String() // for lanes
	held.Store(true)
	cause := errors.New("had to leave")
	eps[1].Abort(cause)
	if err := eps[1].Close(); err != nil {
		t.Error(err)
	}
	failed := make(chan error)
	go func() {
		failed <- eps[0].Exchange(t.Context(), transport.Call{Group: 1, Seq: 1},
			[]transport.Transfer{{Kind: transport.Send, Peer: 1, Buf: make([]byte, 8)}})
	}()
	conn, err := gone.Accept()
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	gone.Close()
	select {
	case <-eps[0].Done():
		t.Errorf("a replica that cannot be dialled is lost at once: %v", eps[0].Err())
	case <-time.After(50 * time.Millisecond): // it has seen the end of the connection by now
	}
	close(release)
	var aborted *transport.AbortError
	if err := <-failed; !errors.As(err, &aborted) || aborted.Replica != 1 || aborted.Cause.Error() != cause.Error() {
		t.Errorf("got %v, want that replica 1 has aborted: %v", err, cause)
	}
	if err := eps[0].Close(); err != nil {
		t.Error(err)
	}
}
