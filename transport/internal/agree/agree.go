package agree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// Host is what a process does for its Member. None of the methods may call the Member.
type Host interface {
	// Tell sends a message to a process, after those before, and does not wait. The message is the Host's.
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
	Members    []int    // of it, ascending: the processes that are left
	Notes      []uint64 // what each of them has given to Join
	Gone       []int    // those of the generation before that are not left, ascending
}

// Member is one process's part in the agreements of its job. It is not safe for use by several goroutines.
type Member struct {
	id   int
	host Host

	generation int
	members    []int        // of the generation, ascending
	gone       []int        // of them, those held for gone, ascending
	lost       map[int]bool // whom this process itself has lost, in any generation
	heard      map[int]view // what others have told in this generation
	joined     bool         // this process has told its set
	note       uint64
	ended      bool
}

// view is what a process has told: whom it holds for gone.
type view struct {
	gone []int
	note uint64
}

// New makes the part of a process in a job of the members given, ascending, of which it is one.
func New(id int, members []int, host Host) *Member {
	return &Member{id: id, host: host, members: slices.Clone(members), lost: map[int]bool{}, heard: map[int]view{}}
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

// Lose says that this process holds another one for gone.
func (m *Member) Lose(id int) {
	m.lost[id] = true
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

// tell tells all others the set, those in it too: one of them may live, and hears that it is held for gone.
func (m *Member) tell() {
	if m.joined {
		m.tellAll(m.message(told, m.gone, []uint64{m.note}))
	}
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
	for _, id := range m.members {
		switch v, known := m.heard[id]; {
		case id == m.id:
			notes = append(notes, m.note)
		case has(m.gone, id):
		case !known || !slices.Equal(v.gone, m.gone):
			return
		default:
			notes = append(notes, v.note)
		}
	}
	switch err := m.host.May(m.members, m.gone); err {
	case nil:
		m.take(m.gone, notes)
	case ErrNotYet:
	default:
		m.end(err)
	}
}

// take begins the next generation, and tells the others how.
func (m *Member) take(gone []int, notes []uint64) {
	m.tellAll(m.message(decided, gone, notes))
	left := slices.DeleteFunc(slices.Clone(m.members), func(id int) bool { return has(gone, id) })
	m.generation++
	m.members, m.gone, m.joined = left, nil, false
	clear(m.heard)
	for id := range m.lost { // while the decision was being made
		m.grow([]int{id})
	}
	if err := m.host.Decided(Decision{Generation: m.generation, Members: slices.Clone(left), Notes: notes,
		Gone: slices.Clone(gone)}); err != nil {
		m.end(err)
	}
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
	kind, generation, gone, notes, ok := parse(message)
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
	case has(gone, from) || !within(gone, m.members):
		return fmt.Errorf("it holds for gone %v, itself or others that are not there: %v are", gone, m.members)
	case kind == decided:
		return m.follow(gone, notes)
	case len(notes) != 1:
		return fmt.Errorf("it tells %d notes, want 1", len(notes))
	case has(gone, m.id):
		m.end(ErrLeftBehind)
		return nil
	}
	m.heard[from] = view{gone, notes[0]}
	if m.grow(gone) {
		m.tell()
	}
	m.decide()
	return nil
}

// follow takes the decision of another process, which is not held for gone.
func (m *Member) follow(gone []int, notes []uint64) error {
	switch {
	case !m.joined:
		return errors.New("it says that all have agreed on who is left, and this process has told nothing")
	case len(notes) != len(m.members)-len(gone):
		return fmt.Errorf("it tells %d notes of %d processes without %d", len(notes), len(m.members), len(gone))
	}
	m.take(gone, notes)
	return nil
}

func within(ids, of []int) bool {
	return !slices.ContainsFunc(ids, func(id int) bool { return !has(of, id) })
}

// The kinds of message: a kind, the generation, the set, and the notes of those that are left. Numbers are varints.
const (
	told    byte = iota // the set, and the teller's note
	decided             // the same set has been told by all that are left
)

func (m *Member) message(kind byte, gone []int, notes []uint64) []byte {
	b := binary.AppendUvarint([]byte{kind}, uint64(m.generation))
	b = binary.AppendUvarint(b, uint64(len(gone)))
	for _, id := range gone {
		b = binary.AppendUvarint(b, uint64(id))
	}
	b = binary.AppendUvarint(b, uint64(len(notes)))
	for _, note := range notes {
		b = binary.AppendUvarint(b, note)
	}
	return b
}

// parse reads a message. The set is ascending.
func parse(b []byte) (kind byte, generation int, gone []int, notes []uint64, ok bool) {
	if len(b) == 0 || b[0] > decided {
		return 0, 0, nil, nil, false
	}
	kind, b = b[0], b[1:]
	next := func() (v uint64) {
		v, n := binary.Uvarint(b)
		if ok = ok && n > 0; ok {
			b = b[n:]
		}
		return v
	}
	count := func() int { // each has a byte or more
		n := next()
		ok = ok && n <= uint64(len(b))
		return int(n)
	}
	ok = true
	g := next()
	ok = ok && g <= maxGeneration
	generation = int(g)
	for n := count(); ok && n > 0; n-- {
		id := next()
		ok = ok && id <= maxID && (len(gone) == 0 || int(id) > gone[len(gone)-1])
		gone = append(gone, int(id))
	}
	for n := count(); ok && n > 0; n-- {
		notes = append(notes, next())
	}
	return kind, generation, gone, notes, ok && len(b) == 0
}

// What bounds the numbers in a message.
const (
	maxGeneration = 1 << 30
	maxID         = 1 << 20
)
