package tcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/fabric"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/handshake"
)

// The limits of jobs in bubbles, on the clock of the bubble.
const (
	bubbleSilence = 2 * time.Second
	bubbleJoin    = 20 * time.Second

	// bubbleLimit is when all is over: nobody is waited for after the time to join, a replica that takes no connection
	// is lost after takeSilences times Silence, and the rest are Silence and pauses between rounds.
	bubbleLimit = bubbleJoin + (takeSilences+4)*bubbleSilence
)

// inMemory has all replicas of a Config be connected in memory, as processes of one host.
func inMemory(c Config) Config {
	c.from = fabric.New(1, fabric.Faults{}).Process("job", "node", netip.MustParseAddr("127.0.0.1"))
	c.Network, c.Job, c.Secret = TCP, "in memory", make([]byte, 32)
	return c
}

// TestJobs runs whole jobs, from listening to leaving, through trouble of all kinds.
func TestJobs(t *testing.T) {
	jobs := fabric.Jobs{Run: runBubble, Join: bubbleJoin, Silence: bubbleSilence, Limit: bubbleLimit,
		Wrong: errOther.Error(), Never: regexp.MustCompile(
			"mismatch|checksum|not authentic|does not speak|deadlock|leaves without|transfer [0-9]+ of")}
	jobs.Test(t)
}

// runBubble runs the job of a scene.
func runBubble(t *testing.T, s *fabric.Scene) []fabric.Parting {
	n := len(s.Processes)
	network := TCP
	if s.Hosts == 1 && s.Chances.IntN(2) == 0 {
		network = Unix
	}
	listeners, addresses := make([]*Listener, n), make([]Address, n)
	for r := range n {
		c := Config{Rank: r, Size: n, Network: network, Job: "bubble", Secret: make([]byte, 32), Silence: bubbleSilence,
			from: s.Processes[r], Address: s.Address(r).String()}
		var err error
		if listeners[r], err = Listen(c); err != nil {
			t.Fatal(err)
		}
		addresses[r] = listeners[r].Address()
	}
	p := program{rounds: 1 + s.Chances.IntN(20), lanes: 1 + s.Chances.IntN(2),
		size:  1 + s.Chances.IntN(1<<s.Chances.IntN(18)),
		pause: time.Duration(s.Chances.Int64N(int64(300 * time.Millisecond)))}
	ends := make([]fabric.Parting, n)
	began := time.Now()
	var all sync.WaitGroup
	for r := range n {
		rounds := p.rounds
		switch {
		case r != s.Victim:
		case s.Trouble == fabric.Absent:
			listeners[r].Close()
			ends[r].Met = true
			continue
		case s.Trouble == fabric.Leave:
			rounds = s.Chances.IntN(rounds)
		}
		all.Go(func() {
			if r == s.Victim && s.Trouble == fabric.Straggle {
				time.Sleep(bubbleJoin / 2)
			}
			came := time.Now()
			ctx, cancel := context.WithTimeout(context.Background(), bubbleJoin)
			e, err := listeners[r].Connect(ctx, addresses)
			cancel()
			ends[r].Joining = time.Since(came)
			if err == nil {
				ends[r].Met = true
				err = p.run(e, rounds)
				err = errors.Join(err, e.Close())
			}
			ends[r].Err, ends[r].At = err, time.Since(began)
		})
	}
	all.Wait()
	time.Sleep(time.Minute) // what is left ends by itself, or the bubble fails
	return ends
}

// program is what replicas of a job do.
type program struct {
	rounds, size, lanes int
	pause               time.Duration // of each replica in turn, before a round
}

// run does so many of the rounds, on each lane.
func (p program) run(e transport.Endpoint, rounds int) error {
	lanes := []transport.Endpoint{e}
	for range p.lanes - 1 {
		lane, err := e.Dup(context.Background())
		if err != nil {
			return err
		}
		defer lane.Close()
		lanes = append(lanes, lane)
	}
	errs := make([]error, len(lanes))
	var all sync.WaitGroup
	for i, lane := range lanes {
		all.Go(func() {
			for k := range rounds {
				if k%e.Size() == e.Rank() {
					time.Sleep(p.pause)
				}
				if errs[i] = p.round(lane, k); errs[i] != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// round has all replicas pass something on to the next one, or send something to all others.
func (p program) round(e transport.Endpoint, k int) error {
	if k%3 != 2 {
		return ringRound(context.Background(), e, k, p.size)
	}
	made := func(from, to int) []byte { return bytes.Repeat([]byte{byte(from), byte(to), byte(k)}, p.size/30+1) }
	var batch []transport.Transfer
	got := make([][]byte, e.Size())
	for r := range e.Size() {
		if r == e.Rank() {
			continue
		}
		got[r] = make([]byte, len(made(0, 0)))
		batch = append(batch, transport.Transfer{Kind: transport.Send, Peer: r, Buf: made(e.Rank(), r)},
			transport.Transfer{Kind: transport.Recv, Peer: r, Buf: got[r]})
	}
	if err := e.Exchange(context.Background(), roundCall(k), batch); err != nil {
		return err
	}
	for r, b := range got {
		if b != nil && !bytes.Equal(b, made(r, e.Rank())) {
			return fmt.Errorf("%w: from replica %d to %d in round %d", errOther, r, e.Rank(), k)
		}
	}
	return nil
}

// errOther says that a message is not what was sent.
var errOther = errors.New("wrong bytes")

// TestShortOfAll: a replica that has not even a descriptor to tell a dialer so ends the job, by an error that says so.
func TestShortOfAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fabric.NewScene(1, fabric.None)
		c := Config{Rank: 1, Size: 2, Network: TCP, Secret: make([]byte, 32), from: s.Processes[1]}
		l, err := Listen(c)
		if err != nil {
			t.Fatal(err)
		}
		s.Processes[1].Limit(0)
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_, err = l.Connect(ctx, []Address{{TCP: "127.0.0.1:1"}, l.Address()})
		if err == nil || !strings.Contains(err.Error(), "replica 1 cannot take connections of others: no file descriptor") {
			t.Error(err)
		}
		if took := time.Since(began); took > DefaultSilence {
			t.Errorf("it has taken %v", took)
		}
	})
}

// TestStrangerAtTheLimit: in a job that has all its connections a process at its descriptor limit to whom a stranger
// dials goes on, whether the stranger keeps the last descriptor or something else of the process does. The job ends
// when a replica is to dial that process.
func TestStrangerAtTheLimit(t *testing.T) {
	for _, test := range []struct {
		name   string
		limits func(p *fabric.Process)
		stays  bool // the stranger does
		dials  bool // a replica has to
	}{
		{"a stranger keeps it", func(p *fabric.Process) { p.Limit(0) }, true, false},
		{"something else does", func(p *fabric.Process) { p.FailAccept(-1) }, false, false},
		{"a replica dials", func(p *fabric.Process) { p.FailAccept(-1) }, false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fabric.NewScene(1, fabric.None)
				stranger := s.Fabric.Process("stranger", "node", netip.MustParseAddr("127.0.0.1"))
				listeners, addresses := make([]*Listener, 2), make([]Address, 2)
				for r := range listeners {
					var err error
					listeners[r], err = Listen(Config{Rank: r, Size: 2, Network: TCP, Secret: make([]byte, 32),
						from: s.Processes[r]})
					if err != nil {
						t.Fatal(err)
					}
					addresses[r] = listeners[r].Address()
				}
				ends, err := connectAll(listeners, addresses)
				if err != nil {
					t.Fatal(err)
				}
				lanes := make([]transport.Endpoint, 2)
				round := func(ends []transport.Endpoint, k int) (errs [2]error) {
					var all sync.WaitGroup
					for r, e := range ends {
						all.Go(func() { errs[r] = ringRound(t.Context(), e, k, 100) })
					}
					all.Wait()
					return errs
				}
				for r, e := range ends {
					if lanes[r], err = e.Dup(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if errs := round(ends, 0); errs != [2]error{} {
					t.Fatal(errs)
				}
				test.limits(s.Processes[1])
				conn, err := stranger.Dial(t.Context(), "tcp", addresses[1].TCP)
				if err != nil {
					t.Fatal(err)
				}
				if !test.stays {
					conn.Close()
				}
				time.Sleep(5 * handshake.Limit)
				if errs := round(ends, 1); errs != [2]error{} {
					t.Error(errs)
				}
				if test.dials {
					for r, err := range round(lanes, 0) {
						want := "replica 1 cannot take connections of others: no file descriptor"
						if err == nil || !strings.Contains(err.Error(), want) {
							t.Errorf("replica %d: %v", r, err)
						}
					}
				}
				conn.Close()
				var all sync.WaitGroup
				for _, e := range ends {
					all.Go(func() { e.Close() })
				}
				all.Wait()
				time.Sleep(time.Minute)
			})
		})
	}
}

// dropped is a connection that is reset after some writes.
type dropped struct {
	net.Conn
	writes int
}

func (d *dropped) Write(b []byte) (int, error) {
	if d.writes--; d.writes < 0 {
		d.Close()
		return 0, syscall.ECONNRESET
	}
	return d.Conn.Write(b)
}

// TestStartIsTriedAgain: a connection that is lost with the byte that starts it counts as one that was lost within the
// handshake, after which a dialer tries again.
func TestStartIsTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		here, there := net.Pipe()
		go handshake.Accept(there, nil, "", nil)
		const hello, proof = 1, 1
		said := handshake.Hello{Peer: 1, Role: handshake.Data}
		_, err := quietMesh(0, 2).shake(t.Context(), &dropped{here, hello + proof}, said)
		if closed, ok := errors.AsType[*handshake.ClosedError](err); !ok || !errors.Is(closed, syscall.ECONNRESET) {
			t.Errorf("%T, %v", err, err)
		}
		there.Close()
	})
}
