package agree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Host is what a process does for its Member. None of the methods may call the Member.
type Host interface {
	// Tell sends a message to a process, a newcomer among them, after those before, and does not wait. The message is
	// the Host's.
	Tell(to int, message []byte)

	// May says why the others of a generation may not go on without those that are gone, or is nil. ErrNotYet: that
	// will show; then Retry asks again.
	May(members, gone []int) error

	// Decided is told of the next generation. It begins before any message of it is heard. After an error this process
	// is not in the job any more.
	Decided(d Decision) error

	// Ended is told that this process is not in the job any more: the others go on without it, and err is
	// ErrLeftBehind, or it may not go on, as May or Decided has said.
	Ended(err error)
}

// ErrNotYet says that a Host cannot say yet whether those that are left may go on.
var ErrNotYet = errors.New("not yet")

// ErrLeftBehind says that the others hold this process for gone.
var ErrLeftBehind = errors.New("the others hold this process for gone")

// Decision is what the processes have agreed on.
type Decision struct {
	Generation int      // that begins; the first agreement is on 1
	Members    []int    // of it, ascending: the processes that are left, and then the one that has come
	Notes      []uint64 // what each of them has given to Join; 0 of the one that has come
	Gone       []int    // those of the generation before that are not left, ascending
	Came       bool     // one has come
}

// Member is one process's part in the agreements of its job. It is not safe for use by several goroutines.
type Member struct {
	id   int
	host Host
	most int // members that a generation may have

	generation int
	members    []int        // of the generation, ascending
	notes      []uint64     // of its Decision; nil: of the first, which nobody has decided
	waiting    []int        // newcomers that are connected, ascending
	offered    []int        // those of them that it has told with its set
	gone       []int        // of them, those held for gone, ascending
	lost       map[int]bool // whom this process itself has lost, in any generation
	heard      map[int]view // what others have told in this generation
	joined     bool         // this process has told its set
	note       uint64
	ended      bool
}

// view is what a process has told: whom it holds for gone, and which newcomers are connected with it.
type view struct {
	gone    []int
	waiting []int
	note    uint64
}

// New makes the part of a process in a job of the members given, ascending, of which it is one. No more than most may
// be members of a generation, so with as many no newcomer is taken.
func New(id int, members []int, most int, host Host) *Member {
	return &Member{id: id, host: host, most: most, members: slices.Clone(members), lost: map[int]bool{},
		heard: map[int]view{}}
}

// Join says that this process wants to go on without those that are gone, and what note the others are to get. It is
// called once in a generation.
func (m *Member) Join(note uint64) {
	if m.ended || m.joined {
		return
	}
	m.joined, m.note = true, note
	m.tell()
	m.decide()
}

// Joined reports whether Join has been called in this generation.
func (m *Member) Joined() bool { return m.joined }

// Wait says that a newcomer is connected. It may wait for longer than for one agreement. One whose number is not
// greater than those of all members has come too late: it learns so by what it is told, and comes again.
func (m *Member) Wait(id int) {
	at, waits := slices.BinarySearch(m.waiting, id)
	if m.ended || waits {
		return
	}
	if id > m.members[len(m.members)-1] {
		m.waiting = slices.Insert(m.waiting, at, id)
	}
	m.host.Tell(id, m.welcome())
}

// Lose says that this process holds another one for gone.
func (m *Member) Lose(id int) {
	m.lost[id] = true
	m.waiting = slices.DeleteFunc(m.waiting, func(waits int) bool { return waits == id })
	if m.ended || !m.grow([]int{id}) {
		return
	}
	m.tell()
	m.decide()
}

// Retry decides where Host.May has said ErrNotYet.
func (m *Member) Retry() {
	if !m.ended {
		m.decide()
	}
}

// End says that this process leaves the job. It hears and tells nothing any more.
func (m *Member) End() { m.ended = true }

// grow adds to the set those that are members, and reports whether that was news.
func (m *Member) grow(ids []int) (news bool) {
	for _, id := range ids {
		if id == m.id || !has(m.members, id) {
			continue
		}
		if at, in := slices.BinarySearch(m.gone, id); !in {
			m.gone = slices.Insert(m.gone, at, id)
			news = true
		}
	}
	return news
}

func has(ascending []int, id int) bool {
	_, in := slices.BinarySearch(ascending, id)
	return in
}

// tell tells all others the set, those in it too: one of them may live, and hears that it is held for gone. It is
// called once for each set: what is offered with one does not change.
func (m *Member) tell() {
	if !m.joined {
		return
	}
	m.offered = nil
	if len(m.members)-len(m.gone) < m.most {
		m.offered = slices.Clone(m.waiting)
	}
	m.tellAll(m.message(told, m.gone, m.offered, []uint64{m.note}))
}

func (m *Member) tellAll(message []byte) {
	for _, id := range m.members {
		if id != m.id {
			m.host.Tell(id, slices.Clone(message))
		}
	}
}

// decide decides, if all that are not gone have told the same set.
func (m *Member) decide() {
	if !m.joined {
		return
	}
	notes := make([]uint64, 0, len(m.members)-len(m.gone))
	newcomers := slices.Clone(m.offered)
	for _, id := range m.members {
		switch v, known := m.heard[id]; {
		case id == m.id:
			notes = append(notes, m.note)
		case has(m.gone, id):
		case !known || !slices.Equal(v.gone, m.gone):
			return
		default:
			notes = append(notes, v.note)
			newcomers = slices.DeleteFunc(newcomers, func(id int) bool { return !has(v.waiting, id) })
		}
	}
	newcomers = newcomers[:min(len(newcomers), 1)]
	switch err := m.host.May(m.members, m.gone); err {
	case nil:
		m.take(m.gone, newcomers, notes)
	case ErrNotYet:
	default:
		m.end(err)
	}
}

// take begins the next generation, with one newcomer or none, and tells the others how.
func (m *Member) take(gone, newcomers []int, notes []uint64) {
	m.tellAll(m.message(decided, gone, newcomers, notes))
	left := slices.DeleteFunc(slices.Clone(m.members), func(id int) bool { return has(gone, id) })
	m.generation++
	m.members, m.notes = append(left, newcomers...), append(notes, make([]uint64, len(newcomers))...)
	m.gone, m.offered, m.joined = nil, nil, false
	clear(m.heard)
	for id := range m.lost { // while the decision was being made
		m.grow([]int{id})
	}
	err := m.host.Decided(Decision{Generation: m.generation, Members: slices.Clone(m.members),
		Notes: slices.Clone(m.notes), Gone: slices.Clone(gone), Came: len(newcomers) > 0})
	if err != nil {
		m.end(err)
		return
	}
	last := m.members[len(m.members)-1]
	for _, id := range m.waiting {
		m.host.Tell(id, m.welcome())
	}
	m.waiting = slices.DeleteFunc(m.waiting, func(id int) bool { return id <= last }) // it is a member, or too late
}

func (m *Member) end(err error) {
	m.ended = true
	m.host.Ended(err)
}

// Hear takes a message of another process. The error says that it makes no sense.
func (m *Member) Hear(from int, message []byte) error {
	if m.ended {
		return nil
	}
	kind, generation, gone, newcomers, notes, ok := parse(message)
	switch {
	case !ok:
		return fmt.Errorf("a message about who is left that makes no sense: %x", message)
	case has(gone, m.id) && kind == decided && generation >= m.generation-1:
		m.end(ErrLeftBehind) // also if it has gone on without those that tell so
		return nil
	case generation < m.generation, !has(m.members, from): // it has been told what has been decided
		return nil
	case has(m.gone, from): // which this process never takes back: what it has decided may not be what the others do
		return nil
	case generation > m.generation:
		return fmt.Errorf("it tells who is left of generation %d, and this process knows of %d only", generation,
			m.generation)
	case kind == welcomed:
		return errors.New("it tells a member of the job who the members are, as if that were to come")
	case has(gone, from) || !within(gone, m.members):
		return fmt.Errorf("it holds for gone %v, itself or others that are not there: %v are", gone, m.members)
	case len(newcomers) > 0 && newcomers[0] <= m.members[len(m.members)-1]:
		return fmt.Errorf("it tells that %v have come, and members have numbers up to %d", newcomers,
			m.members[len(m.members)-1])
	case kind == decided:
		return m.follow(gone, newcomers, notes)
	case len(notes) != 1:
		return fmt.Errorf("it tells %d notes, want 1", len(notes))
	case has(gone, m.id):
		m.end(ErrLeftBehind)
		return nil
	}
	m.heard[from] = view{gone, newcomers, notes[0]}
	if m.grow(gone) {
		m.tell()
	}
	m.decide()
	return nil
}

// follow takes the decision of another process, which is not held for gone.
func (m *Member) follow(gone, newcomers []int, notes []uint64) error {
	switch {
	case !m.joined:
		return errors.New("it says that all have agreed on who is left, and this process has told nothing")
	case len(notes) != len(m.members)-len(gone):
		return fmt.Errorf("it tells %d notes of %d processes without %d", len(notes), len(m.members), len(gone))
	case len(newcomers) > 1:
		return fmt.Errorf("it tells that %v have come, want one at a time", newcomers)
	}
	m.take(gone, newcomers, notes)
	return nil
}

func within(ids, of []int) bool {
	return !slices.ContainsFunc(ids, func(id int) bool { return !has(of, id) })
}

// The kinds of message: a kind, the generation, two sets of processes, and notes. Numbers are varints.
const (
	told     byte = iota // who is gone, which newcomers are connected, and the teller's note
	decided              // who is gone, which newcomer has come, and the notes of those that are left
	welcomed             // to a newcomer: the members of the generation, nobody, and their notes
)

func (m *Member) message(kind byte, a, b []int, notes []uint64) []byte {
	out := binary.AppendUvarint([]byte{kind}, uint64(m.generation))
	for _, set := range [][]int{a, b} {
		out = binary.AppendUvarint(out, uint64(len(set)))
		for _, id := range set {
			out = binary.AppendUvarint(out, uint64(id))
		}
	}
	out = binary.AppendUvarint(out, uint64(len(notes)))
	for _, note := range notes {
		out = binary.AppendUvarint(out, note)
	}
	return out
}

// parse reads a message. Sets are ascending.
func parse(message []byte) (kind byte, generation int, a, b []int, notes []uint64, ok bool) {
	if len(message) == 0 || message[0] > welcomed {
		return 0, 0, nil, nil, nil, false
	}
	kind, message = message[0], message[1:]
	ok = true
	next := func() (v uint64) {
		v, n := binary.Uvarint(message)
		if ok = ok && n > 0; ok {
			message = message[n:]
		}
		return v
	}
	count := func() int { // each has a byte or more
		n := next()
		ok = ok && n <= uint64(len(message))
		return int(n)
	}
	set := func() (ids []int) {
		for n := count(); ok && n > 0; n-- {
			id := next()
			ok = ok && id <= MaxID && (len(ids) == 0 || int(id) > ids[len(ids)-1])
			ids = append(ids, int(id))
		}
		return ids
	}
	g := next()
	ok = ok && g <= maxGeneration
	generation = int(g)
	a, b = set(), set()
	for n := count(); ok && n > 0; n-- {
		notes = append(notes, next())
	}
	return kind, generation, a, b, notes, ok && len(message) == 0
}

// What bounds the numbers in a message.
const (
	maxGeneration = 1 << 30
	MaxID         = 1 << 20 // the greatest number of a process
)
