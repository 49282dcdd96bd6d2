package gcl_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/fabric"
	"gogcl.dev/internal/netstack"
	"gogcl.dev/transport"
)

var survivorSeeds = flag.Int("seeds", 0, "how many jobs TestSurvivors runs; 0: as many as in CI")

// TestSurvivors has replicas join, as processes do, and commit steps. Those that are left go on, through trouble of all
// kinds: docs/design/rejoin.md.
func TestSurvivors(t *testing.T) {
	t.Setenv("GCL_STATUS", "off") // its socket is a real one
	fabric.TestSurvivors(t, 500, *survivorSeeds, bubbleSilence, survive)
}

// survive runs the job of a scene.
func survive(t *testing.T, s *fabric.Scene) *fabric.Survivors {
	s.NobodyComes()
	n := len(s.Processes)
	cfg := gcl.JoinConfig{Size: n, Job: "bubble", Rendezvous: fmt.Sprint(s.Address(0), ":7000"), Transport: "tcp",
		Secret: make([]byte, 32), Timeout: bubbleJoin, Silence: bubbleSilence, Logger: slog.New(slog.DiscardHandler)}
	comms, errs := make([]*gcl.Comm, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			cfg := cfg
			cfg.Rank = r
			comms[r], errs[r] = gcl.Join(netstack.With(context.Background(), s.Processes[r]), cfg)
		})
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	v := fabric.NewSurvivors(s)
	v.NoKernel = true
	runs := make([]*committer, n)
	for r := range runs {
		runs[r] = &committer{Scene: s, Survivors: v, place: r, quits: -1}
		if s.Trouble == fabric.GiveUp && s.Victims[0] == r {
			runs[r].quits = time.Duration(s.Chances.Int64N(int64(1 + 6*s.Delay)))
		}
	}
	s.Strike()
	for r, c := range comms {
		all.Go(func() { runs[r].run(c) })
	}
	all.Wait()
	time.Sleep(time.Minute) // what is left ends by itself, or the bubble fails
	return v
}

// committer is a replica that commits steps with all others that are left.
type committer struct {
	*fabric.Scene
	*fabric.Survivors
	place int
	quits time.Duration // how long it waits for others to agree; less than 0: for as long as it takes

	done        uint64  // steps
	state, next []int64 // what has come of them, and what comes of the next one
	trying      uint64  // the greatest step that this replica has voted for
}

// rejoinTime is more than any agreement takes, and twice of it more than any job.
const rejoinTime = time.Minute

func (p *committer) run(c *gcl.Comm) {
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
	p.state = make([]int64, 1+p.Seeded%50)
	end := fabric.Ending{How: fabric.Done}
	for {
		if end.Err = p.steps(ctx, c); end.Err == nil || errors.Is(end.Err, errWrongState) {
			break
		}
		limit := rejoinTime
		if p.quits >= 0 {
			limit = p.quits
		}
		rejoining, stop := context.WithTimeout(ctx, limit)
		process.Runs()
		next, change, err := gcl.Rejoin(rejoining, c)
		stop()
		if end.Err = err; err != nil {
			break
		}
		c = next
		if end.Err = p.takes(c, change); end.Err != nil {
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
	c.Close()
	process.Exit(0)
}

// errWrongState says that replicas do not agree on what was done.
var errWrongState = errors.New("wrong state")

// takes goes on from what others know to be done.
func (p *committer) takes(c *gcl.Comm, change gcl.Change) error {
	a := fabric.Agreed{Generation: change.Generation, Replicas: change.Replicas, Rank: c.Replica(), Size: c.Replicas()}
	for _, left := range change.Left {
		a.Gone = append(a.Gone, left.Replica)
	}
	for r := range c.Replicas() {
		note := change.Committed - 1 // which is all that a Change tells of the others
		if slices.Contains(change.Givers, r) {
			note = change.Committed
		} else if r == c.Replica() {
			note = p.done
		}
		a.Notes = append(a.Notes, note)
	}
	p.Took(p.place, p.done, a)
	if change.Committed > p.done {
		if p.trying != change.Committed {
			return fmt.Errorf("%w: step %d is done, without the vote for it", errWrongState, change.Committed)
		}
		p.done, p.state = change.Committed, p.next
	}
	return nil
}

// steps makes all steps that are yet to be made.
func (p *committer) steps(ctx context.Context, c *gcl.Comm) error {
	for p.done < uint64(p.Steps) {
		p.Processes[p.place].Runs()
		if time.Sleep(p.Rest(p.done)); ctx.Err() != nil {
			return ctx.Err()
		}
		members := p.Members(p.place)
		done, err := c.Commit(ctx, func() error {
			in, want := slices.Clone(p.state), slices.Clone(p.state)
			for i := range in {
				in[i] += int64(1+i) << p.place
				want[i] *= int64(len(members))
				for _, other := range members {
					want[i] += int64(1+i) << other
				}
			}
			sum, err := gcl.AllReduce(ctx, c, in, gcl.Add)
			if err == nil && !slices.Equal(sum, want) {
				return fmt.Errorf("%w: %v in step %d of %v, want %v", errWrongState, sum, p.done, members, want)
			}
			p.next, p.trying = sum, p.done+1
			return err
		})
		if err != nil {
			return err
		}
		if !done {
			return fmt.Errorf("%w: no error, and step %d is not done", errWrongState, p.done)
		}
		p.done, p.state = p.trying, p.next
		h := fnv.New64a()
		fmt.Fprint(h, p.state)
		p.Did(p.place, p.done, h.Sum64())
	}
	return nil
}
