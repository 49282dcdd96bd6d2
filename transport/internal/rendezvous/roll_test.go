package rendezvous

import (
	"context"
	"crypto/rand"
	"io"
	"testing"
	"time"
)

// memory is a store in which a test puts the entries of others.
type memory struct {
	fresh []*entry
	puts  []step
}

func (m *memory) put(s sheet) error { m.puts = append(m.puts, s.Step); return nil }

func (m *memory) list() (fresh []*entry, err error) {
	fresh, m.fresh = m.fresh, nil
	return fresh, nil
}

func (m *memory) get(e *entry) (sheet, error) { return e.sheet, e.ended }

func (m *memory) wait(ctx context.Context, most time.Duration) bool { return pause(ctx, most, nil) }

func (m *memory) leave(context.Context) {}

func (m *memory) site() site { return site{where: "here"} }

func (m *memory) unmet() string { return "" }

func (m *memory) again(context.Context) bool { return false }

// TestRoll: replica 0 takes in who belongs to the job, once, and waits no longer than any of them can.
func TestRoll(t *testing.T) {
	r := newRoll(config(0, 3, ""), new(memory), here{Size: 3, Self: "replica 0"})
	if !r.limit.IsZero() {
		t.Error("there is a limit, and replica 0 has none")
	}
	for _, test := range []struct {
		rank, size int
		kind       Kind // 0 for one who is taken in
	}{
		{2, 2, WrongSize}, {2, 4, WrongSize}, {3, 3, WrongSize},
		{2, 3, 0}, {2, 3, Duplicate}, {0, 3, Duplicate}, {1, 3, 0},
	} {
		e := r.add(&arrival{rank: test.rank, here: here{Size: test.size, Nonce: nonce(rand.Text()),
			Left: time.Duration(test.rank) * time.Hour}})
		if e == nil && test.kind != 0 || e != nil && e.Kind != test.kind {
			t.Errorf("replica %d of %d: %v, want %v", test.rank, test.size, e, test.kind)
		}
	}
	if r.missing != 0 || r.limit.IsZero() || r.wait() > time.Hour {
		t.Errorf("%d are missing, and the wait is %v", r.missing, r.wait())
	}
}

// hosted is a meeting of three at its host, over a store of the test's.
func hosted(t *testing.T) (*hosting, *memory) {
	m, c := new(memory), config(0, 3, "")
	roll := newRoll(c, m, c.here(t.Context(), nil))
	return &hosting{c: c, store: m, step: stepHere, roll: roll, guests: map[*entry]*arrival{},
		told: map[int]bool{}}, m
}

// TestGotOnce: a replica that says twice that it has the table does not stand for one that has not said so.
func TestGotOnce(t *testing.T) {
	h, m := hosted(t)
	says := func(e *entry, s sheet, want step) {
		t.Helper()
		e.sheet = s
		m.fresh = append(m.fresh, e)
		if err := h.look(); err != nil || h.failed != nil || h.step != want {
			t.Errorf("%v, %v, step %d, want %d", err, h.failed, h.step, want)
		}
	}
	first, second := &entry{rank: 1}, &entry{rank: 2}
	says(first, hereOf(3, nil), stepHere)
	says(second, hereOf(3, nil), stepTable)
	says(first, sheet{Step: stepGot}, stepTable)
	says(first, sheet{Step: stepGot}, stepTable)
	says(second, sheet{Step: stepGot}, stepBegin)
}

// TestOverBeforeItCame: a replica whose time was over before the host has heard of it does not speak for all. One that
// has given up does.
func TestOverBeforeItCame(t *testing.T) {
	for kind, want := range map[Kind]step{Missing: stepHere, GaveUp: stepFailed} {
		h, m := hosted(t)
		m.fresh = []*entry{{rank: 1, sheet: failing(&Error{Kind: kind})}}
		if err := h.look(); err != nil || h.step != want {
			t.Errorf("%v: %v, step %d, want %d: %v", kind, err, h.step, want, h.failed)
		}
	}
}

// TestGuestsGo: those who come and go are not kept, but that they have been told.
func TestGuestsGo(t *testing.T) {
	h, m := hosted(t)
	for range 100 {
		m.fresh = []*entry{{rank: 1, sheet: failing(&Error{Kind: Missing}), ended: io.EOF}}
		if err := h.look(); err != nil || h.failed != nil {
			t.Fatalf("%v, %v", err, h.failed)
		}
	}
	if len(h.guests) != 0 || !h.told[1] || h.told[2] {
		t.Errorf("%d guests are kept, told %v", len(h.guests), h.told)
	}
}

// TestGivesUpTooLate: a visitor that gives up when the job has begun with it is in the job, as the others believe.
func TestGivesUpTooLate(t *testing.T) {
	c := config(1, 2, "")
	c.nonce, c.linger = nonces(1)[0], long
	host := &entry{rank: 0, sheet: sheet{Step: stepTable, Table: table{Roster: []nonce{nonces(1)[0], c.nonce},
		Blobs: [][]byte{{1}, {2}}}}}
	ctx, cancel := context.WithCancel(t.Context())
	m := &memory{fresh: []*entry{host}}
	met, err := visit(ctx, c, &lateBegin{memory: m, cancel: cancel, host: host})
	if err != nil || len(met.Blobs) != 2 {
		t.Errorf("%v, %v", met, err)
	}
}

// lateBegin is a store in which the job begins when this process has given up.
type lateBegin struct {
	*memory
	cancel context.CancelFunc
	host   *entry
}

func (l *lateBegin) put(s sheet) error {
	switch s.Step {
	case stepGot:
		l.cancel()
	case stepFailed:
		l.host.sheet = sheet{Step: stepBegin}
		l.fresh = []*entry{l.host}
	}
	return l.memory.put(s)
}

// TestOtherHost: what a host does rests on no rank. Here the last replica decides.
func TestOtherHost(t *testing.T) {
	for _, site := range sites {
		t.Run("where="+site.name, func(t *testing.T) {
			where, left := site.make(t)
			configs := everyone(4, where)
			for rank := range configs {
				configs[rank].host = 3
			}
			check(t, meet(within(t, long), configs...))
			configs[1].Size = 5
			for rank := range configs {
				configs[rank].patience = long // until all have come
			}
			for rank, r := range meet(within(t, long), configs...) {
				if e := errorOf(t, r.err); e.Kind != WrongSize || len(e.Replicas) != 2 || e.Replicas[0] != 3 {
					t.Errorf("replica %d: %v", rank, e)
				}
			}
			if err := left(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRollComesAgain: a process that has come again before its first connection was seen to be lost is no second one.
func TestRollComesAgain(t *testing.T) {
	here1 := here{Size: 2, Nonce: "one"}
	first, again := &arrival{rank: 1, here: here1}, &arrival{rank: 1, here: here1}
	r := newRoll(Config{Size: 2}, &memory{}, here{Size: 2})
	for _, a := range []*arrival{first, again} {
		if err := r.add(a); err != nil {
			t.Fatal(err)
		}
	}
	if r.missing != 0 || first.member || !again.member || r.arrived[1] != again {
		t.Errorf("%d are missing, %+v, %+v", r.missing, first, again)
	}
	if err := r.add(&arrival{rank: 1, here: here{Size: 2, Nonce: "two"}}); err == nil || err.Kind != Duplicate {
		t.Errorf("another process: %v", err)
	}
}
