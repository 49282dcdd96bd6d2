package transporttest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"gogcl.dev/transport"
)

// board tells the replicas of a case what others have done, beside the transport that is tested. Each key is posted
// once. It is a map of channels that are closed, for replicas that may be processes of their own.
type board struct {
	tell func(key, value string) // has other processes hear of a post; nil if there are none

	mu     sync.Mutex // guards what follows
	events map[string]*event
	broken error // a replica has failed: nobody waits any more
	breaks chan struct{}
}

// event is a key of a board. Closing done publishes value.
type event struct {
	posted bool
	done   chan struct{}
	value  string
}

func newBoard() *board { return &board{events: map[string]*event{}, breaks: make(chan struct{})} }

// event returns the event of a key. The caller holds b.mu.
func (b *board) event(key string) *event {
	e := b.events[key]
	if e == nil {
		e = &event{done: make(chan struct{})}
		b.events[key] = e
	}
	return e
}

// post has those who wait for the key go on, in all processes.
func (b *board) post(key, value string) {
	b.note(key, value)
	if b.tell != nil {
		b.tell(key, value)
	}
}

// note is post in this process.
func (b *board) note(key, value string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := b.event(key)
	if e.posted {
		panic(fmt.Sprintf("%q is posted twice", key))
	}
	e.posted, e.value = true, value
	close(e.done)
}

// wait returns the value of a key when it is posted. The error says that a replica has failed before.
func (b *board) wait(key string) (string, error) {
	b.mu.Lock()
	e := b.event(key)
	b.mu.Unlock()
	select {
	case <-e.done:
		return e.value, nil
	default:
	}
	select {
	case <-e.done:
		return e.value, nil
	case <-b.breaks:
		return "", fmt.Errorf("waiting for %q: %w", key, b.broken)
	}
}

// fail ends all waits.
func (b *board) fail(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.broken == nil {
		b.broken = errors.New(why)
		close(b.breaks)
	}
}

// key is the key of what a replica posts under a name.
func key(name string, rank int) string { return fmt.Sprintf("%s of replica %d", name, rank) }

// gather posts a replica's value and returns those of all n, by rank, when all have posted.
func (b *board) gather(name string, rank, n int, value string) ([]string, error) {
	b.post(key(name, rank), value)
	return b.values(name, n)
}

// values waits for what all n replicas post under a name, and returns it by rank.
func (b *board) values(name string, n int) ([]string, error) {
	values := make([]string, n)
	for rank := range values {
		var err error
		if values[rank], err = b.wait(key(name, rank)); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// others waits until all replicas but one have posted under a name. There is no replica -1.
func (s *suite) others(name string, but, n int) error {
	for rank := range n {
		if rank == but {
			continue
		}
		if _, err := s.board.wait(key(name, rank)); err != nil {
			return err
		}
	}
	return nil
}

// awaitOthers is others for the test itself.
func (s *suite) awaitOthers(t testing.TB, name string, but, n int) {
	t.Helper()
	await(t, func() {
		if err := s.others(name, but, n); err != nil {
			t.Error(err)
		}
	})
}

// until waits for a post in a process whose replica has nothing to do before.
func (s *suite) until(t testing.TB, key string) {
	t.Helper()
	await(t, func() {
		if _, err := s.board.wait(key); err != nil {
			t.Error(err)
		}
	})
}

// meet waits for the processes of all replicas.
func (s *suite) meet(t testing.TB) {
	t.Helper()
	if s.world == nil {
		return
	}
	w := s.world
	w.meetings++
	await(t, func() {
		if _, err := s.board.gather(fmt.Sprint("meeting ", w.meetings), w.rank, w.size, ""); err != nil {
			t.Error(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
}

// agree checks that all processes say the same.
func (s *suite) agree(t testing.TB, n int, eps []transport.Endpoint, what string) {
	t.Helper()
	for _, e := range eps {
		s.board.post(key("says", e.Rank()), what)
	}
	said, err := s.board.values("says", n)
	if err != nil {
		t.Fatal(err)
	}
	for rank, other := range said {
		if other != what {
			t.Errorf("replica %d says %s, replica %d %s", eps[0].Rank(), what, rank, other)
		}
	}
}

// failed says of all n replicas, by rank, whether each has an error. errs are those of this process. A case asks it
// once.
func (s *suite) failed(t testing.TB, n int, eps []transport.Endpoint, errs []error) []bool {
	t.Helper()
	for rank, err := range byRank(eps, errs) {
		s.board.post(key("failed", rank), strconv.FormatBool(err != nil))
	}
	said, err := s.board.values("failed", n)
	if err != nil {
		t.Fatal(err)
	}
	failed := make([]bool, n)
	for rank, text := range said {
		failed[rank] = text == "true"
	}
	return failed
}

// repeat calls test a number of times, each a case of its own.
func (s *suite) repeat(t *testing.T, times int, test func(t *testing.T, i int)) {
	for i := range times {
		if !t.Run(fmt.Sprintf("try=%d", i), func(t *testing.T) { test(t, i) }) {
			return
		}
	}
}

// number is n, or between processes how many they are.
func (s *suite) number(n int) int {
	if s.world != nil {
		return s.world.size
	}
	return n
}
