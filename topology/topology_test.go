package topology_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/topology"
)

func machine(t testing.TB, c topology.Config) topology.Topology {
	t.Helper()
	m, err := topology.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func ladder(t testing.TB, shape topology.Shape, ipus int, replicas ...int) topology.Topology {
	t.Helper()
	return machine(t, topology.Config{Shape: shape, IPUsPerReplica: ipus, Replicas: replicas})
}

func clique(t testing.TB, replicas ...int) topology.Topology {
	t.Helper()
	return machine(t, topology.Config{Replicas: replicas})
}

func TestNewErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config topology.Config
		want   string
	}{
		{topology.Config{}, "no link domain"},
		{topology.Config{Replicas: []int{}}, "no link domain"},
		{topology.Config{Replicas: []int{4, 0}}, "link domain 1 holds 0 replicas"},
		{topology.Config{Replicas: []int{-1}}, "link domain 0 holds -1 replicas"},
		{topology.Config{Replicas: []int{4}, IPUsPerReplica: -2}, "-2 IPUs per replica"},
		{topology.Config{Replicas: []int{4}, IOTiles: -1}, "-1 IO tiles: want 1 to 1472, or 0 for 32"},
		{topology.Config{Replicas: []int{4}, IOTiles: 1473}, "1473 IO tiles: want 1 to 1472, or 0 for 32"},
		{topology.Config{Replicas: []int{4}, Shape: 3}, "Shape(3) is no shape, want one of clique, open ladder, joined ladder"},
		{topology.Config{Replicas: []int{math.MaxInt, 1}}, "more IPUs than can be counted: link domain 1"},
		{topology.Config{Replicas: []int{math.MaxInt}, IPUsPerReplica: 2}, "more IPUs than can be counted: link domain 0"},
		{topology.Config{Replicas: []int{4, 3}, Shape: topology.JoinedLadder}, "3 replicas of 1 IPUs leave half a rung on the joined ladder of link domain 1"},
		{topology.Config{Replicas: []int{5}, IPUsPerReplica: 3, Shape: topology.JoinedLadder}, "5 replicas of 3 IPUs leave half a rung"},
		{topology.Config{Replicas: []int{4}, Speeds: topology.Speeds{GWLink: topology.Speed{BytesPerSecond: -1}}}, "gw-link of -1 bytes per second"},
		{topology.Config{Replicas: []int{4}, Speeds: topology.Speeds{IPULink: topology.Speed{BytesPerSecond: math.NaN()}}}, "ipu-link of NaN bytes per second"},
		{topology.Config{Replicas: []int{4}, Speeds: topology.Speeds{HostLink: topology.Speed{BytesPerSecond: math.Inf(1)}}}, "host-link of +Inf bytes per second"},
		{topology.Config{Replicas: []int{4}, Speeds: topology.Speeds{HostLink: topology.Speed{Latency: -time.Second}}}, "host-link with a latency of -1s"},
		{topology.Config{Replicas: []int{2}, Domains: []int{0, 0}}, "Replicas and Domains say the same twice"},
		{topology.Config{Domains: []int{0, 2}}, "replica 1 of 2 is in link domain 2: they are numbered from 0 on"},
		{topology.Config{Domains: []int{0, -1}}, "replica 1 of 2 is in link domain -1"},
		{topology.Config{Domains: []int{2, 0, 2}}, "link domain 1 holds 0 replicas"},
		{topology.Config{Domains: []int{0, 1, 0}, Shape: topology.OpenLadder}, "the replicas of a link domain that is an open ladder follow each other: Domains [0 1 0] do not ascend"},
	} {
		m, err := topology.New(c.config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, error %v, want %q in it", c.config, m, err, c.want)
		}
		if m.Replicas() != 0 {
			t.Errorf("%+v: a machine of %d replicas beside the error", c.config, m.Replicas())
		}
	}
}

// TestDomains: replicas may lie in domains in any way; where they lie in ranges the machine is the same as by Replicas.
func TestDomains(t *testing.T) {
	t.Parallel()
	for _, shape := range []topology.Shape{topology.Clique, topology.OpenLadder} {
		one := machine(t, topology.Config{Shape: shape, Domains: []int{0, 0, 0, 1, 2, 2}})
		other := machine(t, topology.Config{Shape: shape, Replicas: []int{3, 1, 2}})
		if !reflect.DeepEqual(one, other) {
			t.Errorf("%+v, want %+v", one, other)
		}
	}
	domains := []int{1, 0, 2, 0, 0, 1, 0, 2, 0}
	m := machine(t, topology.Config{Domains: domains, IPUsPerReplica: 2})
	domains = slices.Clone(domains)
	if got := m.String(); got != "clique of 5+2+2 replicas, dealt out, 2 IPUs each" {
		t.Error(got)
	}
	if m.Replicas() != 9 || m.Domains() != 3 {
		t.Errorf("%d replicas in %d domains", m.Replicas(), m.Domains())
	}
	if lo, hi := m.DomainReplicas(0); lo != 0 || hi != 0 {
		t.Errorf("domain 0 is %d to %d", lo, hi)
	}
	for a := range domains {
		if m.Domain(a) != domains[a] {
			t.Errorf("replica %d is in domain %d, want %d", a, m.Domain(a), domains[a])
		}
		for b := range domains {
			want := topology.Link{Kind: topology.HostLink, Count: 2}
			if domains[a] != domains[b] {
				want.Kind = topology.GWLink
			}
			if a == b {
				want = topology.Link{}
			}
			if got := m.ReplicaLink(a, b); got != want {
				t.Errorf("replicas %d and %d: %v, want %v", a, b, got, want)
			}
		}
	}
	// Domain by domain, and no hop more between domains than there are domains; a named ring as it is on ladders.
	for _, x := range []struct {
		name    topology.RingName
		members []int
		want    []int
	}{
		{topology.Auto, all(m), []int{0, 5, 2, 7, 1, 3, 4, 6, 8}},
		{topology.Auto, []int{1, 3, 6}, []int{0, 1, 2}},
		{topology.Auto, []int{8, 0, 3, 5}, []int{0, 2, 1, 3}},
		{topology.RungRing2, all(m), nil},
	} {
		r := rings(t, m, x.name, x.members)
		if x.want != nil && !slices.Equal(r.First, x.want) {
			t.Errorf("%v of %v: %v, want %v", x.name, x.members, r.First, x.want)
		}
		crossed := 0
		for _, hop := range hops(m, r.First, x.members) {
			if hop.Kind == topology.GWLink {
				crossed++
			}
		}
		if held := map[int]bool{}; crossed > 0 {
			for _, member := range x.members {
				held[m.Domain(member)] = true
			}
			if crossed != len(held) {
				t.Errorf("%v of %v: %v crosses %d times, %d domains", x.name, x.members, r.First, crossed, len(held))
			}
		}
	}
	// A named ring visits the replicas of each domain as on a machine whose domains are ranges.
	ranges := machine(t, topology.Config{Replicas: []int{5, 2, 2}, IPUsPerReplica: 2})
	sorted := []int{1, 3, 4, 6, 8, 0, 5, 2, 7} // by place
	want := rings(t, ranges, topology.RungRing2, all(ranges)).First
	got := rings(t, m, topology.RungRing2, sorted).First
	if !slices.Equal(got, want) {
		t.Errorf("rung-ring-2: %v, want %v", got, want)
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	m := ladder(t, topology.OpenLadder, 3, 4, 1, 2)
	if got := m.String(); got != "open ladder of 4+1+2 replicas, 3 IPUs each" {
		t.Error(got)
	}
	if m.Shape() != topology.OpenLadder || m.Replicas() != 7 || m.IPUs() != 21 || m.IPUsPerReplica() != 3 ||
		m.Domains() != 3 {
		t.Errorf("%v: %d replicas, %d IPUs, %d domains", m, m.Replicas(), m.IPUs(), m.Domains())
	}
	wantDomain := []int{0, 0, 0, 0, 1, 2, 2}
	for r, want := range wantDomain {
		if got := m.Domain(r); got != want {
			t.Errorf("replica %d is in domain %d, want %d", r, got, want)
		}
		if lo, hi := m.ReplicaIPUs(r); lo != 3*r || hi != 3*r+3 {
			t.Errorf("replica %d has IPUs %d to %d", r, lo, hi)
		}
	}
	for d, want := range [][2]int{{0, 4}, {4, 5}, {5, 7}} {
		if lo, hi := m.DomainReplicas(d); lo != want[0] || hi != want[1] {
			t.Errorf("domain %d holds %d to %d, want %v", d, lo, hi, want)
		}
	}
	for _, m := range []topology.Topology{m, {}} {
		for _, id := range []int{-1, math.MinInt, 21, math.MaxInt} {
			if m.Domain(id) != -1 {
				t.Errorf("replica %d is in domain %d", id, m.Domain(id))
			}
			if lo, hi := m.ReplicaIPUs(id); lo != hi {
				t.Errorf("replica %d has IPUs", id)
			}
			if lo, hi := m.DomainReplicas(id); lo != hi {
				t.Errorf("domain %d has replicas", id)
			}
			none := topology.Link{}
			if m.IPULink(0, id) != none || m.IPULink(id, 0) != none || m.ReplicaLink(0, id) != none ||
				m.ReplicaLink(id, 0) != none {
				t.Errorf("a link to %d", id)
			}
		}
	}
}

func TestStrings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ got, want string }{
		{fmt.Sprint(clique(t, 1)), "clique of 1 replica"},
		{fmt.Sprint(clique(t, 8)), "clique of 8 replicas"},
		{fmt.Sprint(ladder(t, topology.JoinedLadder, 2, 4, 4)), "joined ladder of 4+4 replicas, 2 IPUs each"},
		{fmt.Sprint(topology.Topology{}), "no replicas"},
		{topology.Shape(9).String(), "Shape(9)"},
		{topology.Kind(9).String(), "Kind(9)"},
		{topology.RingName(9).String(), "RingName(9)"},
		{fmt.Sprint(topology.NoLink, topology.IPULink, topology.GWLink, topology.HostLink), "no link ipu-link gw-link host-link"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestSpeeds(t *testing.T) {
	t.Parallel()
	m := machine(t, topology.Config{Replicas: []int{2}, Speeds: topology.Speeds{
		GWLink:   topology.Speed{BytesPerSecond: 1e9},
		HostLink: topology.Speed{Latency: time.Millisecond},
	}})
	for kind, want := range map[topology.Kind]topology.Speed{
		topology.NoLink:  {},
		topology.Kind(9): {},
		topology.IPULink: topology.DefaultSpeeds().IPULink,
		topology.GWLink:  {BytesPerSecond: 1e9, Latency: topology.DefaultSpeeds().GWLink.Latency},
		topology.HostLink: {BytesPerSecond: topology.DefaultSpeeds().HostLink.BytesPerSecond,
			Latency: time.Millisecond},
	} {
		if got := m.Speed(kind); got != want {
			t.Errorf("%v: %+v, want %+v", kind, got, want)
		}
	}
}

// A dumb second ladder: two columns as lists, and every line of the picture written down.
func dumbLadder(n int, joined bool) map[[2]int]bool {
	lines := map[[2]int]bool{}
	join := func(a, b int) { lines[[2]int{a, b}], lines[[2]int{b, a}] = true, true }
	var columns [2][]int
	for id := range n {
		columns[id%2] = append(columns[id%2], id)
	}
	for _, column := range columns {
		for i := 1; i < len(column); i++ {
			join(column[i-1], column[i])
		}
		if joined && len(column) > 2 {
			join(column[0], column[len(column)-1])
		}
	}
	for i := range columns[1] {
		join(columns[0][i], columns[1][i])
	}
	return lines
}

func TestLadderLinks(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 20; n++ {
		for _, shape := range []topology.Shape{topology.OpenLadder, topology.JoinedLadder} {
			if shape == topology.JoinedLadder && n%2 == 1 {
				continue
			}
			lines := dumbLadder(n, shape == topology.JoinedLadder)
			for ipus := 1; ipus <= n; ipus++ {
				if n%ipus != 0 {
					continue
				}
				m := ladder(t, shape, ipus, n/ipus, n/ipus)
				between := map[[2]int]topology.Link{}
				for a := range 2 * n {
					for b := range 2 * n {
						want := topology.Link{}
						switch {
						case a/n == b/n && lines[[2]int{a % n, b % n}]:
							want = topology.Link{Kind: topology.IPULink, Count: 2}
						case a/n != b/n && a%n == b%n:
							want = topology.Link{Kind: topology.GWLink, Count: 2}
						}
						if got := m.IPULink(a, b); got != want {
							t.Fatalf("%v: IPUs %d and %d: %v, want %v", m, a, b, got, want)
						}
						if a/ipus != b/ipus && want.Count > 0 {
							sum := between[[2]int{a / ipus, b / ipus}]
							between[[2]int{a / ipus, b / ipus}] = topology.Link{Kind: want.Kind,
								Count: sum.Count + want.Count}
						}
					}
				}
				for a := range m.Replicas() {
					for b := range m.Replicas() {
						if got, want := m.ReplicaLink(a, b), between[[2]int{a, b}]; got != want {
							t.Fatalf("%v: replicas %d and %d: %v, want %v", m, a, b, got, want)
						}
					}
				}
			}
		}
	}
}

func TestCliqueLinks(t *testing.T) {
	t.Parallel()
	m := machine(t, topology.Config{Replicas: []int{2, 3}, IPUsPerReplica: 2})
	for a := range m.IPUs() {
		for b := range m.IPUs() {
			want := topology.Link{Kind: topology.HostLink, Count: 1}
			switch {
			case a == b:
				want = topology.Link{}
			case (a < 4) != (b < 4):
				want.Kind = topology.GWLink
			}
			if got := m.IPULink(a, b); got != want {
				t.Errorf("IPUs %d and %d: %v, want %v", a, b, got, want)
			}
			if a/2 != b/2 {
				want.Count = 2
				if got := m.ReplicaLink(a/2, b/2); got != want {
					t.Errorf("replicas %d and %d: %v, want %v", a/2, b/2, got, want)
				}
			}
		}
	}
}

// draw makes the picture in doc.go from the links, top rung first.
func draw(m topology.Topology) []string {
	var picture []string
	for id := m.IPUs() - 2; id >= 0; id -= 2 {
		rung := "     "
		if m.IPULink(id, id+1).Count == 2 {
			rung = " ═══ "
		}
		picture = append(picture, fmt.Sprint(id, rung, id+1))
		if id > 0 && m.IPULink(id, id-2).Count == 2 && m.IPULink(id+1, id-1).Count == 2 {
			picture = append(picture, "║     ║")
		}
	}
	return picture
}

func TestDocPicture(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	want := "//\n//\t" + strings.Join(draw(ladder(t, topology.OpenLadder, 1, 8)), "\n//\t") + "\n//\n"
	if !strings.Contains(string(doc), want) {
		t.Errorf("doc.go does not hold the picture\n%s", want)
	}
}

// The rows of the table of rings in doc.go.
func TestDocTable(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(doc)) {
		fields := strings.Fields(strings.TrimPrefix(line, "//\t"))
		if len(fields) < 10 {
			continue
		}
		name, err := topology.ParseRing(fields[0])
		if err != nil || name == topology.Auto {
			continue
		}
		var ipus int
		if _, err := fmt.Sscan(fields[1], &ipus); err != nil {
			t.Fatal(err)
		}
		joined := strings.HasSuffix(strings.TrimSpace(line), "joined ends")
		for _, shape := range []topology.Shape{topology.OpenLadder, topology.JoinedLadder} {
			m := ladder(t, shape, ipus, 8)
			rings, err := m.Rings(name, all(m))
			if joined && shape == topology.OpenLadder {
				if err == nil {
					t.Errorf("%v: %v needs no joined ends", m, name)
				}
				continue
			}
			if want := strings.Join(fields[2:10], " "); err != nil ||
				strings.Trim(fmt.Sprint(rings.First), "[]") != want {
				t.Errorf("%v: %v is %v, %v, doc.go says %s", m, name, rings.First, err, want)
			}
		}
		rows++
	}
	if rows != 5 {
		t.Errorf("found %d rows in doc.go, want 5", rows)
	}
}
