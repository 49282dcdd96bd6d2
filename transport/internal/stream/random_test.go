package stream

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport"
)

var seeds = flag.Int("seeds", 24, "how many seeds TestDribble tries")

// dribbleLink is a ringLink that takes and shows a few bytes at a time, and now and then nothing at all for once.
type dribbleLink struct {
	ringLink
	random *rand.Rand
	most   int // bytes at a time
}

func (l *dribbleLink) some() int { return 1 + l.random.IntN(l.most) }

// pause reports whether the link does nothing this time, and has the lane look again. A lane that does not watch the
// link yet looks again when it does.
func (l *dribbleLink) pause(r *ring, parker *Parker) bool {
	if l.random.IntN(16) > 0 {
		return false
	}
	r.mu.Lock()
	wake(*parker)
	r.mu.Unlock()
	return true
}

func (l *dribbleLink) Send(head, body, tail []byte) (n int, err error) {
	if l.pause(l.out, &l.out.writer) {
		return 0, nil
	}
	left := l.some()
	for _, b := range [][]byte{head, body, tail} {
		b = b[:min(len(b), left)]
		k, err := l.ringLink.Send(b, nil, nil)
		n, left = n+k, left-k
		if err != nil || k < len(b) || left == 0 {
			return n, err // not for lack of room: the lane tries again, since something has moved
		}
	}
	return n, nil
}

func (l *dribbleLink) Peek(n int) ([]byte, error) {
	if l.pause(l.in, &l.in.reader) {
		return nil, nil
	}
	b, err := l.ringLink.Peek(n)
	if len(b) > n {
		b = b[:min(len(b), n+l.some()-1)]
	}
	return b, err
}

func (l *dribbleLink) ReadInto(dst []byte) (int, error) {
	if l.pause(l.in, &l.in.reader) {
		return 0, nil
	}
	return l.ringLink.ReadInto(dst[:min(len(dst), l.some())])
}

// transferPlan is a transfer of a round, before it has memory.
type transferPlan struct {
	peer, tag, size int
	kind            transport.Kind
	next            bool
	own             bool // a receive that folds: the replica's operand goes before it
	first           bool // own stands before all
}

// planRound makes a round up: by replica, the batch.
func planRound(random *rand.Rand, n int) [][]transferPlan {
	sizes := []int{0, 1, 63, 64, 65, 127, 128, 500, 1000, 3000}
	plans := make([][]transferPlan, n)
	sends := make([][]transferPlan, n)
	for q := range n {
		tags := make([]int, n)
		for range random.IntN(4) {
			size := sizes[random.IntN(len(sizes))]
			for k := range 1 + random.IntN(4) {
				p := (q + 1 + random.IntN(n-1)) % n
				x := transferPlan{peer: p, tag: tags[p], size: size, kind: transport.RecvFold, next: k > 0}
				switch random.IntN(3) {
				case 0:
					x.own = k > 0
					x.first = k == 0
				case 1:
					x.first = k == 0
				}
				if k == 0 && !x.first {
					x.kind = transport.Recv
				}
				plans[q] = append(plans[q], x)
				sends[p] = append(sends[p], transferPlan{peer: q, tag: tags[p], size: size, kind: transport.Send})
				tags[p]++
			}
		}
	}
	for q := range n {
		random.Shuffle(len(sends[q]), func(i, j int) { sends[q][i], sends[q][j] = sends[q][j], sends[q][i] })
		// Sends go before all, behind all, or between the chains.
		at := random.IntN(len(plans[q]) + 1)
		for at < len(plans[q]) && plans[q][at].next {
			at++
		}
		whole := append([]transferPlan{}, plans[q][:at]...)
		plans[q] = append(append(whole, sends[q]...), plans[q][at:]...)
	}
	return plans
}

// sentBytes are what a replica sends another one, and what it folds of its own where from and to are the same.
func sentBytes(lane, round, from, to, tag, size int) []byte {
	random := rand.New(rand.NewPCG(uint64(lane)<<32|uint64(round), uint64(from)<<40|uint64(to)<<20|uint64(tag)))
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(random.Uint32())
	}
	return b
}

// foldOracle is dst = a op b, neither commutative nor associative.
func foldOracle(dst, a, b []byte) {
	for i := range dst {
		dst[i] = a[i]*31 + b[i] + 7
	}
}

// runPlan carries out a replica's batch of a round and compares with what one replica after the other would make of it.
func runPlan(e transport.Endpoint, lane, round int, plan []transferPlan) error {
	me := e.Rank()
	var batch []transport.Transfer
	var bufs, want [][]byte
	for _, x := range plan {
		t := transport.Transfer{Peer: x.peer, Tag: uint32(x.tag), Kind: x.kind, Next: x.next}
		if x.kind == transport.Send {
			t.Buf = sentBytes(lane, round, me, x.peer, x.tag, x.size)
			batch = append(batch, t)
			continue
		}
		arrives := sentBytes(lane, round, x.peer, me, x.tag, x.size)
		own := sentBytes(lane, round, me, me, x.tag, x.size)
		if !x.next {
			bufs = append(bufs, make([]byte, x.size))
			want = append(want, make([]byte, x.size))
		}
		t.Buf = bufs[len(bufs)-1]
		w := want[len(want)-1]
		if x.kind == transport.Recv {
			copy(w, arrives)
		} else {
			t.Fold = func(dst, a, b []byte) {
				if len(dst) == 0 || len(dst) != len(a) || len(dst) != len(b) {
					panic(fmt.Sprintf("a Fold of %d, %d and %d bytes", len(dst), len(a), len(b)))
				}
				foldOracle(dst, a, b)
			}
			switch {
			case x.first:
				t.With = own
				foldOracle(w, own, arrives)
			case x.own:
				t.With = own
				foldOracle(w, w, own)
				foldOracle(w, w, arrives)
			default:
				foldOracle(w, w, arrives)
			}
		}
		batch = append(batch, t)
	}
	call := transport.Call{Group: 1, Seq: uint64(round/3 + 1), Round: uint32(round % 3)}
	if err := e.Exchange(context.Background(), call, batch); err != nil {
		return err
	}
	for i := range bufs {
		if !bytes.Equal(bufs[i], want[i]) {
			return fmt.Errorf("lane %d round %d: buffer %d of %d bytes is wrong", lane, round, i, len(want[i]))
		}
	}
	return nil
}

// TestDribble runs random rounds on several lanes over links that take and show a few bytes at a time.
func TestDribble(t *testing.T) {
	times := *seeds
	if testing.Short() {
		times /= 3
	}
	for seed := range times {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		n, lanes, rounds := 2+random.IntN(4), 1+random.IntN(3), 8
		ringBytes := frameAlign * (2 + random.IntN(6))
		spin := time.Duration(random.IntN(2)) * 20 * time.Microsecond
		most := []int{1, 5, 64, 200, 1000}[random.IntN(5)]
		sums := random.IntN(2) == 0
		ok := t.Run(fmt.Sprintf("seed=%d/n=%d/lanes=%d/ring=%d/most=%d/spin=%v/sums=%v", seed, n, lanes, ringBytes,
			most, spin, sums), func(t *testing.T) {
			leaktest.Check(t)
			eps := openHosts(t, n, ringBytes, sums, spin, func(l *ringLink) Link {
				return &dribbleLink{*l, rand.New(rand.NewPCG(uint64(seed), uint64(most))), most}
			}, nil)
			plans := make([][][][]transferPlan, lanes)
			for k := range plans {
				for range rounds {
					plans[k] = append(plans[k], planRound(random, n))
				}
			}
			var all sync.WaitGroup
			for _, e := range eps {
				for k := range lanes {
					lane := e
					if k > 0 {
						var err error
						if lane, err = e.Dup(context.Background()); err != nil {
							t.Fatal(err)
						}
					}
					all.Go(func() {
						for r := range rounds {
							if err := runPlan(lane, k, r, plans[k][r][e.Rank()]); err != nil {
								t.Error(err)
								e.Abort(err)
								return
							}
						}
					})
				}
			}
			all.Wait()
			closeTogether(t, eps)
		})
		if !ok {
			return
		}
	}
}

// TestWakeUps has replicas that park at once pass a message round and round: one lost wake-up, and it hangs.
func TestWakeUps(t *testing.T) {
	leaktest.Check(t)
	const n = 3
	times := 20000
	if testing.Short() {
		times = 3000
	}
	eps := openHosts(t, n, 192, false, 0, nil, nil)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var all sync.WaitGroup
	for _, e := range eps {
		all.Go(func() {
			me := e.Rank()
			buf := make([]byte, 100)
			// The ring: replica 0 sends first.
			for k := range times {
				call := transport.Call{Group: 1, Seq: uint64(k + 1)}
				recv := []transport.Transfer{{Kind: transport.Recv, Peer: (me + n - 1) % n, Buf: buf}}
				send := []transport.Transfer{{Kind: transport.Send, Peer: (me + 1) % n, Buf: buf}}
				first, second := recv, send
				if me == 0 {
					first, second = send, recv
				}
				if err := errors.Join(e.Exchange(ctx, call, first), e.Exchange(ctx, call, second)); err != nil {
					t.Errorf("replica %d, turn %d: %v", me, k, err)
					return
				}
			}
		})
	}
	all.Wait()
	for _, e := range eps {
		e.Close()
	}
}

// TestOneSided has one replica send and another one receive, more messages than 16 bits count, in both directions one
// after the other.
func TestOneSided(t *testing.T) {
	leaktest.Check(t)
	times := 1<<16 + 1000
	eps := openHosts(t, 2, 1024, false, 20*time.Microsecond, nil, nil)
	var all sync.WaitGroup
	for me, e := range eps {
		all.Go(func() {
			for turn := range 2 {
				var buf [4]byte
				for k := range times {
					x := transport.Transfer{Kind: transport.Recv, Peer: 1 - me, Buf: buf[:]}
					if turn == me {
						x.Kind = transport.Send
						buf = [4]byte{byte(k), byte(k >> 8), byte(k >> 16), byte(turn)}
					}
					call := transport.Call{Group: 1, Seq: uint64(turn*times + k + 1)}
					if err := e.Exchange(context.Background(), call, []transport.Transfer{x}); err != nil {
						t.Errorf("replica %d, message %d: %v", me, k, err)
						return
					}
					if buf != [4]byte{byte(k), byte(k >> 8), byte(k >> 16), byte(turn)} {
						t.Errorf("replica %d, message %d: % x", me, k, buf)
						return
					}
				}
			}
		})
	}
	all.Wait()
	closeTogether(t, eps)
}
