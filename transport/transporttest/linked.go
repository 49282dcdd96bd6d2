package transporttest

import (
	"fmt"
	"math"
	"testing"

	"gogcl.dev/transport"
)

// linked checks what endpoints say of hosts and links.
func (s *suite) linked(t *testing.T) {
	s.replicas(t, []int{1, 2, 3, 8}, func(t *testing.T, n int) {
		eps := s.connect(t, n)
		first, offered := eps[0].(transport.Linked)
		if !offered {
			t.Skip("the endpoints do not offer transport.Linked")
		}
		hosts, links := table(first)
		s.agree(t, n, eps, fmt.Sprint(hosts, links))
		numbered(t, hosts)
		aliases(t, hosts, links)
		for _, lane := range [][]transport.Endpoint{eps, s.lanes(t, eps)} {
			for _, e := range lane {
				l, ok := e.(transport.Linked)
				if !ok {
					t.Fatalf("replica %d does not offer transport.Linked, or its Dup does not", e.Rank())
				}
				alike(t, e.Rank(), l, hosts, links)
				nowhere(t, l)
			}
		}
		if !underRace {
			tellsForNothing(t, first)
		}
	})
}

// table is all that an endpoint says: the host of each replica, and the link of each pair.
func table(e transport.Linked) (hosts []int, links [][]transport.Link) {
	for a := range e.Size() {
		hosts = append(hosts, e.Host(a))
		row := make([]transport.Link, e.Size())
		for b := range row {
			row[b] = e.Link(a, b)
		}
		links = append(links, row)
	}
	return hosts, links
}

// numbered checks that hosts are numbered in the order of their first replicas, or nothing is known of any.
func numbered(t *testing.T, hosts []int) {
	t.Helper()
	next := 0
	for replica, host := range hosts {
		switch {
		case host == next:
			next++
		case host < -1 || host > next || (host < 0) != (hosts[0] < 0):
			t.Errorf("replica %d is on host %d: the hosts, %d, are not numbered in the order of their first replicas",
				replica, host, hosts)
		}
	}
}

// aliases checks that a replica has no link to itself, that links are the same from both ends, and that those between
// two hosts are alike.
func aliases(t *testing.T, hosts []int, links [][]transport.Link) {
	t.Helper()
	between := map[[2]int]transport.Link{}
	for a, row := range links {
		for b, link := range row {
			if a == b {
				if link != (transport.Link{}) {
					t.Errorf("replica %d has a link to itself: %+v", a, link)
				}
				continue
			}
			if link != links[b][a] {
				t.Errorf("from replica %d to %d it is %+v, back it is %+v", a, b, link, links[b][a])
			}
			pair := [2]int{hosts[a], hosts[b]}
			if earlier, known := between[pair]; known && earlier != link {
				t.Errorf("replicas %d and %d, on hosts %d and %d, have %+v, others on these hosts %+v",
					a, b, hosts[a], hosts[b], link, earlier)
			}
			between[pair] = link
			if together := hosts[a] == hosts[b]; together && hosts[a] >= 0 && link.Class == transport.NetworkLink ||
				!together && link.Class != transport.UnknownLink && link.Class != transport.NetworkLink {
				t.Errorf("a %v between replica %d on host %d and %d on host %d", link.Class, a, hosts[a], b, hosts[b])
			}
			possible(t, link)
		}
	}
}

// possible checks that no number of a link is negative or infinite.
func possible(t *testing.T, l transport.Link) {
	t.Helper()
	if l.Latency < 0 || l.Barrier < 0 {
		t.Errorf("negative times: %+v", l)
	}
	for _, speed := range []float64{l.BytesPerSecond, l.CopyBytesPerSecond} {
		if !(speed >= 0) || math.IsInf(speed, 0) {
			t.Errorf("impossible speeds: %+v", l)
		}
	}
}

// alike checks that an endpoint says what all of them say.
func alike(t *testing.T, rank int, e transport.Linked, hosts []int, links [][]transport.Link) {
	t.Helper()
	mine, ours := table(e)
	for a := range hosts {
		if mine[a] != hosts[a] {
			t.Errorf("replica %d says that %d is on host %d, replica 0 says %d", rank, a, mine[a], hosts[a])
		}
		for b := range hosts {
			if ours[a][b] != links[a][b] {
				t.Errorf("replica %d says that %d and %d have %+v, replica 0 says %+v", rank, a, b, ours[a][b],
					links[a][b])
			}
		}
	}
}

// nowhere checks what is said of replicas that there are not.
func nowhere(t *testing.T, e transport.Linked) {
	t.Helper()
	for _, replica := range []int{-1, e.Size(), math.MinInt, math.MaxInt} {
		if host := e.Host(replica); host != -1 {
			t.Errorf("replica %d of %d is on host %d, want -1", replica, e.Size(), host)
		}
		for _, link := range []transport.Link{e.Link(0, replica), e.Link(replica, 0), e.Link(replica, replica)} {
			if link != (transport.Link{}) {
				t.Errorf("replica %d of %d has a link: %+v", replica, e.Size(), link)
			}
		}
	}
}

// tellsForNothing checks that nothing is allocated.
func tellsForNothing(t *testing.T, e transport.Linked) {
	t.Helper()
	if n := testing.AllocsPerRun(100, func() {
		for replica := range e.Size() {
			e.Host(replica)
			e.Link(0, replica)
		}
	}); n > 0 {
		t.Errorf("%v allocations to ask for all hosts and links of replica 0", n)
	}
}
