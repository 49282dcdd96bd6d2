package schedule

import "sort"

// message is what a send has put on its way.
type message struct {
	from, to int32
	taken    int32 // of the messages of its pair of ranks, if it is the first of these
	src      Span
	values   []value
}

// mail holds the messages under way in one round.
type mail struct {
	messages  []message // in the order of sending, which is that of the senders
	byRank    []inbox   // by receiver
	receivers []int32   // those that have an inbox
	sorted    []int32   // messages by receiver, then as they were sent
	taken     int
}

// inbox is what is under way to one rank: count messages, from place first of mail.sorted on.
type inbox struct{ first, count, sorted int32 }

func newMail(size int) mail { return mail{byRank: make([]inbox, size)} }

// empty begins a round.
func (m *mail) empty() {
	for _, to := range m.receivers {
		m.byRank[to] = inbox{}
	}
	m.receivers, m.messages, m.taken = m.receivers[:0], m.messages[:0], 0
}

// put puts a message on its way. Senders come in order.
func (m *mail) put(from, to int, src *Span, values []value) {
	m.messages = append(m.messages, message{from: int32(from), to: int32(to), src: *src, values: values})
	box := &m.byRank[to]
	if box.count == 0 {
		m.receivers = append(m.receivers, int32(to))
	}
	box.count++
}

// sort comes between the last put and the first take.
func (m *mail) sort() {
	at := int32(0)
	for _, to := range m.receivers {
		m.byRank[to].first = at
		at += m.byRank[to].count
	}
	if len(m.sorted) < len(m.messages) {
		m.sorted = make([]int32, 2*len(m.messages))
	}
	for i := range m.messages {
		box := &m.byRank[m.messages[i].to]
		m.sorted[box.first+box.sorted] = int32(i)
		box.sorted++
	}
}

// to lists the messages to a rank, by sender.
func (m *mail) to(rank int) []int32 {
	box := m.byRank[rank]
	return m.sorted[box.first : box.first+box.count]
}

// pair lists the messages from one rank to another.
func (m *mail) pair(from, to int) []int32 {
	list := m.to(to)
	first := 0
	if len(list) > 8 {
		first = sort.Search(len(list), func(i int) bool { return int(m.messages[list[i]].from) >= from })
	}
	for first < len(list) && int(m.messages[list[first]].from) < from {
		first++
	}
	return list[first:]
}

// next is the message of a pair that was not taken yet; nil if there is none.
func (m *mail) next(pair []int32, from int) *message {
	if len(pair) == 0 {
		return nil
	}
	at := int(m.messages[pair[0]].taken)
	if at >= len(pair) || int(m.messages[pair[at]].from) != from || int(m.messages[pair[0]].from) != from {
		return nil
	}
	return &m.messages[pair[at]]
}

// take takes the next message from one rank to another; nil if there is none.
func (m *mail) take(from, to int) *message {
	pair := m.pair(from, to)
	msg := m.next(pair, from)
	if msg != nil {
		m.messages[pair[0]].taken++
		m.taken++
	}
	return msg
}

// left returns a message that nobody has taken, of the pair that talked first; nil if there is none.
func (m *mail) left() *message {
	if m.taken == len(m.messages) {
		return nil
	}
	for i := range m.messages {
		from, to := int(m.messages[i].from), int(m.messages[i].to)
		if msg := m.next(m.pair(from, to), from); msg != nil {
			return msg
		}
	}
	return nil
}
