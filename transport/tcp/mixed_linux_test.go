package tcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/stream"
	"gogcl.dev/transport/transporttest"
)

// openMixed connects replicas of this process that are on the hosts given, share memory where they are on one, and go
// by sockets between hosts.
func openMixed(t testing.TB, hosts []string, c Config) []transport.Endpoint {
	t.Helper()
	c.Size, c.Secret, c.form = len(hosts), make([]byte, 32), smallForm
	listeners, addresses, err := listenAll(c)
	if err != nil {
		t.Fatal(err)
	}
	for r := range addresses {
		addresses[r].Host, addresses[r].Memory = hosts[r], "the user"
	}
	ends, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	return ends
}

// dealt are n replicas on two hosts, in turn, of which the first has one more at the end.
func dealt(n int) []string {
	hosts := make([]string, n)
	for r := range hosts {
		hosts[r] = []string{"a", "b"}[r%2]
	}
	if n > 2 {
		hosts[n-1] = "a"
	}
	return hosts
}

// TestMixedConformance: replicas on two hosts, with memory inside and sockets between.
func TestMixedConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("TestConformance has each kind of link by itself")
	}
	transporttest.Run(t, func(t testing.TB, n int) []transport.Endpoint {
		return openMixed(t, dealt(n), Config{})
	}, brief(transporttest.Buffers, transporttest.NoAlloc)...)
}

// among is one of the replicas of a job that are on one host, for whom there are no others.
type among struct {
	*nearby
	n int
}

func (a among) Size() int { return a.n }

func (a among) Dup(ctx context.Context) (transport.Endpoint, error) {
	d, err := a.nearby.Dup(ctx)
	if err != nil {
		return nil, err
	}
	return among{d.(*nearby), a.n}, nil
}

// TestMixedPeerMemory: replicas of one host meet in a job that has one more replica, on another host, which leaves when
// they do.
func TestMixedPeerMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("TestConformance has each kind of link by itself")
	}
	transporttest.RunPeerMemory(t, func(t testing.TB, n int) []transport.Endpoint {
		ends := openMixed(t, append(slices.Repeat([]string{"a"}, n), "b"), Config{Most: n + 1})
		var leaves sync.WaitGroup
		leaves.Go(func() { ends[n].Close() })
		t.Cleanup(leaves.Wait)
		for r, e := range ends[:n] {
			ends[r] = among{e.(*nearby), n}
		}
		return ends[:n]
	}, brief(transporttest.Buffers, transporttest.NoAlloc)...)
}

// TestMixedReach: who shares memory reaches each other, and nobody else. To meet with another is an error before
// anything is told; what crosses hosts goes by messages, also while replicas of a host meet.
func TestMixedReach(t *testing.T) {
	leaktest.Check(t)
	ends := openMixed(t, []string{"a", "b", "a", "b"}, Config{})
	groups := [2][]int{{0, 2}, {1, 3}}
	together(t, ends, func(e *nearby) error {
		own := groups[e.Rank()%2]
		for want, members := range map[bool][]int{true: own, false: {0, 1, 2, 3}} {
			if e.Reaches(members) != want {
				return fmt.Errorf("%v reach each other: want %v", members, want)
			}
		}
		for peer := range 4 {
			want := map[bool]string{true: "shm", false: "tcp"}[peer%2 == e.Rank()%2]
			if link := e.Link(e.Rank(), peer); peer != e.Rank() && link.Transport != want {
				return fmt.Errorf("the link to %d is %+v, want %s", peer, link, want)
			}
		}
		_, _, err := e.Gather(t.Context(), roundCall(0), []int{0, 1, 2, 3}, []byte{1}, 1, nil)
		if _, ok := errors.AsType[*transport.ArgumentError](err); !ok {
			return fmt.Errorf("all of two hosts meet: %v", err)
		}
		for k := range 20 {
			call := roundCall(2 * k)
			call.Group = uint64(2 + e.Rank()%2)
			all, _, err := e.Gather(t.Context(), call, own, []byte{byte(e.Rank())}, 1, nil)
			if err != nil {
				return err
			}
			if all[0][0] != byte(own[0]) || all[1][0] != byte(own[1]) {
				return fmt.Errorf("%v have told %v", own, all)
			}
			if err := ringRound(t.Context(), e, 2*k+1, 1000*k); err != nil {
				return err
			}
		}
		return nil
	})
	closeTogether(t, ends)
}

// TestMixedLook: a lane has its Looker look where it waits for memory only.
func TestMixedLook(t *testing.T) {
	s := new(sleeper)
	for want, link := range map[bool]stream.Link{true: new(rings), false: new(socket)} {
		if s.Sees(link) != want {
			t.Errorf("it sees a %T: want %v", link, want)
		}
	}
}

// TestMixedUnlike: a replica that says that it shares memory, or not, against what is known of it is no replica of the
// job. Of a newcomer nothing is known.
func TestMixedUnlike(t *testing.T) {
	for _, test := range []struct {
		peer         int
		shares, says bool
		fails        bool
	}{
		{0, true, false, true}, {0, false, true, true}, {0, false, false, false}, {2, true, false, false},
		{2, false, true, true},
	} {
		m := quietMesh(1, 3)
		if test.shares {
			m.shm = new(shared)
			m.address.Memory = "the user"
			m.at(test.peer).address.Memory = "the user"
		}
		conn, other := net.Pipe()
		go io.Copy(io.Discard, other)
		near, err := m.given(conn, test.peer, test.says)
		if near != nil || (err != nil) != test.fails {
			t.Errorf("%+v: %v, %v", test, near, err)
		}
		conn.Close()
	}
}

// TestSameSnapshot: machines that were started from one snapshot have one host's name, and not its unix sockets.
func TestSameSnapshot(t *testing.T) {
	for _, memory := range []string{"the user", ""} {
		listeners, addresses, err := listenAll(Config{Size: 2, Secret: make([]byte, 32), form: smallForm})
		if err != nil {
			t.Fatal(err)
		}
		for r := range addresses {
			addresses[r].Unix = fmt.Sprintf("@gogcl-test-of-nobody-%d-%d", os.Getpid(), r)
			addresses[r].Memory = memory
		}
		ends, err := connectAll(listeners, addresses)
		for _, e := range ends {
			defer e.Close()
		}
		const want = "seems to be on this host and does not answer on its unix socket"
		if memory == "" && err != nil || memory != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("with memory of %q: %v; where memory is to be shared, and only there, want %q", memory, err, want)
		}
	}
}
