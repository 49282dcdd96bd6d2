package tcp

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
	"gogcl.dev/transport/internal/handshake"
)

var (
	rogues       = flag.Int("rogues", 300, "how many handshakes TestJoinAmongRogues makes with a job that is joining")
	roguesAtOnce = flag.Int("roguesatonce", 3000, "how many of them are in progress at a time")
)

// rogue shakes hands with replica 0 of a job without a secret, leaves, and says how it fared.
func rogue(where string) string {
	conn, err := net.Dial("tcp", where)
	if err != nil {
		return "not connected"
	}
	defer conn.Close()
	if err := handshake.Dial(conn, nil, handshake.Hello{Rank: 1, Role: handshake.Rendezvous}); err != nil {
		return fmt.Sprintf("%T", err)
	}
	return "accepted"
}

// amongRogues runs a crowd of rogues, half of them before it calls half, and returns a table of how they fared.
func amongRogues(where string, half func()) string {
	for rogue(where) == "not connected" { // until replica 0 listens
		time.Sleep(time.Millisecond)
	}
	var begun, made atomic.Int64
	var mu sync.Mutex // guards table
	table := map[string]int{}
	var crowd sync.WaitGroup
	for range min(*roguesAtOnce, *rogues) {
		crowd.Go(func() {
			for begun.Add(1) <= int64(*rogues) {
				how := rogue(where)
				mu.Lock()
				table[how]++
				mu.Unlock()
				if made.Add(1) == int64(*rogues/2) {
					half()
				}
			}
		})
	}
	crowd.Wait()
	var text strings.Builder
	for _, how := range slices.SortedFunc(maps.Keys(table), cmp.Compare) {
		fmt.Fprintf(&text, "\n%6d %s", table[how], how)
	}
	return text.String()
}

// TestJoinAmongRogues: replicas of a job without a secret join while others shake hands with replica 0 in whole and
// leave. The last replica comes when half of them have been there. It prints how they fared and what the joining took.
func TestJoinAmongRogues(t *testing.T) {
	leaktest.Check(t)
	const n = 4
	where := places(t)["loopback"]
	began := time.Now()
	var replicas sync.WaitGroup
	join := func(rank int) {
		replicas.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e, err := Join(ctx, Config{Rank: rank, Size: n, Network: TCP}, Meeting{Where: where})
			t.Logf("replica %d has joined after %v", rank, time.Since(began).Round(time.Millisecond))
			if err != nil {
				t.Errorf("replica %d: %v", rank, err)
				return
			}
			if err := e.Close(); err != nil {
				t.Errorf("replica %d: Close: %v", rank, err)
			}
		})
	}
	for rank := range n - 1 {
		join(rank)
	}
	how := amongRogues(where, func() { join(n - 1) })
	replicas.Wait()
	t.Logf("%d handshakes during a joining of %v:%s", *rogues, time.Since(began).Round(time.Millisecond), how)
}

// TestJoinTooShortForRogues: the time of a job that lacks a replica is over while rogues come. It prints by how much
// each replica took longer.
func TestJoinTooShortForRogues(t *testing.T) {
	leaktest.Check(t)
	const n, limit = 4, time.Second
	where := places(t)["loopback"]
	var replicas sync.WaitGroup
	for rank := range n - 1 {
		replicas.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			began := time.Now()
			_, err := Join(ctx, Config{Rank: rank, Size: n, Network: TCP}, Meeting{Where: where})
			t.Logf("replica %d had %v and took %v", rank, limit, time.Since(began).Round(time.Millisecond))
			if err == nil {
				t.Errorf("replica %d has joined", rank)
			}
		})
	}
	t.Logf("%d handshakes:%s", *rogues, amongRogues(where, func() {}))
	replicas.Wait()
}
