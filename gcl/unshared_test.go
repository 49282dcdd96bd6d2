package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/transport"
	"gogcl.dev/transport/faulty"
	"gogcl.dev/transport/inproc"
)

// distant is an endpoint that reaches the memory of certain members only.
type distant struct {
	near
	reaches func(members []int) bool
	shared  *atomic.Int64
}

func (u distant) Reaches(members []int) bool { return u.reaches(members) }

func (u distant) Share(ctx context.Context, call transport.Call, members []int, mine transport.Memory, rounds []int,
	w transport.Worker) error {
	u.shared.Add(1)
	return u.near.Share(ctx, call, members, mine, rounds, w)
}

// sums calls a reduction of a size on one tensor and on several, and checks them.
func sums(ctx context.Context, c *gcl.Comm, size int) error {
	one, two, wide := make([]int32, size), make([]int32, size), make([]int64, size)
	for i := range one {
		one[i], two[i], wide[i] = int32(i+c.Rank()), int32(i*c.Rank()), int64(i-c.Rank())
	}
	alone := slices.Clone(one)
	b := c.Batch(schedule.AllReduce, gcl.Add, 0)
	gcl.Append(b, one, one)
	gcl.Append(b, two, two)
	gcl.Append(b, wide, wide)
	if err := errors.Join(gcl.AllReduceInPlace(ctx, c, alone, gcl.Add), b.Run(ctx), c.Barrier(ctx)); err != nil {
		return err
	}
	n := c.Size()
	ranks := n * (n - 1) / 2
	for i := range one {
		if want := int32(n*i + ranks); alone[i] != want || one[i] != want || two[i] != int32(i*ranks) ||
			wide[i] != int64(n*i-ranks) {
			return fmt.Errorf("element %d: %d, %d, %d, %d, want %d twice, %d, %d",
				i, alone[i], one[i], two[i], wide[i], want, i*ranks, n*i-ranks)
		}
	}
	return nil
}

// TestNotShared: where one member's buffers cannot be laid open, the call goes by messages on all members, under the
// number that it had, whatever the method. The trace says so: what had begun ends with the error, and the second choice
// follows.
func TestNotShared(t *testing.T) {
	const n, size = 3, 5000
	for _, o := range []gcl.Options{
		{}, {Implementation: gcl.Syncful}, {Implementation: gcl.Syncful, Method: methods.ClockwiseRing},
		{Implementation: gcl.Syncful, Method: methods.RecursiveDoubling}, {Implementation: gcl.Syncful, Method: methods.SendToAll},
	} {
		for k := range 4 {
			t.Run(fmt.Sprintf("method=%v/implementation=%v/share=%d", o.Method, o.Implementation, k),
				func(t *testing.T) {
					plain, err := inproc.New(n)
					if err != nil {
						t.Fatal(err)
					}
					endpoints, err := faulty.WrapMemory(plain, 0, faulty.Hide(k%n, k))
					if err != nil {
						t.Fatal(err)
					}
					var events [n][]string // of each replica's calls, those that had two choices
					replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
						o := o
						o.Trace = recordChoices(&events[c.Replica()])
						c, err := c.With(o)
						if err != nil {
							return err
						}
						return errors.Join(sums(ctx, c, size), sums(ctx, c, size))
					}, gcl.WithEndpoints(endpoints))
					first := gcl.PathMemory
					if m := o.Method; m != methods.Auto && m != methods.Direct {
						first = gcl.PathRounds
					}
					second := "messages Syncless"
					if o.Implementation == gcl.Syncful {
						second = "messages Syncful"
					}
					want := fmt.Sprintf("chosen %v Syncful; round 0 ends with true; chosen %s; ends with <nil> by %s",
						first, second, second)
					if first == gcl.PathRounds { // whose first round begins when buffers lie open
						want = fmt.Sprintf("chosen %v Syncful; chosen %s; ends with <nil> by %s", first, second, second)
					}
					for r, e := range events {
						if len(e) != 1 || e[0] != want {
							t.Errorf("replica %d: %q, want %q", r, e, want)
						}
					}
				})
		}
	}
}

// recordChoices is a Trace that adds the events of each call with two choices to a list, but for its rounds by
// messages.
func recordChoices(list *[]string) *gcl.Trace {
	var now []string
	choices := 0
	way := func(c gcl.TraceCall) string { return fmt.Sprintf("%v %v", c.Path, c.Implementation) }
	return &gcl.Trace{
		CollectiveStart: func(gcl.TraceCall) { now, choices = nil, 0 },
		MethodChosen: func(c gcl.TraceCall, _ gcl.TraceMethod) {
			choices++
			now = append(now, "chosen "+way(c))
		},
		RoundEnd: func(c gcl.TraceCall, round int, err error) {
			if choices == 1 {
				now = append(now, fmt.Sprintf("round %d ends with %v", round, errors.Is(err, transport.ErrNotShared)))
			}
		},
		CollectiveEnd: func(c gcl.TraceCall, err error) {
			if choices == 2 {
				*list = append(*list, strings.Join(append(now, fmt.Sprintf("ends with %v by %s", err, way(c))), "; "))
			}
		},
	}
}

// TestReaches: peer memory is a group's affair. A group whose members the transport does not bring together goes by
// messages, and Explain knows.
func TestReaches(t *testing.T) {
	const n = 4
	var shared atomic.Int64
	inPairs := func(members []int) bool {
		return !slices.ContainsFunc(members, func(m int) bool { return m/2 != members[0]/2 })
	}
	endpoints, err := inproc.New(n)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range endpoints {
		endpoints[i] = distant{e.(near), inPairs, &shared}
	}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		if err := sums(ctx, c, 5000); err != nil {
			return err
		}
		if got := shared.Load(); got != 0 {
			return fmt.Errorf("%d Shares of a group that does not reach its members' memory", got)
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		pair, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		if err != nil {
			return err
		}
		return sums(ctx, pair, 5000)
	}, gcl.WithEndpoints(endpoints))
	if got := shared.Load(); got != 2*n {
		t.Errorf("%d Shares in pairs, want %d", got, 2*n)
	}
}

// TestNotSharedInACause: an abort whose cause wraps ErrNotShared is an abort, and the call does not go by messages.
func TestNotSharedInACause(t *testing.T) {
	chosen := 0
	errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if c.Replica() == 1 {
			c.Abort(fmt.Errorf("the program gives up: %w", transport.ErrNotShared))
			return nil
		}
		c = withOptions(c, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncful, Trace: &gcl.Trace{
			MethodChosen: func(gcl.TraceCall, gcl.TraceMethod) { chosen++ },
		}})
		return gcl.AllReduceInPlace(ctx, c, make([]float32, 5000), gcl.Add)
	})
	if !errors.Is(errs[0], gcl.ErrAborted) || chosen != 1 {
		t.Errorf("error %v, want that of the abort; %d methods chosen, want 1", errs[0], chosen)
	}
}
