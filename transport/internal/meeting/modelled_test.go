//go:build !race

// The models run on one goroutine, where the race detector has nothing to find.

package meeting

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// none is that atomic operations of a protocol need only release and acquire.
var none = []string{}

// protocols are what is modelled.
var protocols = []struct {
	name  string
	build func(wrong string) *model
	wrong []string // each breaks the protocol
	idle  []string // each is otherwise than the code, and does no harm

	// needs are the places where an atomic store must be seen before the loads that follow. All of them are needed, and
	// no others; nil where that is not looked at.
	needs []string

	large bool // not explored with -short, and in one order only
}{
	{
		name: "gathers of 2", build: visits(2, "ggg", mays{spacious: true, crowd: true}), needs: none,
		wrong: []string{"one notice instead of two", "one board instead of two", "the number before the call",
			"done before the result", "done before the decision", "no wait for the last member",
			"barriers apart count as well", "no wait for the word of the last", "crowded as the member itself finds"},
		idle: []string{"a hall without turns", "one base for all operations"},
	},
	{name: "gathers of 3", build: visits(3, "ggg", mays{spacious: true, crowd: true})},
	{
		name: "gathers of 3 together", build: visits(3, "ggg", mays{}), needs: none,
		idle: []string{"a hall without turns"},
	},
	{
		name: "shares of 2", build: visits(2, "sgs", mays{spacious: true, crowd: true}), needs: none,
		wrong: []string{"no barrier after the pieces", "a piece done before it is"},
	},
	{
		name: "shares of 2 together", build: visits(2, "ss", mays{}),
		wrong: []string{"pieces not set out again", "done before the pieces"},
		idle:  []string{"a hall without turns", "one base for all operations"},
	},
	{name: "shares of 3", build: visits(3, "s", mays{spacious: true})},
	{name: "shares of 3 together", build: visits(3, "s", mays{}), large: true},
	{
		name: "shares in rounds", build: visits(2, "rrg", mays{spacious: true, crowd: true}),
		wrong: []string{"no barrier between rounds", "met at the very number only"},
	},
	{
		name: "memory that is hidden", build: visits(2, "ss", mays{spacious: true, crowd: true, hide: true}),
		wrong: []string{"hidden as the member itself finds", "the last does not say that memory is hidden"},
	},
	{
		name: "memory that is hidden together", build: visits(2, "ss", mays{hide: true}), needs: none,
		wrong: []string{"the last does not say that memory is hidden"},
	},
	{name: "a table apart", build: visits(2, "gsr", mays{spacious: true, apart: true, crowd: true}), needs: none},
	{
		name: "checks of 2", build: visits(2, "gsr", mays{spacious: true, crowd: true, check: true}),
		wrong: []string{"the next barrier is held for overwritten"},
	},
	{
		name: "checks of 2 together", build: visits(2, "gsr", mays{check: true}),
		wrong: []string{"the next barrier is held for overwritten", "a piece that is not there is held for overwritten",
			"done looked at before the count", "done not looked at"},
	},
	{name: "checks of 3", build: visits(3, "gg", mays{spacious: true, crowd: true, check: true})},
	{name: "checks of 3 together", build: visits(3, "gg", mays{check: true})},
	{
		name: "an abort apart", build: visits(2, "s", mays{spacious: true, cancel: true}),
		wrong: []string{"inside after the look for an abort", "inside without a look for an abort",
			"abort after the look for members inside", "no look for members inside", "outside before the piece is done"},
	},
	{
		name: "an abort together", build: visits(2, "s", mays{cancel: true}), needs: []string{"inside"},
		wrong: []string{"inside after the look for an abort", "views without a piece"},
	},
	{
		name: "an abort in rounds", build: visits(2, "r", mays{spacious: true, cancel: true}),
		wrong: []string{"inside without a look for an abort"},
	},
	{name: "an abort of 3", build: visits(3, "s", mays{spacious: true, cancel: true}), large: true},
	{
		name: "broadcasts from one", build: broadcasts(2, "0000000"), needs: none,
		wrong: []string{"a root that never waits", "a root a whole queue ahead", "the number before the message"},
		idle:  []string{"taken before it is copied"},
	},
	{
		name: "broadcasts from both", build: broadcasts(2, "0110100"), needs: none,
		wrong: []string{"the notice before the queues are compared"},
	},
	{
		name: "broadcasts of 3", build: broadcasts(3, "000100"),
		wrong: []string{"a root waits for nobody but the first"},
	},
	{
		name: "sleep", build: sleeping(1, 3, false), needs: []string{"asleep", "wrote"},
		wrong: []string{"asleep after the last look", "no last look", "woken before the change",
			"the lane looked for before the change"},
	},
	{name: "sleep woken by 2", build: sleeping(2, 2, false), needs: []string{"asleep", "wrote"}},
	{name: "sleep woken by a stranger", build: sleeping(1, 3, true), needs: []string{"asleep", "wrote"}},
	{
		name: "spread barriers asleep", build: meetings(2, 3, true), needs: []string{"synced", "waiting"},
		wrong: []string{"nobody rings", "waiting after the last look"},
	},
	{name: "spread barriers of 3 asleep", build: meetings(3, 2, true), large: true},
	{
		name: "barriers of 3 asleep", build: meetings(3, 2, false), needs: []string{"done", "waiting"},
		wrong: []string{"waiting after the last look"},
	},
	{
		name: "processes meet", build: processes(2, 3), needs: []string{"asleep", "done", "number", "seat"},
		wrong: []string{"no ring for a seat", "nobody rings", "no last look", "asleep after the last look",
			"the key before the seat", "the hall before all have seats", "a lane looked for once"},
	},
	{name: "3 processes meet", build: processes(3, 1), large: true},
	{
		name: "processes abort", build: aborting, needs: []string{"aborted", "inside"},
		wrong: []string{"no words where a message says it", "the word of its own segment only",
			"heard before the words", "the words after the look for members inside", "no look for members inside",
			"inside after the look for an abort", "inside without a look for an abort"},
		idle: []string{"told after the words"},
	},
	{
		name: "a ring byte by byte", build: ring(6, 4, 1),
		wrong: []string{"wrote before the bytes", "read before the bytes are", "room for one byte too many",
			"room not looked for before the sleep", "nobody woken for room", "the end after the bytes", "asleep after the last look",
			"memory given back before the receiver is done"},
	},
	{name: "a ring in parts", build: ring(8, 3, 2)},
	{
		name: "a ring at once", build: ring(8, 4, 4),
		needs: []string{"asleep", "ended, then asleep", "read", "wrote"},
		wrong: []string{"wants looked at before read is stored"},
		idle:  []string{"wants after the last look"},
	},
	{name: "a directory", build: directory(false), needs: none, wrong: []string{"the key before the offset"}},
	{
		name: "an entry used again", build: directory(true), needs: none,
		wrong: []string{"the key looked at once", "the key before the offset"},
	},
	{
		name: "the memory of a lonely ring used again", build: lonelyMemory, needs: none,
		wrong: []string{"done stored", "done set once", "done without a look for the ring"},
	},
	{
		name: "a lonely ring", build: lonely, needs: []string{"ended, then key", "key"},
		wrong: []string{"the end looked for before the ring is there", "the ring looked for before the end"},
	},
}

// TestModels explores the protocols as they are, and demands that each way to break one is found.
func TestModels(t *testing.T) {
	for _, p := range protocols {
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			orders := []order{sequential, delayed}
			if p.large {
				if testing.Short() {
					t.Skip("it has many states")
				}
				orders = orders[:1]
			}
			for _, o := range orders {
				states, err := explore(p.build(""), o)
				t.Logf("%v: %d states", o, states)
				if err != nil {
					t.Errorf("%v: %v", o, err)
				}
				for _, wrong := range p.wrong {
					if states, err := explore(p.build(wrong), o); err == nil || errors.Is(err, errLarge) {
						t.Errorf("%s, %v: nothing is found in %d states: %v", wrong, o, states, err)
					}
				}
				for _, idle := range p.idle {
					if _, err := explore(p.build(idle), o); err != nil {
						t.Errorf("%s, %v: %v", idle, o, err)
					}
				}
			}
		})
	}
}

// TestRelease finds where release and acquire would not do. Each place is needed, and with all of them nothing is
// wrong.
func TestRelease(t *testing.T) {
	for _, p := range protocols {
		if p.needs == nil {
			continue
		}
		t.Run(strings.ReplaceAll(p.name, " ", "_"), func(t *testing.T) {
			without := func(place string) (int, error) {
				m := p.build("")
				m.fenced = func(at string) bool { return at != place && slices.Contains(p.needs, at) }
				return explore(m, buffered)
			}
			states, err := without("")
			t.Logf("%d states", states)
			if err != nil {
				t.Error(err)
			}
			for _, place := range p.needs {
				if states, err := without(place); err == nil || errors.Is(err, errLarge) {
					t.Errorf("%s: nothing is found in %d states: %v", place, states, err)
				}
			}
		})
	}
}

// TestLitmus gives the checker programs of a few steps whose outcomes are known.
func TestLitmus(t *testing.T) {
	two := func(f func(a, b word) [2]func(m *member)) *model {
		m := &model{}
		a, b := m.word("a"), m.word("b")
		fs := f(a, b)
		m.members = fs[:]
		return m
	}
	for _, l := range []struct {
		name  string
		model *model
		want  [3]string // by order: the fault, or ""
	}{
		{"atomic stores, then loads of the other word", func() *model {
			m := &model{}
			w, saw := m.row(2, "w"), m.row(2, "saw")
			for range 2 {
				m.members = append(m.members, func(m *member) {
					m.store(w[m.me], 1)
					m.store(saw[m.me], 1+m.load(w[1-m.me]))
				})
			}
			m.final = func(see func(word) int) error {
				if see(saw[0]) == 1 && see(saw[1]) == 1 {
					return errors.New("neither saw the other")
				}
				return nil
			}
			return m
		}(), [3]string{buffered: "neither saw the other"}},
		{"a plain store published", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.write(a, 1); m.store(b, 1) },
				func(m *member) { m.await(b, 1); m.want(a, 1, "a") },
			}
		}), [3]string{}},
		{"a plain store after it is published", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.store(b, 1); m.write(a, 1) },
				func(m *member) { m.await(b, 1); m.want(a, 1, "a") },
			}
		}), [3]string{"data race", "a is 0", "a is 0"}},
		{"plain stores that are looked at", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.write(a, 1); m.write(b, 1) },
				func(m *member) {
					if m.read(b) == 1 {
						m.want(a, 1, "a")
					}
				},
			}
		}), [3]string{"data race", "a is 0", "a is 0"}},
		{"atomic stores in turn", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.store(a, 1); m.store(b, 1) },
				func(m *member) {
					if m.load(b) == 1 {
						m.claim(m.load(a) == 1, "a is 0")
					}
				},
			}
		}), [3]string{}},
		{"plain stores of one word", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.write(a, 1); m.write(a, 2); m.want(a, 2, "its own store") },
				func(m *member) { m.claim(m.load(a) < 2 || m.load(a) == 2, "a goes back") },
			}
		}), [3]string{}},
		{"additions", two(func(a, b word) [2]func(m *member) {
			add := func(m *member) {
				if m.add(a, 1) == 2 {
					m.store(b, 1)
				}
				m.await(b, 1)
			}
			return [...]func(m *member){add, add}
		}), [3]string{}},
		{"a wait in vain", two(func(a, b word) [2]func(m *member) {
			return [...]func(m *member){
				func(m *member) { m.swap(a, m.choose(2)) },
				func(m *member) { m.sleep(a) },
			}
		}), [3]string{"nobody can go on", "nobody can go on", "nobody can go on"}},
	} {
		for o, want := range l.want {
			_, err := explore(l.model, order(o))
			if err == nil != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("%s, %v: %v, want %q", l.name, order(o), err, want)
			}
		}
	}
}
