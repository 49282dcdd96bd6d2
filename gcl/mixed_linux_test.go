package gcl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/transport"
	"gogcl.dev/transport/tcp"
)

// onHosts has Run use replicas of this process that are on the hosts given, a letter for each. Those on one host share
// memory if the letter is a capital.
func onHosts(t testing.TB, hosts string) gcl.CommOption {
	t.Helper()
	n := len(hosts)
	listeners, addresses := make([]*tcp.Listener, n), make([]tcp.Address, n)
	for r := range n {
		l, err := tcp.Listen(tcp.Config{Rank: r, Size: n, Secret: make([]byte, 32)})
		if err != nil {
			t.Fatal(err)
		}
		listeners[r], addresses[r] = l, l.Address()
		host := hosts[r : r+1]
		if addresses[r].Host = host; strings.ToUpper(host) == host {
			addresses[r].Memory = "the user"
		}
	}
	endpoints := make([]transport.Endpoint, n)
	var connecting errgroup.Group
	for r, l := range listeners {
		connecting.Go(func() (err error) {
			endpoints[r], err = l.Connect(t.Context(), addresses)
			return err
		})
	}
	if err := connecting.Wait(); err != nil {
		t.Fatal(err)
	}
	return gcl.WithEndpoints(endpoints)
}

// TestHybridMixed: a job over several hosts goes by memory inside them and by messages between. Replicas of one host
// need not follow each other. Where one host has no memory to share, all still go the same way.
func TestHybridMixed(t *testing.T) {
	for _, hosts := range []string{"AABB", "ABBA", "ABCABC", "AABBaa", "aBBa"} {
		t.Run(hosts, func(t *testing.T) {
			leaktest.Check(t)
			n := len(hosts)
			sum, moved := newReduceCase(gcl.Add, inputs[float32](gcl.Add, n, 4099)),
				newMoveCase(inputs[float32](gcl.Local, n, 4099))
			whys := make([]string, n)
			replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
				for _, hybrid := range []bool{false, true} {
					c := c
					if hybrid {
						c = withOptions(c, gcl.Options{Implementation: gcl.Hybrid})
					}
					if err := errors.Join(sum.try(ctx, c), moved.try(ctx, c)); err != nil {
						return fmt.Errorf("Hybrid %t: %w", hybrid, err)
					}
					x, err := c.Explain(schedule.AllReduce, 1<<10, tensor.F32)
					if err != nil {
						return err
					}
					parts := strings.Split(x.Why, "; ") // inside each host goes its own way
					whys[c.Replica()] = parts[0] + "; " + parts[len(parts)-1]
				}
				return nil
			}, onHosts(t, hosts))
			for r, why := range whys {
				if why != whys[0] {
					t.Errorf("replica %d goes %s, and replica 0 %s", r, why, whys[0])
				}
			}
			t.Log(whys[0])
		})
	}
}
