package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

func dup(t *testing.T, e transport.Endpoint) transport.Endpoint {
	t.Helper()
	d, err := e.Dup(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// one is a batch of one transfer with the other replica of two.
func one(e transport.Endpoint, kind transport.Kind, buf []byte) []transport.Transfer {
	return []transport.Transfer{{Kind: kind, Peer: 1 - e.Rank(), Buf: buf}}
}

// TestLeaveUnopened has a replica send on a lane that the other one has not opened, and leave. Nothing is lost, however
// it leaves.
func TestLeaveUnopened(t *testing.T) {
	for _, way := range []string{"lane, then all", "all", "all while the lane is being closed"} {
		t.Run(way, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { leaveUnopened(t, way) })
		})
	}
}

// leaveUnopened is TestLeaveUnopened of one way, in a bubble: Close waits there for what nobody takes.
func leaveUnopened(t *testing.T, way string) {
	eps := openHosts(t, 2, 4096, false, 0, func(l *ringLink) Link { // what was sent arrives by and by
		return &dribbleLink{*l, rand.New(rand.NewPCG(1, 1)), 5}
	}, nil)
	d := dup(t, eps[0])
	sent := bytes.Repeat([]byte("here"), 500)
	if err := d.Exchange(context.Background(), hostileCall, one(d, transport.Send, sent)); err != nil {
		t.Fatal(err)
	}
	var other sync.WaitGroup
	switch way {
	case "lane, then all":
		d.Close()
	case "all while the lane is being closed":
		other.Go(func() { d.Close() })
		for !d.(*Lane).closed.Load() {
			time.Sleep(time.Millisecond)
		}
	}
	if err := eps[0].Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	other.Wait()
	eps[1].(*Lane).node.waitGone(t, 0)
	got := make([]byte, len(sent))
	far := dup(t, eps[1])
	if err := far.Exchange(context.Background(), hostileCall, one(far, transport.Recv, got)); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("something was lost")
	}
	if err := eps[1].Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// waitGone waits until a replica is known to have left all lanes.
func (n *Node) waitGone(t *testing.T, peer int) {
	t.Helper()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n.mu.Lock()
		gone := n.gone[peer]
		n.mu.Unlock()
		if gone {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("replica %d has not left", peer)
		}
	}
}

// TestMisses: a node misses a replica whose connection ends, unless the replica has left or the node has.
func TestMisses(t *testing.T) {
	eps := openRings(t, 3, 192, false)
	n := eps[0].(*Lane).node
	if !n.Misses(1) {
		t.Error("a replica that is there is not missed")
	}
	eps[1].Close()
	n.waitGone(t, 1)
	if n.Misses(1) || !n.Misses(2) {
		t.Errorf("replica 1, which has left, is missed %v; replica 2 %v", n.Misses(1), n.Misses(2))
	}
	eps[0].Close()
	if n.Misses(2) {
		t.Error("a node that has left misses a replica")
	}
	eps[2].Close()
}

// TestManyLanes opens lanes by the thousand, uses and closes them. A node forgets them.
func TestManyLanes(t *testing.T) {
	leaktest.Check(t)
	eps := openRings(t, 3, 192, false)
	times := 2000
	if testing.Short() {
		times = 300
	}
	var all sync.WaitGroup
	for _, e := range eps {
		all.Go(func() {
			for k := range times {
				d, err := e.Dup(context.Background())
				if err != nil {
					t.Error(err)
					return
				}
				to, from := (e.Rank()+1)%3, (e.Rank()+2)%3
				if k%3 == 0 { // some lanes are never used
					d.Close()
					continue
				}
				call := transport.Call{Group: 5, Seq: uint64(k + 1)}
				err = d.Exchange(context.Background(), call, []transport.Transfer{
					{Kind: transport.Send, Peer: to, Buf: []byte("abc")},
					{Kind: transport.Recv, Peer: from, Buf: make([]byte, 3)},
				})
				if err := errors.Join(err, d.Close()); err != nil {
					t.Errorf("lane %d: %v", k, err)
					return
				}
			}
		})
	}
	all.Wait()
	for until := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		var left strings.Builder
		for r, e := range eps {
			n := e.(*Lane).node
			n.mu.Lock()
			if len(n.lanes) != 1 || len(n.early) != 0 {
				fmt.Fprintf(&left, "replica %d has %d lanes, and %d entries of lanes that are not open; ", r, len(n.lanes),
					len(n.early))
			}
			n.mu.Unlock()
		}
		if left.String() == "" {
			break
		}
		if time.Now().After(until) {
			t.Error(left.String())
			break
		}
	}
	closeTogether(t, eps)
}

func closeTogether(t *testing.T, eps []transport.Endpoint) {
	var all sync.WaitGroup
	for _, e := range eps {
		all.Go(func() {
			if err := e.Close(); err != nil {
				t.Errorf("replica %d: Close: %v", e.Rank(), err)
			}
		})
	}
	all.Wait()
}

// TestCloseRaces has everything happen at once: Exchange, Dup, Abort and Close from many goroutines, links that come,
// control messages. Everything ends.
func TestCloseRaces(t *testing.T) {
	leaktest.Check(t)
	times := 200
	if testing.Short() {
		times = 50
	}
	for turn := range times {
		eps := openRings(t, 3, 192, false)
		var all sync.WaitGroup
		begin := make(chan bool)
		for _, e := range eps {
			d := dup(t, e)
			for k, lane := range []transport.Endpoint{e, d} {
				all.Go(func() {
					<-begin
					for k := 0; ; k++ {
						to, from := (e.Rank()+1)%3, (e.Rank()+2)%3
						err := lane.Exchange(context.Background(), transport.Call{Group: 5, Seq: uint64(k + 1)},
							[]transport.Transfer{{Kind: transport.Send, Peer: to, Buf: []byte("abc")},
								{Kind: transport.Recv, Peer: from, Buf: make([]byte, 3)}})
						if err != nil {
							return
						}
					}
				})
				for range 2 {
					all.Go(func() {
						<-begin
						time.Sleep(time.Duration(turn*k) * 10 * time.Microsecond)
						lane.Close()
					})
				}
			}
			all.Go(func() {
				<-begin
				for range maxEarly / 2 { // more at a time than a peer has opened are an error
					x, err := e.Dup(context.Background())
					if err != nil {
						return
					}
					x.Close()
				}
			})
			if turn%3 == e.Rank() {
				all.Go(func() {
					<-begin
					time.Sleep(time.Duration(turn) * 5 * time.Microsecond)
					e.Abort(errors.New("enough"))
				})
			}
		}
		close(begin)
		all.Wait()
	}
}

// TestFoldAborts has a Fold abort, and one panic.
func TestFoldAborts(t *testing.T) {
	for _, way := range []string{"abort", "panic"} {
		t.Run(way, func(t *testing.T) {
			leaktest.Check(t)
			eps := openRings(t, 2, 1024, false)
			enough := errors.New("enough")
			var all sync.WaitGroup
			var errs [2]error
			for me, e := range eps {
				all.Go(func() {
					defer func() {
						if p := recover(); p != nil && p != "fold" {
							t.Error(p)
						}
					}()
					buf := make([]byte, 5000)
					batch := []transport.Transfer{{Kind: transport.Send, Peer: 1 - me, Buf: make([]byte, 5000)},
						{Kind: transport.RecvFold, Peer: 1 - me, Buf: buf, With: buf, Fold: func(dst, a, b []byte) {
							switch {
							case me == 1:
							case way == "abort":
								e.Abort(enough)
							default:
								panic("fold")
							}
						}}}
					for k := 0; errs[me] == nil; k++ {
						errs[me] = e.Exchange(context.Background(), transport.Call{Group: 1, Seq: uint64(k + 1)}, batch)
					}
				})
			}
			all.Wait()
			for me, e := range eps {
				var aborted *transport.AbortError
				if !errors.As(e.Err(), &aborted) || aborted.Replica != 0 {
					t.Errorf("replica %d: Err is %v", me, e.Err())
				}
				if way == "abort" && !errors.As(errs[me], &aborted) || errs[1] == nil {
					t.Errorf("replica %d: %v", me, errs[me])
				}
				if err := e.Close(); err != nil {
					t.Errorf("replica %d: Close: %v", me, err)
				}
			}
		})
	}
}
