package tcp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/fabric"
	"gogcl.dev/transport"
)

var survivorSeeds = flag.Int("seeds", 0, "how many jobs TestSurvivors runs; 0: as many as in CI")

// TestSurvivors runs jobs that go on without those that are gone, through trouble of all kinds: docs/design/rejoin.md.
func TestSurvivors(t *testing.T) {
	fabric.TestSurvivors(t, 2000, *survivorSeeds, bubbleSilence, survive)
}

// asked is a process whose end the kernel of a network in memory tells another one of.
type asked struct{ by, of *fabric.Process }

func (a asked) ended(limit time.Duration) bool {
	if limit > 0 && !a.of.Ended() {
		time.Sleep(limit)
	}
	return a.of.Ended()
}

// survive runs the job of a scene.
func survive(t *testing.T, s *fabric.Scene) *fabric.Survivors {
	n := len(s.Processes)
	listeners, addresses := make([]*Listener, n), make([]Address, n)
	network := TCP
	if s.Hosts == 1 && s.Chances.IntN(2) == 0 {
		network = Unix
	}
	for r := range n {
		c := Config{Rank: r, Size: n, Network: network, Job: "bubble", Secret: make([]byte, 32), Silence: bubbleSilence,
			from: s.Processes[r], Address: s.Address(r).String(), ring: survivorRing}
		c.meets = func(m *mesh) {
			for x, other := range m.all() {
				if other != nil && s.SameHost(r, x) {
					other.process = asked{s.Processes[r], s.Processes[x]}
				}
			}
		}
		var err error
		if listeners[r], err = Listen(c); err != nil {
			t.Fatal(err)
		}
		addresses[r] = listeners[r].Address()
	}
	eps, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	v := fabric.NewSurvivors(s)
	runs := make([]*survivor, n)
	for r := range runs {
		runs[r] = &survivor{Scene: s, Survivors: v, place: r, quits: -1}
		c := s.Chances
		runs[r].star, runs[r].lanes, runs[r].size = s.Seeded%2 == 0, s.Seeded%3 == 0, 1+int(s.Seeded%1000)
		runs[r].closes = c.IntN(2) == 0
		if len(s.Victims) > 0 && s.Victims[0] == r && s.Trouble == fabric.GiveUp {
			runs[r].quits = time.Duration(c.Int64N(int64(1 + 6*s.Delay)))
		}
	}
	s.Strike()
	var all sync.WaitGroup
	for r, e := range eps {
		all.Go(func() { runs[r].run(e) })
	}
	all.Wait()
	time.Sleep(time.Minute) // what is left ends by itself, or the bubble fails
	return v
}

// survivor is a replica that makes steps, each with all others that are left. Who has seen a step done knows that all
// have voted for it.
type survivor struct {
	*fabric.Scene
	*fabric.Survivors
	place       int
	star, lanes bool // votes go by one replica; over a lane of their own
	closes      bool // the last endpoint is closed before the first step on the next one
	quits       time.Duration
	size        int // bytes of a vote beside its head

	done, state uint64 // steps, and what has come of them
	next        uint64 // what comes of the one that is being made
	trying      uint64 // the greatest step that this replica has voted for
}

// survivorRing is less than the largest vote has, as pumps hold less than large messages.
const survivorRing = 512

// rejoinTime is more than any agreement takes, and twice of it more than any job.
const rejoinTime = time.Minute

func (p *survivor) run(e transport.Endpoint) {
	process := p.Processes[p.place]
	ctx, cancel := context.WithTimeout(context.Background(), 2*rejoinTime)
	defer cancel()
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-process.Died():
			cancel()
		case <-over:
		}
	}()
	var open []transport.Endpoint
	end := fabric.Ending{How: fabric.Done}
	for {
		open = append(open, e)
		end.Err = p.steps(ctx, e)
		if end.Err == nil || errors.Is(end.Err, errOther) {
			break
		}
		rejoining, stop := context.WithTimeout(ctx, rejoinTime)
		if p.quits >= 0 {
			rejoining, stop = context.WithTimeout(ctx, p.quits)
		}
		process.Runs()
		agreed, err := e.(transport.Rejoiner).Rejoin(rejoining, p.done)
		stop()
		if end.Err = err; err != nil {
			break
		}
		if p.closes {
			e.Close()
		}
		e = agreed.Endpoint
		if end.Err = p.takes(agreed); end.Err != nil {
			open = append(open, e)
			break
		}
	}
	minority := (*transport.MinorityError)(nil)
	switch {
	case end.Err == nil:
	case errors.Is(end.Err, transport.ErrLeftBehind):
		end.How = fabric.Behind
	case errors.As(end.Err, &minority):
		end.How, end.Left, end.Of = fabric.Minority, minority.Left, minority.Of
	case errors.Is(end.Err, context.DeadlineExceeded):
		end.How = fabric.GaveUp
	default:
		end.How = fabric.Failed
	}
	p.Ends(p.place, end)
	for _, e := range open {
		e.Close()
	}
	process.Exit(0)
}

// takes looks at what has been agreed on, and does the step that others know to be done.
func (p *survivor) takes(agreed *transport.Rejoined) error {
	a := fabric.Agreed{Generation: agreed.Generation, Replicas: agreed.Replicas, Notes: agreed.Notes,
		Rank: agreed.Endpoint.Rank(), Size: agreed.Endpoint.Size()}
	for _, g := range agreed.Gone {
		if g.Why == nil || g.When.IsZero() {
			return fmt.Errorf("%w: of why %+v is gone", errOther, g)
		}
		a.Gone = append(a.Gone, g.Replica)
	}
	p.Took(p.place, p.done, a)
	for _, committed := range a.Notes {
		if committed > p.done {
			if p.trying != committed {
				return fmt.Errorf("%w: step %d is done, without the vote for it", errOther, committed)
			}
			p.done, p.state = committed, p.next
		}
	}
	return nil
}

// steps makes all steps that are yet to be made.
func (p *survivor) steps(ctx context.Context, e transport.Endpoint) error {
	if p.lanes {
		lane, err := e.Dup(ctx)
		if err != nil {
			return err
		}
		defer lane.Close()
		e = lane
	}
	for k := 0; p.done < uint64(p.Steps); k++ {
		p.Processes[p.place].Runs()
		if time.Sleep(p.Pause); ctx.Err() != nil {
			return ctx.Err()
		}
		members := p.Members(p.place)
		h := fnv.New64a()
		fmt.Fprint(h, p.state, p.done, members)
		p.next = h.Sum64()
		p.trying = p.done + 1
		if err := p.vote(ctx, e, k, members); err != nil {
			return err
		}
		p.done, p.state = p.trying, p.next
		p.Did(p.place, p.done, p.state)
	}
	return nil
}

// vote has all tell all others, or one tell all when all have told it.
func (p *survivor) vote(ctx context.Context, e transport.Endpoint, k int, members []int) error {
	me, n := e.Rank(), e.Size()
	if n != len(members) || members[me] != p.place {
		return fmt.Errorf("%w: number %d of %d, want replica %d of %v", errOther, me, n, p.place, members)
	}
	made := func(from, to int) []byte {
		b := binary.BigEndian.AppendUint64(nil, p.next)
		b = append(b, byte(members[from]), byte(members[to]))
		return append(b, bytes.Repeat([]byte{byte(k + from)}, p.size)...)
	}
	exchange := func(round int, to, from []int) error {
		call := roundCall(k)
		call.Round = uint32(round)
		var batch []transport.Transfer
		got := make([][]byte, n)
		for _, r := range to {
			batch = append(batch, transport.Transfer{Kind: transport.Send, Peer: r, Buf: made(me, r)})
		}
		for _, r := range from {
			got[r] = make([]byte, len(made(r, me)))
			batch = append(batch, transport.Transfer{Kind: transport.Recv, Peer: r, Buf: got[r]})
		}
		if len(batch) == 0 {
			return e.Err()
		}
		if err := e.Exchange(ctx, call, batch); err != nil {
			return err
		}
		for _, r := range from {
			if !bytes.Equal(got[r], made(r, me)) {
				return fmt.Errorf("%w: replica %d, step %d: %x of replica %d, want %x", errOther, p.place, p.trying,
					got[r][:10], members[r], made(r, me)[:10])
			}
		}
		return nil
	}
	var others []int
	for r := range n {
		if r != me {
			others = append(others, r)
		}
	}
	root := k % n
	switch {
	case !p.star:
		return exchange(0, others, others)
	case me == root:
		if err := exchange(0, nil, others); err != nil {
			return err
		}
		return exchange(1, others, nil)
	}
	if err := exchange(0, []int{root}, nil); err != nil {
		return err
	}
	return exchange(1, nil, []int{root})
}
