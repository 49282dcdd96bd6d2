package rendezvous

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// heard is what replicas have told.
type heard struct {
	mu    sync.Mutex
	texts []string
	news  chan struct{}
}

func (h *heard) tell(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.texts = append(h.texts, text)
	select {
	case h.news <- struct{}{}:
	default:
	}
}

// until waits until somebody has told something with words in it.
func (h *heard) until(t *testing.T, words string) {
	t.Helper()
	for {
		h.mu.Lock()
		found := slices.ContainsFunc(h.texts, func(text string) bool { return strings.Contains(text, words) })
		h.mu.Unlock()
		if found {
			return
		}
		select {
		case <-h.news:
		case <-t.Context().Done():
			t.Errorf("nobody tells %q", words)
			return
		}
	}
}

// TestTellsForWhom: a meeting that lasts says who is missing, again and again, and a visitor that it waits.
func TestTellsForWhom(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			where, left := site.make(t)
			configs := everyone(4, where)
			host, visitor := &heard{news: make(chan struct{}, 1)}, &heard{news: make(chan struct{}, 1)}
			for r := range configs {
				configs[r].words = time.Millisecond
			}
			configs[0].Tell, configs[2].Tell = host.tell, visitor.tell
			ctx := within(t, long)
			var all sync.WaitGroup
			results := make([]result, 4)
			start := func(ranks ...int) {
				for _, r := range ranks {
					all.Go(func() { results[r] = meet(ctx, configs[r])[0] })
				}
			}
			start(2)
			visitor.until(t, "replica 2")
			start(0)
			host.until(t, "2 of 4 replicas have come, 1 and 3 are missing")
			start(3)
			host.until(t, "3 of 4 replicas have come, 1 is missing")
			start(1)
			all.Wait()
			check(t, results)
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTellsAtOnce: what stands in the way is told at once, and once: a port in use, and somebody with another secret.
func TestTellsAtOnce(t *testing.T) {
	busy, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	where := busy.Addr().String()
	configs := everyone(2, where)
	host, stranger := &heard{news: make(chan struct{}, 1)}, &heard{news: make(chan struct{}, 1)}
	configs[0].Tell, configs[0].patience = host.tell, long
	odd := config(1, 2, where)
	odd.Secret, odd.Tell, odd.patience = []byte("another"), stranger.tell, 50*time.Millisecond
	var all sync.WaitGroup
	var results [2]result
	all.Go(func() { results[0] = meet(within(t, long), configs[0])[0] })
	host.until(t, fmt.Sprintf("replica 0 cannot listen at %s, since another process does, and tries again", where))
	busy.Close()
	oddly, cancel := context.WithCancel(within(t, long))
	defer cancel()
	all.Go(func() { meet(oddly, odd) })
	stranger.until(t, "has met somebody at "+where+" who is no replica 0 of the job, and tries again")
	host.until(t, "was refused")
	cancel() // the stranger would go on where the others have gone
	all.Go(func() { results[1] = meet(within(t, long), configs[1])[0] })
	all.Wait()
	check(t, results[:])
	host.mu.Lock()
	defer host.mu.Unlock()
	slices.Sort(host.texts)
	if got := slices.Compact(slices.Clone(host.texts)); len(got) != len(host.texts) {
		t.Errorf("something is told twice: %q", host.texts)
	}
}

// TestSilent: without Tell nothing is told, and speakers are none.
func TestSilent(t *testing.T) {
	var s *speaker
	s.once("x")
	s.waits(func() string { t.Error("a silent one is asked"); return "" })
	if s.left(time.Hour) != time.Hour {
		t.Error("a silent one wakes the wait")
	}
}
