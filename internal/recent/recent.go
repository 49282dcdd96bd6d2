// Package recent remembers what was found out last: a bounded number of values by their keys. Programs make the same
// few calls again and again, and what is found out about one serves the next; programs that never repeat a call must
// not fill the memory with what they will not ask for again.
package recent

// Map keeps the values of the keys that came last. With Most set, to 1 or more, it is ready for use, by one goroutine
// at a time.
type Map[K comparable, V any] struct {
	Most int // values that are kept; one more, and the one that came first goes

	places map[K]int
	all    []entry[K, V] // in the order in which they came, round and round
	oldest int
}

type entry[K comparable, V any] struct {
	key   K
	value V
}

// Get returns the value of a key, and whether there is one.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	at, ok := m.places[key]
	if !ok {
		return value, false
	}
	return m.all[at].value, true
}

// Place makes room for a key that has no value, and returns where its value goes: until the next Place. There lies the
// value that had to go for it, whose memory may serve again, or if none had to the zero value.
func (m *Map[K, V]) Place(key K) *V {
	if m.places == nil {
		m.places = map[K]int{}
	}
	at := len(m.all)
	if at < m.Most {
		m.all = append(m.all, entry[K, V]{})
	} else {
		at = m.oldest
		m.oldest = (at + 1) % m.Most
		delete(m.places, m.all[at].key)
	}
	m.places[key], m.all[at].key = at, key
	return &m.all[at].value
}

// Len is how many values are kept.
func (m *Map[K, V]) Len() int { return len(m.all) }
