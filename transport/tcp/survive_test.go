package tcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/internal/fabric"
	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport"
	"gogcl.dev/transport/internal/rendezvous"
)

var survivorSeeds = flag.Int("seeds", 0, "how many jobs TestSurvivors runs; 0: as many as in CI")

// TestSurvivors runs jobs that go on without those that are gone, through trouble of all kinds: docs/design/rejoin.md.
func TestSurvivors(t *testing.T) {
	fabric.TestSurvivors(t, 1600, *survivorSeeds, bubbleSilence, survive)
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
	v := fabric.NewSurvivors(s)
	v.NoKernel = len(s.Newcomers) > 0 && s.Severs() // it says nothing of those who go on elsewhere, with newcomers
	config := func(r int) Config {
		return Config{Rank: r, Size: n, Most: s.Most, Network: network, Job: "bubble", Secret: make([]byte, 32),
			Silence: bubbleSilence, from: s.Process(r), Address: s.Process(r).Address().String(), ring: survivorRing,
			tests: &testHooks{runs: s.Process(r).Runs, kernel: func(there Address) kernel {
				if other := s.Fabric.Owner(cmp.Or(there.Unix, there.TCP)); other != nil && !v.NoKernel {
					return asked{s.Process(r), other}
				}
				return (*process)(nil)
			}}}
	}
	desk := rendezvous.Config{Size: n, Job: "bubble", Secret: make([]byte, 32),
		Where: fmt.Sprint(s.Address(0), ":7000")}
	for r := range n {
		var err error
		if listeners[r], err = Listen(config(r)); err != nil {
			t.Fatal(err)
		}
		addresses[r] = listeners[r].Address()
		if len(s.Newcomers) > 0 {
			listeners[r].desk = &deskOf{config: desk}
		}
	}
	eps, err := connectAll(listeners, addresses)
	if err != nil {
		t.Fatal(err)
	}
	v.Begins()
	runs := make([]*survivor, s.Parties())
	for r := range runs {
		runs[r] = &survivor{Scene: s, Survivors: v, own: r, place: r, quits: -1}
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
	coming, stop := context.WithTimeout(context.Background(), 2*rejoinTime)
	defer stop()
	var newcomers sync.WaitGroup
	for i, newcomer := range s.Newcomers {
		newcomers.Go(func() {
			time.Sleep(newcomer.At)
			runs[n+i].comes(coming, config(0), desk.Where)
		})
	}
	all.Wait()
	time.AfterFunc(2*bubbleSilence, stop) // some newcomer may go on
	newcomers.Wait()
	time.Sleep(time.Minute) // what is left ends by itself, or the bubble fails
	return v
}

// survivor is a replica that makes steps, each with all others that are left. Who has seen a step done knows that all
// have voted for it.
type survivor struct {
	*fabric.Scene
	*fabric.Survivors
	own         int  // among all processes
	place       int  // what the others call it
	star, lanes bool // votes go by one replica; over a lane of their own
	closes      bool // the last endpoint is closed before the first step on the next one
	quits       time.Duration
	size        int // bytes of a vote beside its head

	done, state uint64 // steps, and what has come of them
	next        uint64 // what comes of the one that is being made
	trying      uint64 // the greatest step that this replica has voted for
	awaited     byte   // 1: somebody waits, as all know who have seen the step done
	blank       bool   // it has come, and does not know the state yet
	blanks      []int  // numbers of those that do not
}

// errAwaited has replicas rejoin for a newcomer, and errOrphan says that nobody is left who knows the state.
var (
	errAwaited = errors.New("a newcomer waits")
	errOrphan  = errors.New("nobody knows the state")
)

// comes is a newcomer, which config(0) is to be made one.
func (p *survivor) comes(ctx context.Context, c Config, where string) {
	process := p.Process(p.own)
	if process.Dead() {
		return
	}
	ctx, cancel := process.Lives(ctx)
	defer cancel()
	c.from, c.Address = process, process.Address().String()
	hooks := *c.tests
	hooks.runs = process.Runs
	c.tests = &hooks
	joined, err := Come(netstack.With(ctx, process), c, Meeting{Where: where})
	if err != nil {
		how := fabric.Failed
		if ctx.Err() != nil || err == errOver {
			how = fabric.Unmet
		}
		p.Ends(p.own, fabric.Ending{Err: err, How: how})
		process.Exit(0)
		return
	}
	places := joined.Endpoint.(*endpoint).generation.members
	p.place, p.blank = places[len(places)-1], true
	if err := p.takes(joined); err != nil {
		p.Ends(p.own, fabric.Ending{Err: err, How: p.how(err)})
		joined.Endpoint.Close()
		process.Exit(0)
		return
	}
	p.run(joined.Endpoint)
}

// survivorRing is less than the largest vote has, as pumps hold less than large messages.
const survivorRing = 512

// rejoinTime is more than any agreement takes, and twice of it more than any job.
const rejoinTime = time.Minute

func (p *survivor) run(e transport.Endpoint) {
	process := p.Process(p.own)
	ctx, stop := context.WithTimeout(context.Background(), 2*rejoinTime)
	defer stop()
	ctx, cancel := process.Lives(ctx)
	defer cancel()
	var open []transport.Endpoint
	var end fabric.Ending
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
		note := p.done + 1
		if p.blank {
			note = 0
		}
		agreed, err := e.(transport.Rejoiner).Rejoin(rejoining, note)
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
	end.How = p.how(end.Err)
	if minority, is := errors.AsType[*transport.MinorityError](end.Err); is {
		end.Left, end.Of = minority.Left, minority.Of
	}
	p.Ends(p.own, end)
	for _, e := range open {
		e.Close()
	}
	process.Exit(0)
}

// how is the way to end by an error.
func (p *survivor) how(err error) fabric.How {
	_, minority := errors.AsType[*transport.MinorityError](err)
	switch {
	case err == nil:
		return fabric.Done
	case errors.Is(err, transport.ErrLeftBehind):
		return fabric.Behind
	case minority:
		return fabric.Minority
	case errors.Is(err, context.DeadlineExceeded):
		return fabric.GaveUp
	case err == errOrphan:
		return fabric.Orphan
	}
	return fabric.Failed
}

// takes looks at what has been agreed on, and does the step that others know to be done.
func (p *survivor) takes(agreed *transport.Rejoined) error {
	a := fabric.Agreed{Generation: agreed.Generation, Replicas: agreed.Replicas, Came: agreed.Came,
		Rank: agreed.Endpoint.Rank(), Size: agreed.Endpoint.Size(),
		Places: agreed.Endpoint.(*endpoint).generation.members}
	for number, note := range agreed.Notes {
		a.Notes = append(a.Notes, max(note, 1)-1)
		if note == 0 {
			a.Blank = append(a.Blank, number)
		}
	}
	for _, g := range agreed.Gone {
		if g.Why == nil || g.When.IsZero() {
			return fmt.Errorf("%w: of why %+v is gone", errOther, g)
		}
		a.Gone = append(a.Gone, g.Replica)
	}
	p.Took(p.own, p.done, a)
	if p.blanks = a.Blank; len(a.Blank) == len(a.Notes) {
		return errOrphan
	}
	if p.blank {
		return nil
	}
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
	waits := e.(transport.Rejoiner).Awaited
	if p.lanes {
		lane, err := e.Dup(ctx)
		if err != nil {
			return err
		}
		defer lane.Close()
		e = lane
	}
	members := p.Members(p.own)
	if members == nil {
		return fmt.Errorf("%w: it was killed as it came", errOther)
	}
	if err := p.hands(ctx, e, members); err != nil {
		return err
	}
	for k := 1; !p.Over(p.done, len(members)); k++ {
		p.Process(p.own).Runs()
		if time.Sleep(p.Rest(p.done)); ctx.Err() != nil {
			return ctx.Err()
		}
		h := fnv.New64a()
		fmt.Fprint(h, p.state, p.done, members)
		p.next = h.Sum64()
		p.trying, p.awaited = p.done+1, 0
		if waits() {
			if p.awaited = 1; len(members) >= p.Most {
				return fmt.Errorf("%w: somebody is awaited where %v are, and %d at most", errOther, members, p.Most)
			}
		}
		if err := p.vote(ctx, e, k, members); err != nil {
			return err
		}
		p.done, p.state = p.trying, p.next
		p.Did(p.own, p.done, p.state)
		if p.awaited != 0 {
			return errAwaited
		}
	}
	return nil
}

// hands has all tell the state to those that do not know it.
func (p *survivor) hands(ctx context.Context, e transport.Endpoint, members []int) error {
	if len(p.blanks) == 0 {
		return nil
	}
	var batch []transport.Transfer
	got := make([][]byte, len(members))
	for r := range members {
		switch blank := slices.Contains(p.blanks, r); {
		case p.blank && !blank:
			got[r] = make([]byte, 16)
			batch = append(batch, transport.Transfer{Kind: transport.Recv, Peer: r, Buf: got[r]})
		case !p.blank && blank:
			state := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, p.done), p.state)
			batch = append(batch, transport.Transfer{Kind: transport.Send, Peer: r, Buf: state})
		}
	}
	if err := e.Exchange(ctx, roundCall(0), batch); err != nil || !p.blank {
		return err
	}
	var first []byte
	for r, b := range got {
		switch {
		case first == nil:
			first = b
		case b != nil && !bytes.Equal(first, b):
			return fmt.Errorf("%w: replica %d of %v hands %x to a newcomer, others %x", errOther, r, members, b, first)
		}
	}
	p.done, p.state, p.blank = binary.BigEndian.Uint64(first), binary.BigEndian.Uint64(first[8:]), false
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
		b = append(b, 0, byte(members[from]), byte(members[to]))
		return append(b, bytes.Repeat([]byte{byte(k + from)}, p.size)...)
	}
	exchange := func(round int, to, from []int) error {
		call := roundCall(k)
		call.Round = uint32(round)
		var batch []transport.Transfer
		got := make([][]byte, n)
		for _, r := range to {
			vote := made(me, r)
			vote[8] = p.awaited
			batch = append(batch, transport.Transfer{Kind: transport.Send, Peer: r, Buf: vote})
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
			p.awaited |= got[r][8]
			got[r][8] = 0
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
