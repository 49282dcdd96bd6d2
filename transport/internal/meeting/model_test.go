package meeting

import (
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// This file is a checker of small models of what members share. A model is some words and a program for each member,
// written like the code that it stands for, but that every access to a word is one step. The checker carries out the
// steps of all members in every order, and finds the first order in which a program's claim does not hold, nobody can
// go on, or two accesses are a data race. docs/design/memory-order.md says what that shows.

// order is what may happen between the steps of one member as the others see them.
type order int

const (
	// Everything happens in the order of the programs. Two members whose next steps are plain accesses of one word, one
	// of them a store, are a data race. By Go's memory model a program without a data race has no other behaviour.
	sequential order = iota

	// A plain store is seen by others at any time before the member's next atomic store, in any order with its other
	// plain stores.
	delayed

	// So is an atomic store, after all stores before it: it may come after the member's next loads. That is what
	// release and acquire promise, and less than Go does.
	buffered
)

func (o order) String() string { return [...]string{"sequential", "delayed", "buffered"}[o] }

// errLarge says that a model has more states than are explored.
var errLarge = fmt.Errorf("more than %d states: want a smaller model", maxStates)

// The bounds of a model.
const (
	maxWords   = 48
	maxMembers = 4
	maxLate    = 6
	maxStates  = 2_000_000
)

// word is a word that the members share, by its number.
type word int8

// model is what the checker explores.
type model struct {
	names   []string // of the words, all of which are 0 in the beginning
	members []func(m *member)
	final   func(see func(word) int) error // what must hold when all have ended, or nil
	fenced  func(place string) bool        // whether member.first is a read-modify-write operation there, or nil
}

// word makes a word.
func (m *model) word(format string, args ...any) word {
	m.names = append(m.names, fmt.Sprintf(format, args...))
	return word(len(m.names) - 1)
}

// row makes a word for each of n places.
func (m *model) row(n int, name string) []word {
	row := make([]word, n)
	for i := range row {
		row[i] = m.word("%s[%d]", name, i)
	}
	return row
}

// grid makes a word for each of n places and each of k turns.
func (m *model) grid(n, k int, name string) [][]word {
	grid := make([][]word, n)
	for i := range grid {
		grid[i] = m.row(k, fmt.Sprintf("%s[%d]", name, i))
	}
	return grid
}

// kind is that of a step.
type kind uint8

const (
	loading   kind = iota
	storing        // atomic
	adding         // atomic, like those that follow; it tells the new value
	swapping       // it tells the value before
	comparing      // it sets a word that has a value, and tells whether it has: 1 or 0
	asleep         // it waits until a word is not 0, and sets it to 0: a system call that sleeps
	awaiting       // it waits for one of its conditions, and tells which
	reading        // plain
	writing        // plain
	choosing       // it tells any number less than value
	marking        // see member.mark
	claiming       // a claim that does not hold
	ending
)

var kindNames = [...]string{"load", "store", "add to", "swap", "compare", "sleep until", "wait for", "read", "write",
	"choose", "mark", "claim", "end"}

// plain reports whether a step is an access that is not atomic.
func (k kind) plain() bool { return k == reading || k == writing }

// condition is that a word has one of some values.
type condition struct {
	word        word
	least, most int
}

// step is one of a member.
type step struct {
	kind  kind
	word  word
	value int
	old   int // comparing: the value that the word must have
	any   []condition
	text  string
}

// member runs the program of a member again from the start, as far as it is known what its steps have told.
type member struct {
	me     int
	told   []int
	at     int
	coming step
	fenced func(place string) bool
}

// errStep unwinds a program at its next step.
var errStep = errors.New("the next step")

// do is a step of the program.
func (m *member) do(s step) int {
	if m.at < len(m.told) {
		m.at++
		return m.told[m.at-1]
	}
	m.coming = s
	panic(errStep)
}

func (m *member) load(w word) int           { return m.do(step{kind: loading, word: w}) }
func (m *member) store(w word, v int)       { m.do(step{kind: storing, word: w, value: v}) }
func (m *member) add(w word, delta int) int { return m.do(step{kind: adding, word: w, value: delta}) }
func (m *member) swap(w word, v int) int    { return m.do(step{kind: swapping, word: w, value: v}) }
func (m *member) compare(w word, old, v int) bool {
	return m.do(step{kind: comparing, word: w, value: v, old: old}) != 0
}
func (m *member) sleep(bell word)             { m.do(step{kind: asleep, word: bell}) }
func (m *member) await(w word, least int)     { m.awaitAny(condition{w, least, 127}) }
func (m *member) awaitAny(c ...condition) int { return m.do(step{kind: awaiting, any: c}) }
func (m *member) read(w word) int             { return m.do(step{kind: reading, word: w}) }
func (m *member) write(w word, v int)         { m.do(step{kind: writing, word: w, value: v}) }
func (m *member) choose(n int) int            { return m.do(step{kind: choosing, value: n}) }

// first is an atomic store at a place of the code where it must be seen before the member loads what comes next.
// Release and acquire do not promise that.
func (m *member) first(place string, w word, v int) {
	if m.fenced != nil && m.fenced(place) {
		m.swap(w, v)
	} else {
		m.store(w, v)
	}
}

// mark says that all that follows hangs on a place in the program and some numbers. It is no step. It
// lets the checker take histories for one that differ only in what the program has forgotten.
func (m *member) mark(numbers ...any) { m.do(step{kind: marking, text: fmt.Sprint(numbers...)}) }

// claim says that something holds.
func (m *member) claim(ok bool, format string, args ...any) {
	if !ok {
		m.do(step{kind: claiming, text: fmt.Sprintf(format, args...)})
	}
}

// want says what a plain word must hold.
func (m *member) want(w word, v int, what string) {
	got := m.read(w)
	m.claim(got == v, "%s is %d, want %d", what, got, v)
}

// history is what the steps of a member have told. A program has no other state. Histories are nodes of a tree, in
// which those after the same mark are one.
type history struct {
	told     []int
	next     step
	children map[int]int32
}

// late is a store that others do not see yet, or the zero value.
type late struct {
	word  int8 // its number and 1, less than 0 where the store is atomic
	value int8
}

// lateStore is a late store.
func lateStore(w word, value int, atomic bool) late {
	if atomic {
		return late{-int8(w) - 1, int8(value)}
	}
	return late{int8(w) + 1, int8(value)}
}

// of is the word that is stored.
func (l late) of() word { return word(max(l.word, -l.word) - 1) }

// state is what all of the model is in.
type state struct {
	words [maxWords]int8
	at    [maxMembers]int32 // histories
	late  [maxMembers][maxLate]late
}

// see is what a member sees in a word: the last of its own stores, else what all see.
func (s *state) see(member int, w word) int {
	for k := maxLate - 1; k >= 0; k-- {
		if l := s.late[member][k]; l.word != 0 && l.of() == w {
			return int(l.value)
		}
	}
	return int(s.words[w])
}

// drained reports whether others see all stores of a member.
func (s *state) drained(member int) bool { return s.late[member][0].word == 0 }

// delay keeps a store from others. It reports whether there is room.
func (s *state) delay(member int, l late) bool {
	for k := range s.late[member] {
		if s.late[member][k].word == 0 {
			s.late[member][k] = l
			return true
		}
	}
	return false
}

// show lets others see the k-th of a member's late stores, if that may come next.
func (s *state) show(member, k int) bool {
	q := &s.late[member]
	if q[k].word == 0 || q[k].word < 0 && k > 0 {
		return false
	}
	for _, before := range q[:k] {
		if before.of() == q[k].of() {
			return false
		}
	}
	s.words[q[k].of()] = q[k].value
	copy(q[k:], q[k+1:])
	q[maxLate-1] = late{}
	return true
}

// arrival is how a state was reached first.
type arrival struct {
	from   int32 // the state before
	member int8
	told   int8 // by the member's step
	shows  bool // no step, but others see a store of the member
}

// explorer is one run of the checker.
type explorer struct {
	*model
	order     order
	histories [maxMembers][]history
	seed      maphash.Seed
	known     map[uint64]bool // hashes of states
	states    []state
	marks     [maxMembers]map[string]int32
	came      []arrival
}

// explore runs all orders of a model. The error says what went wrong, with the steps that led there.
func explore(m *model, o order) (states int, err error) {
	if len(m.names) > maxWords || len(m.members) > maxMembers {
		return 0, fmt.Errorf("%d words and %d members, at most %d and %d", len(m.names), len(m.members), maxWords,
			maxMembers)
	}
	x := &explorer{model: m, order: o, seed: maphash.MakeSeed(), known: map[uint64]bool{}}
	var first state
	for i := range m.members {
		x.marks[i] = map[string]int32{}
		first.at[i] = x.history(i, nil)
	}
	x.reach(first, arrival{from: -1})
	for k := int32(0); int(k) < len(x.states); k++ {
		if len(x.states) > maxStates {
			return len(x.states), errLarge
		}
		if why := x.expand(k); why != "" {
			return len(x.states), fmt.Errorf("%s, after\n%s", why, x.trace(k))
		}
	}
	return len(x.states), nil
}

// run finds the next step of a member that has been told something.
func (x *explorer) run(i int, told []int) (h history) {
	m := &member{me: i, told: told, fenced: x.fenced}
	defer func() {
		if r := recover(); r != nil && r != any(errStep) {
			panic(r)
		}
		h = history{told: told, next: m.coming}
	}()
	m.coming = step{kind: ending}
	x.members[i](m)
	return
}

// history is the number of a history of a member.
func (x *explorer) history(i int, told []int) int32 {
	h := x.run(i, told)
	if h.next.kind != marking {
		x.histories[i] = append(x.histories[i], h)
		return int32(len(x.histories[i]) - 1)
	}
	same, ok := x.marks[i][h.next.text]
	if !ok {
		same = x.history(i, append(told, 0))
		x.marks[i][h.next.text] = same
	}
	return same
}

// reach notes a state. Of a million, two have the same hash with a probability of 3e-8.
func (x *explorer) reach(s state, by arrival) {
	hash := maphash.Comparable(x.seed, s)
	if x.known[hash] {
		return
	}
	x.known[hash] = true
	x.states, x.came = append(x.states, s), append(x.came, by)
}

// next is the step that a member comes to in a state.
func (x *explorer) next(s *state, i int) *step { return &x.histories[i][s.at[i]].next }

// tell has a member go on in s.
func (x *explorer) tell(s *state, i, value int) {
	h := &x.histories[i][s.at[i]]
	child, ok := h.children[value]
	if !ok {
		child = x.history(i, append(slices.Clone(h.told), value))
		h = &x.histories[i][s.at[i]]
		if h.children == nil {
			h.children = map[int]int32{}
		}
		h.children[value] = child
	}
	s.at[i] = child
}

// expand reaches all states that can follow one, or says what is wrong with that.
func (x *explorer) expand(k int32) (why string) {
	s := x.states[k]
	if why := x.wrong(&s); why != "" {
		return why
	}
	for i := range x.members {
		if n := x.next(&s, i); n.kind == choosing { // which is nothing to the others
			for v := range n.value {
				next := s
				x.tell(&next, i, v)
				x.reach(next, arrival{k, int8(i), int8(v), false})
			}
			return ""
		}
	}
	moved, ended := false, 0
	for i := range x.members {
		for j := range maxLate {
			if next := s; next.show(i, j) {
				x.reach(next, arrival{k, int8(i), 0, true})
				moved = true
			}
		}
		if x.next(&s, i).kind == ending {
			ended++
			continue
		}
		moved = x.move(k, i) || moved
	}
	switch {
	case moved:
	case ended < len(x.members):
		return "nobody can go on"
	case x.final != nil:
		if err := x.final(func(w word) int { return int(s.words[w]) }); err != nil {
			return err.Error()
		}
	}
	return ""
}

// wrong says what is wrong in a state.
func (x *explorer) wrong(s *state) string {
	for i := range x.members {
		mine := x.next(s, i)
		if mine.kind == claiming {
			return fmt.Sprintf("member %d: %s", i, mine.text)
		}
		for j := range i {
			theirs := x.next(s, j)
			if x.order == sequential && mine.word == theirs.word && mine.kind.plain() && theirs.kind.plain() &&
				(mine.kind == writing || theirs.kind == writing) {
				return fmt.Sprintf("data race: member %d is to %s and member %d to %s", j, x.text(theirs), i,
					x.text(mine))
			}
		}
	}
	return ""
}

// move carries out the next step of a member, if that can be done now.
func (x *explorer) move(k int32, i int) bool {
	s := x.states[k]
	n := x.next(&s, i)
	told := 0
	switch n.kind {
	case loading, reading:
		told = s.see(i, n.word)
	case writing:
		if x.order == sequential {
			s.words[n.word] = int8(n.value)
		} else if !s.delay(i, lateStore(n.word, n.value, false)) {
			return false
		}
	case storing:
		switch {
		case x.order == buffered:
			if !s.delay(i, lateStore(n.word, n.value, true)) {
				return false
			}
		case !s.drained(i):
			return false
		default:
			s.words[n.word] = int8(n.value)
		}
	case comparing:
		if !s.drained(i) {
			return false
		}
		if int(s.words[n.word]) == n.old {
			s.words[n.word], told = int8(n.value), 1
		}
	case adding, swapping, asleep:
		if !s.drained(i) || n.kind == asleep && s.words[n.word] == 0 {
			return false
		}
		told = int(s.words[n.word])
		if s.words[n.word] = int8(n.value); n.kind == adding {
			told += n.value
			s.words[n.word] = int8(told)
		}
	case awaiting:
		moved := false
		for j, c := range n.any {
			if next := s; c.least <= next.see(i, c.word) && next.see(i, c.word) <= c.most {
				x.tell(&next, i, j)
				x.reach(next, arrival{k, int8(i), int8(j), false})
				moved = true
			}
		}
		return moved
	}
	x.tell(&s, i, told)
	x.reach(s, arrival{k, int8(i), int8(told), false})
	return true
}

// text is a step as a trace has it.
func (x *explorer) text(s *step) string {
	switch s.kind {
	case awaiting:
		var any []string
		for _, c := range s.any {
			any = append(any, fmt.Sprintf("%d <= %s <= %d", c.least, x.names[c.word], c.most))
		}
		return "wait for " + strings.Join(any, " or ")
	case comparing:
		return fmt.Sprintf("%s %s with %d: %d", kindNames[s.kind], x.names[s.word], s.old, s.value)
	case storing, writing, swapping, adding:
		return fmt.Sprintf("%s %s: %d", kindNames[s.kind], x.names[s.word], s.value)
	case choosing, ending:
		return kindNames[s.kind]
	}
	return kindNames[s.kind] + " " + x.names[s.word]
}

// trace is how a state was reached.
func (x *explorer) trace(k int32) string {
	var lines []string
	for ; x.came[k].from >= 0; k = x.came[k].from {
		i, before, after := int(x.came[k].member), &x.states[x.came[k].from], &x.states[k]
		if x.came[k].shows {
			for w := range x.names {
				if before.words[w] != after.words[w] {
					lines = append(lines, fmt.Sprintf("\tmember %d: others see %s: %d", i, x.names[w], after.words[w]))
				}
			}
			continue
		}
		line := fmt.Sprintf("\tmember %d: %s", i, x.text(x.next(before, i)))
		switch x.next(before, i).kind {
		case loading, reading, adding, swapping, comparing, choosing:
			line += fmt.Sprintf(" → %d", x.came[k].told)
		}
		lines = append(lines, line)
	}
	slices.Reverse(lines)
	return strings.Join(lines, "\n")
}
