package tcp

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"text/tabwriter"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
)

var attacks = flag.Int("attacks", 400, "how many connections TestAttack makes to a live job")

// attacker makes connections to the listeners of a job. It knows the secret, for what an authenticated process can do.
type attacker struct {
	job       string
	secret    []byte
	addresses []Address
	recorded  [][]byte // what dialers have said in whole handshakes, by rank of the acceptor
	authentic atomic.Int32
}

// limitOpen is how long an attack waits for its connection to be closed.
const limitOpen = startLimit + 5*time.Second

func (a *attacker) dial(random *rand.Rand, to int) (net.Conn, error) {
	if random.IntN(2) == 0 {
		return net.Dial("unix", a.addresses[to].Unix)
	}
	return net.Dial("tcp", a.addresses[to].TCP)
}

// ending reads until the connection is closed and says how that was.
func ending(conn net.Conn) string {
	conn.SetReadDeadline(time.Now().Add(limitOpen))
	n, err := io.Copy(io.Discard, conn)
	var timeout net.Error
	switch {
	case errors.As(err, &timeout) && timeout.Timeout():
		return "STILL OPEN"
	case n > 0:
		return fmt.Sprintf("closed after %d bytes of answer", n)
	}
	return "closed"
}

// shake tries a whole handshake and says how it ended.
func (a *attacker) shake(conn net.Conn, secret []byte, h handshake.Hello) (string, bool) {
	err := handshake.Dial(conn, secret, h)
	if err == nil {
		return "accepted", true
	}
	text := err.Error()
	for _, end := range []string{": broken pipe", ": connection reset by peer", ": unexpected EOF"} {
		if before, ok := strings.CutSuffix(text, end); ok {
			text = before
			if at := strings.Index(text, ": write "); at >= 0 {
				text = text[:at]
			}
			if at := strings.Index(text, ": read "); at >= 0 {
				text = text[:at]
			}
		}
	}
	return text, false
}

// An attack does something with a fresh connection to replica to, and says how it ended.
type attack struct {
	name string
	run  func(a *attacker, conn net.Conn, random *rand.Rand, to int) string
}

// hello is a good hello to a replica that has replicas below it.
func (a *attacker) hello(to int) handshake.Hello {
	return handshake.Hello{Job: a.job, Rank: max(to-1, 0), Peer: to, Role: handshake.Data, Lane: 12345}
}

// withHello attacks with a good secret and a hello that is not right.
func withHello(change func(h *handshake.Hello, random *rand.Rand)) func(*attacker, net.Conn, *rand.Rand, int) string {
	return func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		h := a.hello(to)
		change(&h, random)
		how, accepted := a.shake(conn, a.secret, h)
		if accepted {
			conn.Write([]byte{started})
			return how + ", then " + ending(conn)
		}
		return anyReplica.ReplaceAllString(how, "replica R") // one line of the table for all
	}
}

var anyReplica = regexp.MustCompile(`replica \d+`)

func randomBytes(random *rand.Rand, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

var attackKinds = []attack{
	{"random bytes", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		conn.Write(randomBytes(random, 1+random.IntN(600)))
		return ending(conn)
	}},
	{"a handshake replayed", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		conn.Write(a.recorded[to])
		return ending(conn)
	}},
	{"a handshake cut at each byte, then an end", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		conn.Write(a.recorded[to][:random.IntN(len(a.recorded[to]))])
		conn.(interface{ CloseWrite() error }).CloseWrite()
		return ending(conn)
	}},
	{"a handshake cut at each byte, then a reset", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		conn.Write(a.recorded[to][:random.IntN(len(a.recorded[to]))])
		if c, ok := conn.(*net.TCPConn); ok {
			c.SetLinger(0)
		}
		return "reset by the attacker"
	}},
	{"a handshake with a byte changed", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		b := slices.Clone(a.recorded[to])
		b[random.IntN(len(b))] ^= byte(1 + random.IntN(255))
		conn.Write(b)
		return ending(conn)
	}},
	{"a handshake that drips", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		for _, b := range a.recorded[to] {
			if _, err := conn.Write([]byte{b}); err != nil {
				break
			}
			time.Sleep(25 * time.Millisecond)
		}
		return ending(conn)
	}},
	{"silence", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string { return ending(conn) }},
	{"frames without a handshake", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		b := append([]byte{0x67, 0x6c, 1, 0}, randomBytes(random, 60+random.IntN(1000))...)
		conn.Write(b)
		return ending(conn)
	}},
	{"control messages without a handshake", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		var b []byte
		for range 10 {
			n := 9 + random.IntN(50)
			b = binary.BigEndian.AppendUint16(b, uint16(n))
			b = append(b, byte(1+random.IntN(6)))
			b = append(b, randomBytes(random, n-1)...)
		}
		conn.Write(b)
		return ending(conn)
	}},
	{"another secret", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		how, _ := a.shake(conn, randomBytes(random, 16), a.hello(to))
		return how
	}},
	{"no secret", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		how, _ := a.shake(conn, nil, a.hello(to))
		return how
	}},
	{"the secret, another job", withHello(func(h *handshake.Hello, _ *rand.Rand) { h.Job = "yours" })},
	{"the secret, another peer", withHello(func(h *handshake.Hello, r *rand.Rand) { h.Peer += 1 + r.IntN(1000) })},
	{"the secret, a rank that does not dial", withHello(func(h *handshake.Hello, r *rand.Rand) { h.Rank = h.Peer })},
	{"the secret, a rank without end", withHello(func(h *handshake.Hello, _ *rand.Rand) { h.Rank = math.MaxInt32 })},
	{"the secret, the rendezvous", withHello(func(h *handshake.Hello, _ *rand.Rand) { h.Role = handshake.Rendezvous })},
	{"the secret, a control connection once more", withHello(func(h *handshake.Hello, _ *rand.Rand) {
		h.Role, h.Lane = handshake.Control, 0
	})},
	{"the secret, a lane that has its link", withHello(func(h *handshake.Hello, _ *rand.Rand) { h.Lane = 1 })},
	// What follows is kept until a lane of this number is opened, or the replica leaves: 1,024 such connections of one
	// replica are an error. So only some attacks are of this kind.
	{"the secret, a lane that nobody has, then noise", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		if to == 0 || a.authentic.Add(1) > 100 {
			return "not done"
		}
		h := a.hello(to)
		h.Lane = random.Uint64()
		how, accepted := a.shake(conn, a.secret, h)
		if accepted {
			conn.Write([]byte{started})
			conn.Write(randomBytes(random, 500))
			conn.Close()
		}
		return how
	}},
	{"the secret, accepted, then silence", func(a *attacker, conn net.Conn, random *rand.Rand, to int) string {
		how, accepted := a.shake(conn, a.secret, a.hello(to))
		if accepted {
			return how + ", then " + ending(conn)
		}
		return how
	}},
}

// recorder keeps what is written to a connection.
type recorder struct {
	net.Conn
	wrote []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.wrote = append(r.wrote, b...)
	return r.Conn.Write(b)
}

// TestAttack makes connections to the listeners of a job that no replica makes. The job goes on meanwhile, on lanes old
// and new, its bytes stay right, and nothing is left. It prints what was tried, and how that ended.
func TestAttack(t *testing.T) {
	leaktest.Check(t)
	const n = 3
	for _, e := range open(t, 2, Config{}) { // the runtime's own descriptors for sockets are there from now on
		e.Close()
	}
	before := openFiles(t)
	c := Config{Size: n, Secret: []byte("a secret of the job"), Job: "mine"}
	listeners, eps := connected(t, c)
	a := &attacker{job: c.Job, secret: c.Secret}
	for _, l := range listeners { // over TCP and over unix sockets; the replicas use the latter
		a.addresses = append(a.addresses, l.Address())
	}
	var until, rounds atomic.Int64
	until.Store(math.MaxInt64)
	var job sync.WaitGroup
	for _, e := range eps {
		job.Go(func() {
			ctx := context.Background()
			for k := 0; int64(k) < until.Load(); k++ {
				if e.Rank() == 0 {
					rounds.Store(int64(k))
				}
				time.Sleep(time.Millisecond) // a round now and then is enough, and leaves processors to the attack
				err := ringRound(ctx, e, k, 1000+k%5000)
				if err == nil && k%20 == 0 {
					var lane transport.Endpoint
					if lane, err = e.Dup(ctx); err == nil {
						err = errors.Join(ringRound(ctx, lane, k, 500), lane.Close())
					}
				}
				if err != nil {
					t.Errorf("replica %d, round %d: %v", e.Rank(), k, err)
					e.Abort(err)
					return
				}
			}
		})
	}
	for rounds.Load() < 2 && eps[0].Err() == nil { // the first lane has its links
		time.Sleep(time.Millisecond)
	}
	for to := range n {
		conn, err := net.Dial("tcp", a.addresses[to].TCP)
		if err != nil {
			t.Fatal(err)
		}
		r := &recorder{Conn: conn}
		if err := handshake.Dial(r, a.secret, a.hello(to)); err != nil && to > 0 {
			t.Fatal(err)
		}
		conn.Close()
		a.recorded = append(a.recorded, r.wrote)
	}

	var mu sync.Mutex // guards table
	table := map[string]int{}
	note := func(name, how string) {
		mu.Lock()
		defer mu.Unlock()
		table[name+"\t"+how]++
		if strings.Contains(how, "STILL OPEN") {
			t.Errorf("%s: the connection is still open after %v", name, limitOpen)
		}
	}
	var workers sync.WaitGroup
	tickets := make(chan int)
	for w := range 64 {
		random := rand.New(rand.NewPCG(uint64(w), 5))
		workers.Go(func() {
			for k := range tickets {
				kind, to := attackKinds[k%len(attackKinds)], random.IntN(n)
				conn, err := a.dial(random, to)
				if err != nil {
					note(kind.name, "not connected")
					continue
				}
				note(kind.name, kind.run(a, conn, random, to))
				conn.Close()
			}
		})
	}
	crowds := max(1, *attacks/2000)
	for k := range max(*attacks-200*crowds, 100) {
		tickets <- k
	}
	close(tickets)
	workers.Wait()
	for range crowds { // 200 at once
		random := rand.New(rand.NewPCG(9, 9))
		var conns [200]net.Conn
		for i := range conns {
			conns[i], _ = a.dial(random, 2)
		}
		for _, conn := range conns {
			how := "not connected"
			if conn != nil {
				how = ending(conn)
				conn.Close()
			}
			note("200 connections at once, silent", how)
		}
	}
	until.Store(rounds.Load() + 100)
	job.Wait()
	closeTogether(t, eps)
	for limit := time.Now().Add(10 * time.Second); openFiles(t) > before; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Errorf("%d descriptors before, %d after", before, openFiles(t))
			break
		}
	}
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	total := 0
	for _, line := range slices.SortedFunc(maps.Keys(table), cmp.Compare) {
		fmt.Fprintf(w, "%6d\t%s\n", table[line], line)
		total += table[line]
	}
	w.Flush()
	t.Logf("%d connections of attackers, while the replicas carried out %d rounds:\n%s", total, rounds.Load(), &text)
}
