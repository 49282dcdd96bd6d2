package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/freeport"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
	"gogcl.dev/transport/internal/stream"
)

// quietMesh is replica rank of a job, which is connected with nobody. Its node is made by found.
func quietMesh(rank, size int) *mesh {
	m := &mesh{config: Config{Rank: rank, Size: size, parks: true}, listener: &Listener{}, joined: make(chan int, size)}
	controls := make([]*control, size)
	m.controls.Store(&controls)
	for r := range m.all() {
		controls[r] = newControl(m, r)
	}
	return m
}

// TestAdmit: what a replica says to connections that have the secret, one after the other. A control connection that
// has not started gives way to the next of the same process, whenever the earlier one is admitted.
func TestAdmit(t *testing.T) {
	const mine, other = 7 << attemptBits, 8 << attemptBits
	m := quietMesh(2, 4)
	var ends []net.Conn
	for _, test := range []struct {
		hello handshake.Hello
		want  string // "" for one that is taken
	}{
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Data}, "no control connection yet"},
		{handshake.Hello{Rank: 0, Peer: 1, Role: handshake.Control}, "wanted replica 1 and reached replica 2"},
		{handshake.Hello{Rank: 0, Peer: 3, Role: handshake.Control}, "wanted replica 3 and reached replica 2"},
		{handshake.Hello{Rank: 3, Peer: 2, Role: handshake.Control}, "the lower number dials"},
		{handshake.Hello{Rank: 2, Peer: 2, Role: handshake.Control}, "the lower number dials"},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Rendezvous}, "this replica is past that"},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Control, Lane: mine + 2}, ""},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Data}, ""},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Control, Lane: mine + 3}, ""},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Control, Lane: mine + 1}, "has given this connection up"},
		{handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Control, Lane: other + 9}, "another process has its rank"},
		{handshake.Hello{Rank: 1, Peer: 2, Role: handshake.Data}, "no control connection yet"},
	} {
		conn, other := net.Pipe()
		defer conn.Close()
		defer other.Close()
		ends = append(ends, conn)
		err := m.admit(conn, test.hello)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %v, want %q", test.hello, err, test.want)
		}
	}
	first, second := ends[6], ends[8]
	if _, err := first.Read(make([]byte, 1)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("the connection that gave way: %v, want that it is closed", err)
	}
	if m.at(0).start(first, first, nil) {
		t.Error("the connection that gave way has started")
	}
	m.at(0).conn, m.at(0).starting = second, nil // it has started
	err := m.admit(first, handshake.Hello{Rank: 0, Peer: 2, Role: handshake.Control})
	if err == nil || !strings.Contains(err.Error(), "replica 0 is here already: another process has its rank") {
		t.Errorf("beside a connection that has started: %v", err)
	}
}

// TestPlaceIsGivenBack: a control connection that ends after it was admitted leaves its place to the next. Another one
// that ends leaves the place as it is.
func TestPlaceIsGivenBack(t *testing.T) {
	conn, other := net.Pipe()
	defer conn.Close()
	defer other.Close()
	hello := handshake.Hello{Rank: 0, Peer: 1, Role: handshake.Control}
	for _, of := range []net.Conn{conn, other} {
		m := quietMesh(1, 2)
		if err := m.admit(conn, hello); err != nil {
			t.Fatal(err)
		}
		m.refused(of, hello, &handshake.ClosedError{Stage: "the verdict", Err: io.ErrUnexpectedEOF})
		if kept := m.at(0).isReserved(); kept != (of == other) {
			t.Errorf("the place is kept: %v", kept)
		}
	}
}

// TestPersists: a replica whose handshakes take too long is lost when it has taken nobody for some times Silence, and
// not while it takes others, as one does that is only overloaded. The time before a shortage of descriptors is not part
// of it. A replica that has not joined is no matter of Silence.
func TestPersists(t *testing.T) {
	const silence, until = time.Second, 30 * time.Second
	const limit, attempt = takeSilences * silence, handshake.Limit + maxDialPause
	lost := "it has taken no connection for 6s"
	for _, test := range []struct {
		role     handshake.Role
		takes    bool // others, until then
		short    bool // the first attempts, until then, fail otherwise than the last, for want of a descriptor
		from, to time.Duration
		want     string
	}{
		{handshake.Data, false, false, limit, limit + attempt, lost},
		{handshake.Data, true, false, until + limit - attempt, until + limit + attempt, lost},
		{handshake.Data, true, true, until + shortLimit, until + shortLimit + 2*attempt, "no file descriptor is left"},
		{handshake.Control, false, false, time.Minute, time.Minute,
			"deadline exceeded; the last attempt: handshake not done"},
		{handshake.Control, false, true, until, until + shortLimit + 2*attempt, "no file descriptor is left"},
	} {
		synctest.Test(t, func(t *testing.T) {
			m := quietMesh(0, 2)
			m.config.Silence = silence
			m.now.Store(&generation{node: &stream.Node{}})
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			_, err := m.persist(ctx, 1, test.role, func() (net.Conn, error) {
				now := time.Now()
				if test.short && now.Sub(began) > until {
					return nil, syscall.EMFILE
				}
				select {
				case <-time.After(handshake.Limit):
				case <-ctx.Done():
					return nil, context.Cause(ctx)
				}
				if now = time.Now(); test.takes && now.Sub(began) <= until {
					m.at(1).beats(uint64(now.Unix()), now)
				}
				m.at(1).beats(m.at(1).taken, now) // which is no news
				return nil, &handshake.TimeoutError{Stage: "the answer"}
			})
			took := time.Since(began)
			if err == nil || !strings.Contains(err.Error(), test.want) || took > test.to || took < test.from {
				t.Errorf("%+v: %v after %v", test, err, took)
			}
		})
	}
}

// TestQueueIsBounded: what waits for a replica that does not read has a bound, beyond which the replica is lost.
func TestQueueIsBounded(t *testing.T) {
	c := newControl(quietMesh(0, 2), 1)
	message := make([]byte, 1000)
	for range 2 * maxQueue / len(message) {
		c.tell(message)
	}
	if len(c.queue) > maxQueue+2*len(message) {
		t.Errorf("%d bytes wait", len(c.queue))
	}
	if err := c.why(nil, io.EOF, 0); err == nil || !strings.Contains(err.Error(), "has not read what it was told") {
		t.Errorf("got %v", err)
	}
}

// TestKeyOfJob: who knows a job's secret and has not met its replicas does not connect with them.
func TestKeyOfJob(t *testing.T) {
	leaktest.Check(t)
	where, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	var addresses [2]string
	for r := range addresses {
		if addresses[r], err = freeport.Address(); err != nil {
			t.Fatal(err)
		}
	}
	secret := []byte("a secret")
	eps, errs := make([]transport.Endpoint, 2), make(chan error)
	for rank := range eps {
		go func() {
			var err error
			_, port, _ := net.SplitHostPort(addresses[rank])
			n, _ := net.LookupPort("tcp", port)
			c := Config{Rank: rank, Size: 2, Network: TCP, Job: "job", Secret: secret, Address: "127.0.0.1",
				Ports: [2]int{n, n}}
			eps[rank], err = Join(t.Context(), c, Meeting{Where: where})
			errs <- err
		}()
	}
	for range eps {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	conn, err := net.Dial("tcp", addresses[1])
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	err = handshake.Dial(conn, secret, handshake.Hello{Job: "job", Rank: 0, Peer: 1, Role: handshake.Data, Lane: 7})
	if !errors.As(err, new(*handshake.SecretError)) {
		t.Errorf("got %v, want a SecretError", err)
	}
	for _, e := range eps {
		go func() { errs <- e.Close() }()
	}
	for range eps {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestAgree: what replicas must have alike to form a job, or must be able to reach.
func TestAgree(t *testing.T) {
	on := func(host, address string) card { return card{Address: Address{Host: host, TCP: address + ":6000"}} }
	loop, far := "127.0.0.1", "192.0.2.1"
	tls, failed := on("a", loop), on("a", loop)
	tls.TLS, failed.Error = true, "no port is free"
	for _, test := range []struct {
		network  Network
		cards    []card
		insecure bool
		want     string // "" for a job
	}{
		{Auto, []card{on("a", loop), on("a", loop)}, true, ""},
		{Auto, []card{on("a", far), on("b", far)}, false, ""},
		{Unix, []card{on("a", far), on("b", far)}, false, "replica 1 is on another host than replica 0"},
		{Unix, []card{on("a", far), on("b", far)}, false, `transport "unix" of replica 1 is for one host: use "auto"`},
		{Auto, []card{on("a", far), on("a", far), on("b", far)}, true, "the job has no secret"},
		{Auto, []card{on("a", far), on("b", loop)}, false, "replica 1 is on another host than replica 0 and has no"},
		{Auto, []card{on("a", loop), on("b", far)}, false, "replica 0 is on another host than replica 1 and has no"},
		{Auto, []card{on("a", loop), tls}, false, "replica 1 has a TLS configuration, and replica 0 none"},
		{Auto, []card{tls, on("a", loop)}, false, "replica 0 has a TLS configuration, and replica 1 none"},
		{Auto, []card{on("a", loop), failed}, false, "replica 1 cannot take part: no port is free"},
	} {
		test.cards[len(test.cards)-1].Network = test.network
		err := checkCards(test.cards, !test.insecure, nil)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v: %v, want %q", test.cards, err, test.want)
		}
	}
}

// TestReadCards: what is no card of a replica of this version is an error that says whose it is.
func TestReadCards(t *testing.T) {
	good := `{"Network":"auto","Key":"` + strings.Repeat("A", 43) + `="}`
	for text, want := range map[string]string{
		good:                   "",
		"[]":                   "replica 1 tells something else than a card",
		`{"Network":"pigeon"}`: `replica 1 goes by transport "pigeon", which there is not here: want one of [auto tcp`,
	} {
		_, err := readCards([][]byte{[]byte(good), []byte(text)})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, err := readCards([][]byte{[]byte("{}")}); err == nil || !strings.Contains(err.Error(), "a key of 0 bytes") {
		t.Error(err)
	}
}

// TestWhySockets: a host goes by memory only where all of its replicas share it, and its link says of which that is not
// so. Other hosts do not matter.
func TestWhySockets(t *testing.T) {
	good := Address{Host: "a", Unix: "@x", Memory: "7 user:[1]"}
	with := func(change func(a *Address)) []Address {
		a := good
		change(&a)
		return []Address{{Host: "b", Unix: "@x", Sockets: "of no account"}, good, good, a}
	}
	for want, addresses := range map[string][]Address{
		"":                                with(func(*Address) {}),
		"replica 3: no room":              with(func(a *Address) { a.Memory, a.Sockets = "", "no room" }),
		"replica 3 is of user 8 user:[1]": with(func(a *Address) { a.Memory = "8 user:[1]" }),
	} {
		link := links(Auto, addresses).Link(1, 2)
		if !strings.Contains(link.Why, want) || (link.Why == "") != (want == "") ||
			link.Transport != map[bool]string{true: "shm", false: "unix"}[want == ""] {
			t.Errorf("%+v, want %q", link, want)
		}
	}
	cards, addresses := []card{{Network: Auto}, {Network: Unix}}, make([]Address, 2)
	if tellSockets(cards, addresses); addresses[0].Sockets != "" ||
		addresses[1].Sockets != `it is to go by transport "unix"` {
		t.Errorf("%+v", addresses)
	}
	cards[0].Network, addresses[1].Sockets = TCP, ""
	if tellSockets(cards, addresses); addresses[1].Sockets != "" {
		t.Errorf("nobody has left it open: %+v", addresses)
	}
}

// TestTryMemory: what keeps a replica from sharing memory is known before the replicas agree.
func TestTryMemory(t *testing.T) {
	for want, c := range map[string]Config{
		"it has TLS":            {Size: 2, TLS: &tls.Config{}},
		"replicas are too many": {Size: 1 << 20},
	} {
		s, err := c.tryMemory()
		if s.close(nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestIsLocal: a rendezvous is local by its address, and localhost by those that it has.
func TestIsLocal(t *testing.T) {
	none := errors.New("no such host")
	for _, test := range []struct {
		where string
		has   []string // addresses of localhost
		want  bool
		err   error
	}{
		{"unix:@name", nil, true, nil},
		{"dir:/path", nil, false, nil},
		{"127.0.0.1:6000", nil, true, nil},
		{"[::1]:6000", nil, true, nil},
		{"192.0.2.1:6000", nil, false, nil},
		{"node1:6000", nil, false, nil},
		{"localhost:6000", []string{"127.0.0.1"}, true, nil},
		{"localhost:6000", []string{"::1", "127.0.0.1"}, true, nil},
		{"localhost:6000", []string{"192.0.2.1"}, false, nil},
		{"localhost:6000", []string{"127.0.0.1", "192.0.2.1"}, false, nil},
		{"localhost:6000", []string{}, false, nil},
		{"localhost:6000", nil, false, none},
	} {
		got, err := isLocal(t.Context(), test.where, func(_ context.Context, _, host string) ([]netip.Addr, error) {
			if host != "localhost" || test.has == nil {
				return nil, none
			}
			var ips []netip.Addr
			for _, a := range test.has {
				ips = append(ips, netip.MustParseAddr(a))
			}
			return ips, nil
		})
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s, where localhost is %v: %v, %v; want %v, %v",
				test.where, test.has, got, err, test.want, test.err)
		}
	}
}

// TestJoinKnownSecret: off this host a secret is long, and nobody else knows it. On this host, or if the job may be
// insecure, it is as it is.
func TestJoinKnownSecret(t *testing.T) {
	short, long := []byte("0123456789abcde"), []byte("0123456789abcdef")
	known := errors.New("others may read the file: chmod 600 it")
	for _, test := range []struct {
		where    string
		secret   []byte
		exposed  error
		insecure bool
		want     string
	}{
		{"192.0.2.1:6000", short, nil, false, "has 15 bytes, which can be guessed: want 16 random bytes or more"},
		{"dir:/nowhere", short, nil, false, "has 15 bytes"},
		{"dir:/nowhere", long, known, false, "others may know the job's secret: others may read the file: chmod 600 it"},
		{"dir:/nowhere", long, nil, false, "make a directory there"}, // which is what is next
		{"dir:/nowhere", short, known, true, "make a directory there"},
		{"unix:@" + t.Name(), short, known, false, "has not met replica 0"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := Join(ctx, Config{Rank: 1, Size: 2, Secret: test.secret},
			Meeting{Where: test.where, Exposed: test.exposed, Insecure: test.insecure})
		cancel()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s, %d bytes, %v: %v, want %q", test.where, len(test.secret), test.exposed, err, test.want)
		}
	}
}
