package meeting

// The models of the host of package tcp, whose members are processes: meet.go and memory.go there, and stop of node.go
// in package stream. wrong names what a model does otherwise than the code.

// processes is a model of members that open their lanes, make their seats, wait until all have one, and meet at
// barriers: at the first one together, and then apart. Who waits long sleeps as in Lane.Await.
func processes(n, barriers int) func(wrong string) *model {
	return func(wrong string) *model {
		m := &model{}
		lane, key, made := m.row(n, "lane"), m.row(n, "key"), m.row(n, "made") // made is plain bytes of a seat block
		number, b := m.row(n, "number"), m.bells(n)
		count, done := m.word("count"), m.word("done")
		for range n {
			m.members = append(m.members, func(m *member) {
				sought, asleep, seats := make([]bool, n), make([]bool, n), make([]bool, n) // visit.asleep, Table.seats
				ring := func() {                                                           // visit.Ring
					for i := range n {
						if i == m.me {
							continue
						}
						if !asleep[i] && !(wrong == "a lane looked for once" && sought[i]) {
							asleep[i], sought[i] = m.load(lane[i]) != 0, true
						}
						if asleep[i] {
							m.wake(b[i])
						}
					}
				}
				all := func(met func(i int) bool) bool { // Met
					for i := range n {
						if i != m.me && !met(i) {
							return false
						}
					}
					return true
				}
				wait := func(stage int, met func() bool) { // Lane.Await: Look, and then Park
					for !met() {
						m.mark(stage, sought, asleep, seats)
						m.park(b[m.me], wrong, met)
					}
					m.mark("met", stage, sought, asleep, seats)
				}
				m.store(lane[m.me], 1) // newSleeper
				if wrong == "the key before the seat" {
					m.store(key[m.me], 1)
				}
				m.write(made[m.me], 1)
				m.first("seat", key[m.me], 1) // newVisit
				if wrong != "no ring for a seat" {
					ring()
				}
				seat := func(i int) bool { // Table.seat
					seats[i] = seats[i] || m.load(key[i]) != 0
					return seats[i]
				}
				if wrong != "the hall before all have seats" {
					wait(0, func() bool { return all(seat) })
				}
				m.want(made[0], 1, "the hall")
				if m.add(count, 1) == n {
					m.first("done", done, 1)
					ring()
				} else {
					wait(1, func() bool { return m.load(done) == 1 })
				}
				for k := 2; k <= barriers; k++ {
					met := func() bool {
						return all(func(i int) bool { at := m.load(number[i]); return at == k || at == k+1 })
					}
					m.first("number", number[m.me], k)
					if met() {
						if wrong != "nobody rings" {
							ring()
						}
						continue
					}
					wait(k, met)
				}
			})
		}
		return m
	}
}

// aborting is a model of three replicas whose calls touch each other's buffers. The first aborts, before it goes
// inside. The second has a goroutine that hears of it by a control message. No word reaches the third but that in its
// segment, so it aborts as well. When a call has failed the replica writes over its buffer.
func aborting(wrong string) *model {
	const n = 3
	m := &model{}
	inside, aborted, in := m.row(n, "inside"), m.row(n, "aborted"), m.row(n, "in")
	message, heard := m.word("message"), m.word("heard")
	words := func(m *member) { // mesh.Aborting
		for i := range n {
			if wrong != "the word of its own segment only" || i == m.me {
				m.first("aborted", aborted[i], 1)
			}
		}
	}
	fail := func(m *member) { // visit.Fail after node.stop, and the user after that
		m.store(inside[m.me], 0)
		if wrong != "no look for members inside" {
			for i := range n {
				m.awaitAny(condition{inside[i], 0, 0}) // Vacate
			}
		}
		m.write(in[m.me], 1)
	}
	enter := func(m *member) (goes bool) { // Visit.enter
		if wrong == "inside after the look for an abort" {
			goes = m.load(aborted[m.me]) == 0
			m.store(inside[m.me], 1)
			return goes
		}
		m.first("inside", inside[m.me], 1)
		return m.load(aborted[m.me]) == 0 || wrong == "inside without a look for an abort"
	}
	piece := func(m *member) {
		for i := range n {
			m.want(in[i], 0, "the input")
		}
		m.store(inside[m.me], 0)
	}
	m.members = []func(m *member){
		func(m *member) { // stop
			if wrong != "told after the words" {
				m.store(message, 1)
			}
			if wrong != "the words after the look for members inside" {
				words(m)
			}
			if wrong == "told after the words" {
				m.store(message, 1)
			}
			fail(m)
			if wrong == "the words after the look for members inside" {
				words(m)
			}
		},
		func(m *member) {
			if m.load(heard) == 0 && enter(m) {
				piece(m)
			}
			m.await(heard, 1) // Done: it waits for the first, or has seen its word
			fail(m)
		},
		func(m *member) {
			if enter(m) {
				piece(m)
			}
			m.await(aborted[m.me], 1)
			words(m)
			fail(m)
		},
		func(m *member) { // Node.Handle of the second
			m.await(message, 1)
			if wrong == "heard before the words" {
				m.store(heard, 1)
			}
			if wrong != "no words where a message says it" {
				words(m)
			}
			m.store(heard, 1)
		},
	}
	return m
}
