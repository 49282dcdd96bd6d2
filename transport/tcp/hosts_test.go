package tcp

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/certificates"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

// connectMoved connects n replicas of this process, with the addresses as change leaves them.
func connectMoved(t *testing.T, n int, c Config, change func(addresses []Address)) []transport.Endpoint {
	t.Helper()
	c.Size, c.Secret = n, []byte("a secret of this test")
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	change(addresses)
	ends, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeTogether(t, ends) })
	return ends
}

// exchange sends a megabyte from replica 0 to replica 1, and returns what both say.
func exchange(ends []transport.Endpoint) [2]error {
	var errs [2]error
	var all sync.WaitGroup
	sent, got := make([]byte, 1<<20), make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * 7)
	}
	call := transport.Call{Seq: 1}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	all.Go(func() {
		errs[0] = ends[0].Exchange(ctx, call, []transport.Transfer{{Peer: 1, Kind: transport.Send, Buf: sent}})
	})
	all.Go(func() {
		errs[1] = ends[1].Exchange(ctx, call, []transport.Transfer{{Peer: 0, Kind: transport.Recv, Buf: got}})
		if errs[1] == nil && string(got) != string(sent) {
			errs[1] = errors.New("other bytes have come")
		}
	})
	all.Wait()
	return errs
}

// TestSameName: replicas that have the name of one host, and do not find each other's unix sockets, connect over TCP.
func TestSameName(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("unix sockets need Linux")
	}
	leaktest.Check(t)
	ends := connectMoved(t, 2, Config{}, func(addresses []Address) {
		for r := range addresses {
			addresses[r].Unix += "-elsewhere"
		}
	})
	if errs := exchange(ends); errs != [2]error{} {
		t.Error(errs)
	}
}

// TestCorrupted: a byte that changes between two hosts is an error on both sides, by the checksum or by TLS.
func TestCorrupted(t *testing.T) {
	for name, config := range map[string]Config{
		"checksum": {},
		"TLS":      {TLS: certificates.New(t).Config(), Checksum: ChecksumOff},
	} {
		t.Run(name, func(t *testing.T) {
			leaktest.Check(t)
			ends := connectMoved(t, 2, config, func(addresses []Address) {
				addresses[1].Host = "elsewhere"
				addresses[1].TCP = corrupting(t, addresses[1].TCP, 500_000)
			})
			want := map[string]string{"checksum": "checksum", "TLS": "bad record MAC"}[name]
			for r, err := range exchange(ends) {
				if r == 0 && err == nil { // it had sent everything: the next call says so
					<-ends[0].Done()
					err = ends[0].Err()
				}
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("replica %d: %v does not say %q", r, err, want)
				}
				t.Logf("replica %d: %v", r, err)
			}
		})
	}
}

// corrupting is the address of a proxy that turns a bit of a byte, of each connection that has as many.
func corrupting(t *testing.T, to string, at int) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var work sync.WaitGroup
	t.Cleanup(func() {
		l.Close()
		work.Wait()
	})
	work.Go(func() {
		for {
			from, err := l.Accept()
			if err != nil {
				return
			}
			onward, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			work.Go(func() {
				io.Copy(from, onward)
				from.(*net.TCPConn).CloseWrite()
			})
			work.Go(func() {
				defer onward.(*net.TCPConn).CloseWrite()
				b := make([]byte, 64<<10)
				for seen := 0; ; {
					n, err := from.Read(b)
					if i := at - seen; i >= 0 && i < n {
						b[i] ^= 4
					}
					seen += n
					if _, failed := onward.Write(b[:n]); err != nil || failed != nil {
						return
					}
				}
			})
		}
	})
	return l.Addr().String()
}
