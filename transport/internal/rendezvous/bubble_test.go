package rendezvous

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/fabric"
	"gogcl.dev/internal/netstack"
)

// bubbleJoin is how long replicas of jobs in bubbles wait for each other.
const bubbleJoin = 20 * time.Second

// bubbleConfig is that of a replica of a scene, with the patience of the product.
func bubbleConfig(s *fabric.Scene, rank int) Config {
	return Config{Rank: rank, Size: len(s.Processes), Job: "job", Secret: secret,
		Where: fmt.Sprint(s.Address(0), ":7000"),
		Blob:  func(netip.Addr) []byte { return fmt.Appendf(nil, "blob of %d", rank) }}
}

// TestMeetings has replicas meet over sockets through trouble of all kinds: docs/design/seeds.md.
func TestMeetings(t *testing.T) {
	jobs := 500
	if testing.Short() {
		jobs = 50
	}
	tally := fabric.Tally{}
	fabric.Each(t, jobs, func(t *testing.T, seed uint64) {
		s := fabric.NewScene(seed, fabric.None, fabric.Late, fabric.Break, fabric.Reset, fabric.Refuse, fabric.Shortly,
			fabric.Never, fabric.Few, fabric.Absent, fabric.Cut, fabric.Stop, fabric.Straggle)
		n := len(s.Processes)
		results, took := make([]result, n), make([]time.Duration, n)
		began := time.Now()
		var all sync.WaitGroup
		for r := range n {
			if r == s.Victim && s.Trouble == fabric.Absent {
				continue
			}
			all.Go(func() {
				if r == s.Victim && s.Trouble == fabric.Straggle {
					time.Sleep(bubbleJoin / 2)
				}
				came := time.Now()
				ctx, cancel := context.WithTimeout(netstack.With(context.Background(), s.Processes[r]), bubbleJoin)
				defer cancel()
				results[r].Met, results[r].err = Meet(ctx, bubbleConfig(s, r))
				took[r] = time.Since(came)
			})
		}
		all.Wait()
		failed, last := false, time.Since(began)
		for r, got := range results {
			failed = failed || got.err != nil
			if took[r] > bubbleJoin+linger+50*time.Millisecond {
				t.Errorf("replica %d has met the others for %v", r, took[r])
			}
			switch err := got.err; {
			case r == s.Victim && s.Trouble == fabric.Absent:
			case err != nil && !s.Harmed():
				t.Errorf("replica %d fails without a reason: %v", r, err)
			case err != nil && !is[*Error](err):
				t.Errorf("replica %d: an error of another kind: %T, %v", r, err, err)
			case err != nil && s.Blameable && r != s.Victim && s.Victim != 0 && !s.Blames(err):
				t.Errorf("the error of replica %d does not name replica %d: %v", r, s.Victim, err)
			case err == nil && len(got.Blobs) != n:
				t.Errorf("replica %d has %d blobs", r, len(got.Blobs))
			}
			for from, blob := range got.Blobs {
				if want := fmt.Sprintf("blob of %d", from); string(blob) != want {
					t.Errorf("replica %d has %q of replica %d", r, blob, from)
				}
			}
		}
		tally.Count(s.Trouble, failed, last)
		time.Sleep(time.Minute)
		if left := s.Fabric.Open(); left > 0 {
			t.Errorf("%d ends of connections are open", left)
		}
		if t.Failed() || fabric.Alone() {
			for r, got := range results {
				t.Logf("replica %d after %v: %v", r, took[r], got.err)
			}
			t.Logf("%v", s)
		}
	})
	tally.Log(t)
}

// TestShortHost: who has heard that the host has no descriptor says so in the end, though the host has gone by then.
func TestShortHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := fabric.NewScene(1, fabric.None)
		host := s.Processes[0]
		time.AfterFunc(time.Second, func() { host.Limit(0) }) // what is left is a descriptor to spare
		ctx, cancel := context.WithTimeout(context.Background(), bubbleJoin)
		defer cancel()
		var all sync.WaitGroup
		for r := range 2 {
			c := bubbleConfig(s, r)
			c.Size = 3
			all.Go(func() {
				if r == 1 {
					time.Sleep(2 * time.Second)
				}
				_, err := Meet(netstack.With(ctx, s.Processes[r]), c)
				if err == nil || !strings.Contains(err.Error(), "no file descriptor is left in process") {
					t.Errorf("replica %d: %v", r, err)
				}
			})
		}
		all.Wait()
	})
}

// TestPassingShortage: a host to whom a stranger dials while it has no descriptor, and who has one again before its
// patience is over, takes in who comes then. Where it lasts, that ends the meeting, or is said at the end of the time.
func TestPassingShortage(t *testing.T) {
	const never = time.Hour
	for name, test := range map[string]struct {
		lasts, join time.Duration
		want        string
	}{
		"passes":                    {patience - time.Second, bubbleJoin, ""},
		"lasts":                     {never, bubbleJoin, "replica 0 cannot take in others: no file descriptor is left"},
		"lasts as long as the time": {never, patience, "at the host: no file descriptor is left"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fabric.NewScene(1, fabric.None)
				host, began := s.Processes[0], time.Now()
				ctx, cancel := context.WithTimeout(netstack.With(t.Context(), host), test.join)
				defer cancel()
				config := func(rank int) Config {
					c := bubbleConfig(s, rank)
					c.Size = 2
					return c
				}
				time.AfterFunc(time.Millisecond, func() {
					host.FailAccept(-1)
					conn, err := s.Processes[1].Dial(t.Context(), "tcp", config(0).Where)
					if err != nil {
						t.Error(err)
						return
					}
					time.AfterFunc(min(test.lasts, bubbleJoin), func() {
						host.FailAccept(0)
						conn.Close()
					})
				})
				var other sync.WaitGroup
				if test.lasts != never {
					other.Go(func() {
						time.Sleep(2 * patience)
						if _, err := Meet(netstack.With(ctx, s.Processes[1]), config(1)); err != nil {
							t.Error(err)
						}
					})
				}
				_, err := Meet(ctx, config(0))
				if said := fmt.Sprint(err); test.want == "" && err != nil || !strings.Contains(said, test.want) {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
				other.Wait()
				time.Sleep(time.Minute)
			})
		})
	}
}

// losing is a stack whose first connection is lost in the middle of one of its writes.
type losing struct {
	netstack.Stack
	left int // writes until then; 0: there is no such write any more
}

func (l *losing) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := l.Stack.Dial(ctx, network, address)
	return &lossyConn{conn, l}, err
}

type lossyConn struct {
	net.Conn
	of *losing
}

func (c *lossyConn) Write(b []byte) (int, error) {
	if c.of.left--; c.of.left == 0 {
		n, _ := c.Conn.Write(b[:len(b)/2])
		c.Conn.Close()
		return n, net.ErrClosed
	}
	return c.Conn.Write(b)
}

// TestComesAgain: a visitor whose connection is lost in any write up to that of its first sheet comes again, and all
// meet. The next sheet says that it has the table. Who has come so far and is gone ends the meeting.
func TestComesAgain(t *testing.T) {
	meet := func(write int) (left int, errs [2]error) {
		synctest.Test(t, func(t *testing.T) {
			s := fabric.NewScene(1, fabric.None)
			visitor := &losing{s.Processes[1], write}
			ctx, cancel := context.WithTimeout(t.Context(), bubbleJoin)
			defer cancel()
			var all sync.WaitGroup
			for r, stack := range []netstack.Stack{s.Processes[0], visitor} {
				c := bubbleConfig(s, r)
				c.Size = 2
				all.Go(func() { _, errs[r] = Meet(netstack.With(ctx, stack), c) })
			}
			all.Wait()
			left = visitor.left
		})
		return left, errs
	}
	const many = 1000
	left, errs := meet(many)
	writes := many - left
	if errs != [2]error{} || writes < 3 {
		t.Fatalf("%d writes, %v", writes, errs)
	}
	for write := 1; write < writes; write++ {
		if _, errs := meet(write); errs != [2]error{} {
			t.Errorf("write %d of %d is lost: %v", write, writes, errs)
		}
	}
	if _, errs := meet(writes); errs[0] == nil || !strings.Contains(errs[0].Error(), "replica 1 had come and is gone") {
		t.Errorf("the last of %d writes is lost: %v", writes, errs)
	}
}
