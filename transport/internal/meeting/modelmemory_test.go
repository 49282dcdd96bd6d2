package meeting

import "errors"

// The models of what processes share beside a meeting: sleep, rings and the directory of package segment, and their use
// in memory.go and memory_linux.go of package tcp. wrong names what a model does otherwise than the code.

// bell is the word of a lane, and the eventfd by which who sleeps there is woken.
type bell struct{ asleep, rung word }

// bells makes the bells of some members.
func (m *model) bells(n int) []bell {
	b := make([]bell, n)
	for i := range b {
		b[i] = bell{m.word("asleep[%d]", i), m.word("bell[%d]", i)}
	}
	return b
}

// wake is rings.wake, where the lane's word has been found.
func (m *member) wake(b bell) {
	if m.load(b.asleep) != 0 && m.swap(b.asleep, 0) != 0 {
		m.swap(b.rung, 1) // a system call
	}
}

// park is sleeper.Park.
func (m *member) park(b bell, wrong string, changed func() bool) {
	if wrong == "no last look" {
		changed = func() bool { return false }
	}
	early := wrong == "asleep after the last look" && changed()
	m.first("asleep", b.asleep, 1)
	if wrong == "asleep after the last look" {
		if !early {
			m.sleep(b.rung)
		}
	} else if !changed() {
		m.sleep(b.rung)
	}
	m.store(b.asleep, 0)
}

// sleeping is a model of a member that sleeps until changers others have made changes each. A stranger wakes it at any
// time: one that still has the word of a lane that had the memory before.
func sleeping(changers, changes int, stranger bool) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		b := m.bells(1)[0]
		lane := m.word("lane") // the key of the lane's word
		index := m.row(changers, "wrote")
		m.members = append(m.members, func(m *member) {
			m.store(lane, 1) // newSleeper
			noted := make([]int, changers)
			look := func() bool { // changed of each of the rings
				changed := false
				for i, w := range index {
					if got := m.load(w); got != noted[i] {
						noted[i], changed = got, true
					}
				}
				return changed
			}
			for {
				m.mark(noted)
				left := 0
				for _, got := range noted {
					left += changes - got
				}
				if left == 0 {
					return
				}
				m.park(b, wrong, look)
			}
		})
		for i := range changers {
			m.members = append(m.members, func(m *member) {
				found := false
				for k := range changes {
					m.mark(found, k)
					if wrong == "the lane looked for before the change" {
						found = found || m.load(lane) != 0
					}
					if wrong != "woken before the change" {
						m.first("wrote", index[i], k+1)
					}
					if wrong != "the lane looked for before the change" {
						found = found || m.load(lane) != 0
					}
					if found {
						m.wake(b)
					}
					if wrong == "woken before the change" {
						m.store(index[i], k+1)
					}
				}
			})
		}
		if stranger {
			m.members = append(m.members, func(m *member) { m.wake(b) })
		}
		return m
	}
}

// meetings is a model of members that sleep at barriers: meetSpread or, together, synchronise, with sleep, pause and
// rouseFrom of inproc.
func meetings(n, barriers int, spread bool) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		synced, waiting, wake := m.row(n, "synced"), m.row(n, "waiting"), m.row(n, "wake")
		count, done := m.word("count"), m.word("done")
		for range n {
			m.members = append(m.members, func(m *member) {
				ring := func() {
					for i := range n {
						if i != m.me && m.load(waiting[i]) != 0 && m.swap(waiting[i], 0) != 0 {
							m.swap(wake[i], 1)
						}
					}
				}
				for number := 1; number <= barriers; number++ {
					m.mark("barrier", number)
					met := func() bool {
						for i := range n {
							if spread && m.load(synced[i]) < number {
								return false
							}
						}
						return spread || m.load(done) == number
					}
					if !spread && m.add(count, 1) == number*n {
						m.first("done", done, number)
						ring()
						continue
					}
					if spread {
						m.first("synced", synced[m.me], number)
						if wrong != "nobody rings" && met() {
							ring()
							continue
						}
					}
					for !met() {
						m.mark("wait", number)
						if wrong == "waiting after the last look" {
							if met() {
								break
							}
							m.store(waiting[m.me], 1)
							m.sleep(wake[m.me])
							continue
						}
						m.first("waiting", waiting[m.me], 1)
						if !met() || m.swap(waiting[m.me], 0) == 0 {
							m.sleep(wake[m.me])
						}
					}
				}
			})
		}
		return m
	}
}

// modelRing is how many bytes a ring of the model holds.
const modelRing = 4

// ring is a model of a Sender of some bytes, no more than most in each Send, and of a Receiver that takes unit bytes
// at a time. The Sender ends, and gives the memory of the ring back.
func ring(bytes, most, unit int) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		at := m.row(modelRing, "byte")
		wrote, ended, wants := m.word("wrote"), m.word("ended"), m.word("wants")
		read, done := m.word("read"), m.word("done")
		b := m.bells(2)
		m.members = []func(m *member){
			func(m *member) {
				s := sending{member: m, bytes: at, wroteAt: wrote, wantsAt: wants, readAt: read, doneAt: done,
					peer: b[1], wrong: wrong}
				for s.wrote < bytes {
					m.mark(s.wrote, s.noted, s.full)
					if n := s.send(min(most, bytes-s.wrote)); n > 0 {
						continue
					}
					m.park(b[0], wrong, s.changed)
				}
				m.first("ended, then asleep", ended, 1) // rings.Close
				m.wake(b[1])
				if wrong != "memory given back before the receiver is done" {
					m.await(done, 1) // Segment.reclaim
				}
				for _, w := range at {
					m.write(w, 0)
				}
			},
			func(m *member) {
				r := receiving{member: m, bytes: at, wroteAt: wrote, endedAt: ended, wantsAt: wants, readAt: read,
					wrong: wrong}
				for {
					m.mark(r.read, r.noted, r.ended)
					n, end := r.peek(unit)
					switch {
					case end:
						m.claim(r.read == bytes, "%d bytes have come, want %d", r.read, bytes)
						m.store(done, 1)
						return
					case n < unit:
						m.park(b[1], wrong, r.changed)
					default:
						r.take(unit, b[0])
					}
				}
			},
		}
		return m
	}
}

// sending is a Sender.
type sending struct {
	*member
	bytes                            []word
	wrote, noted                     int
	full                             bool
	wroteAt, wantsAt, readAt, doneAt word
	peer                             bell
	wrong                            string
}

// room is Sender.room.
func (s *sending) room() int {
	s.noted = s.load(s.readAt)
	room := modelRing - (s.wrote - s.noted)
	if s.wrong == "room for one byte too many" {
		room++
	}
	return room
}

// send is Sender.Send of n bytes, which are their numbers.
func (s *sending) send(n int) (sent int) {
	room := s.room()
	if s.full && room > 0 {
		s.full = false
		s.store(s.wantsAt, 0)
	}
	if room == 0 {
		if room = s.wait(); room == 0 {
			return 0
		}
	}
	n = min(n, room)
	if s.wrong == "wrote before the bytes" {
		s.store(s.wroteAt, s.wrote+n)
	}
	for range n {
		s.write(s.bytes[s.wrote%modelRing], s.wrote+1)
		s.wrote++
	}
	if s.wrong != "wrote before the bytes" {
		s.first("wrote", s.wroteAt, s.wrote) // publish
	}
	s.wake(s.peer)
	return n
}

// wait is Sender.wait.
func (s *sending) wait() int {
	if s.wrong == "wants after the last look" {
		room := s.room()
		if s.full = room == 0; s.full {
			s.store(s.wantsAt, 1)
		}
		return room
	}
	s.store(s.wantsAt, 1)
	room := s.room()
	if s.full = room == 0; !s.full {
		s.store(s.wantsAt, 0)
	}
	return room
}

// changed is Sender.Changed.
func (s *sending) changed() bool {
	s.load(s.doneAt)
	read := s.load(s.readAt)
	if s.wrong == "room not looked for before the sleep" || !s.full || read == s.noted {
		return false
	}
	s.noted = read
	return true
}

// receiving is a Receiver.
type receiving struct {
	*member
	bytes                             []word
	read, noted                       int
	ended                             bool
	wroteAt, endedAt, wantsAt, readAt word
	wrong                             string
}

// peek is Receiver.Peek of n bytes. It says how many have come, and reports whether that is io.EOF.
func (r *receiving) peek(n int) (have int, end bool) {
	if r.noted-r.read < n {
		if r.wrong == "the end after the bytes" {
			r.noted = r.load(r.wroteAt)
			r.ended = r.load(r.endedAt) != 0
		} else {
			r.ended = r.load(r.endedAt) != 0
			r.noted = r.load(r.wroteAt)
		}
	}
	have = r.noted - r.read
	return have, have < n && r.ended
}

// take copies n bytes out, and is Receiver.Skip.
func (r *receiving) take(n int, sender bell) {
	from := r.read
	r.read += n
	if r.wrong == "read before the bytes are" {
		r.store(r.readAt, r.read)
	}
	wants := r.wrong == "wants looked at before read is stored" && r.load(r.wantsAt) != 0
	for k := from; k < r.read; k++ {
		r.want(r.bytes[k%modelRing], k+1, "the byte")
	}
	if r.wrong != "read before the bytes are" {
		r.first("read", r.readAt, r.read)
	}
	if r.wrong != "wants looked at before read is stored" {
		wants = r.load(r.wantsAt) != 0
	}
	if !wants || r.wrong == "nobody woken for room" {
		return
	}
	if r.load(r.wroteAt)-r.read <= modelRing/2 {
		r.wake(sender)
	}
}

// changed is Receiver.Changed.
func (r *receiving) changed() bool {
	changed := false
	if ended := r.load(r.endedAt) != 0; ended != r.ended {
		r.ended, changed = ended, true
	}
	if wrote := r.load(r.wroteAt); wrote != r.noted {
		r.noted, changed = wrote, true
	}
	return changed
}

// The blocks and keys of the model of a directory. A block's number is its offset.
const (
	laneBlock = 1
	ringBlock = 2
	laneKey   = 1
	ringKey   = 2
)

// directory is a model of an owner that opens a lane, and of another process that wakes it. In reused the owner closes
// the lane then, and makes a ring whose key comes to lie in the same entry.
func directory(reused bool) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		key, offset := m.word("key"), m.word("offset")
		first := []word{laneBlock: m.word("asleep of the lane"), ringBlock: m.word("wrote of the ring")} // word 0s
		m.members = []func(m *member){
			func(m *member) {
				enter := func(k, block int) {
					if wrong == "the key before the offset" {
						m.store(key, k)
						m.store(offset, block)
						return
					}
					m.store(offset, block)
					m.store(key, k)
				}
				enter(laneKey, laneBlock)
				m.store(first[laneBlock], 1) // it sleeps
				if !reused {
					return
				}
				m.store(key, 0) // strike
				enter(ringKey, ringBlock)
				m.store(first[ringBlock], 1) // publish
				m.claim(m.load(first[ringBlock]) == 1, "the ring's index is overwritten by who wakes a lane")
			},
			func(m *member) { // rings.wake, with find
				if m.load(key) != laneKey {
					return
				}
				block := m.load(offset)
				if wrong != "the key looked at once" && m.load(key) != laneKey {
					return
				}
				m.claim(block == laneBlock || wrong == "the key looked at once",
					"the block of the lane is %d, want %d", block, laneBlock)
				if block != 0 && m.load(first[block]) != 0 {
					m.swap(first[block], 0)
				}
			},
		}
		return m
	}
}

var errKept = errors.New("the ring is kept for ever")

// lonely is a model of two processes that end a link that one of them may not have seen: rings.Close, and answers of
// the one that answers, which frees its ring at once if it is lonely. No ring may be kept for ever.
func lonely(wrong string) *model {
	m := &model{}
	key, ended, done, gone := m.word("key"), m.word("ended"), m.word("done"), m.word("lonely")
	m.members = []func(m *member){
		func(m *member) { // answers
			if wrong == "the end looked for before the ring is there" && m.load(ended) != 0 {
				m.write(gone, 1)
			}
			m.first("key", key, 1)
			if wrong != "the end looked for before the ring is there" && m.load(ended) != 0 {
				m.write(gone, 1)
			}
		},
		func(m *member) { // Close
			if wrong == "the ring looked for before the end" {
				if m.load(key) != 0 {
					m.store(done, 1)
				}
				m.store(ended, 1)
				return
			}
			m.first("ended, then key", ended, 1)
			if m.load(key) != 0 {
				m.store(done, 1)
			}
		},
	}
	m.final = func(see func(word) int) error {
		if see(gone) == 0 && see(done) == 0 {
			return errKept
		}
		return nil
	}
	return m
}

// lonelyMemory is a model of an owner that frees a lonely ring at once, and makes another one in its memory, which it
// frees when that one's receiver is done. The receiver of the first says that it is done at any time.
func lonelyMemory(wrong string) *model {
	m := &model{}
	keys := []word{1: m.word("key of the first"), 2: m.word("key of the second")}
	ended, done := m.word("ended"), m.word("done")
	const first, second = 1, 2
	finish := func(m *member, key int) { // Receiver.Done
		switch wrong {
		case "done stored":
			m.store(done, key)
			return
		case "done set once":
			m.compare(done, 0, key)
			return
		}
		for {
			m.mark("done", key)
			before := m.load(done)
			if wrong != "done without a look for the ring" && m.load(keys[key]) == 0 || m.compare(done, before, key) {
				return
			}
		}
	}
	m.members = []func(m *member){
		func(m *member) {
			m.store(keys[first], 1)
			m.await(ended, 1)
			m.store(keys[first], 0) // release: strike, and punch
			m.store(done, 0)
			m.store(keys[second], 1)
			m.awaitAny(condition{done, second, second})
		},
		func(m *member) { // Close
			m.store(ended, 1)
			if m.load(keys[first]) != 0 {
				finish(m, first)
			}
		},
		func(m *member) {
			m.await(keys[second], 1)
			finish(m, second)
		},
	}
	return m
}
