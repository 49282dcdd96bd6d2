//go:build mpi

package mpi

import "encoding/binary"

// After an abort a replica may have to know whether all members of a group have begun a call: see Halt and makeGroup.
//
//	replica 0 fails                       replica 1
//	abort  ───────────────────────────▶   begins nothing from here on
//	"have you begun call 3?"  ────────▶
//	       ◀────────────────────────────  "I have", or "I have not, and never will"

// ask is a question: has a replica begun so many long calls of a group? 0 of them: has it begun to make the group?
type ask struct {
	from  int // the replica that asks, or answers
	key   groupKey
	count uint64
}

// askBytes is the length of a question or an answer.
const askBytes = 25

func (a *ask) message(kind byte) []byte {
	b := binary.LittleEndian.AppendUint64([]byte{kind}, a.key.lane)
	b = binary.LittleEndian.AppendUint64(b, a.key.group)
	return binary.LittleEndian.AppendUint64(b, a.count)
}

func parseAsk(from int, b []byte) ask {
	return ask{from, groupKey{binary.LittleEndian.Uint64(b[1:]), binary.LittleEndian.Uint64(b[9:])},
		binary.LittleEndian.Uint64(b[17:])}
}

// question is what this replica has asked of the members of a group.
type question struct {
	world *world
	count uint64
	begun int // members that have begun the call
	never int // members that have not, and never will of themselves
}

// ask asks the members of a call.
func (w *world) ask(n *nativeCall, count uint64) *question {
	q := &question{world: w, count: count}
	w.mu.Lock()
	w.asking[n.key] = q
	w.mu.Unlock()
	a := ask{key: n.key, count: count}
	for _, r := range n.members {
		if r != w.rank {
			w.tell(r, a.message(ofEntered))
		}
	}
	return q
}

// answers is what has been answered.
func (q *question) answers() (begun, never int) {
	q.world.mu.Lock()
	defer q.world.mu.Unlock()
	return q.begun, q.never
}

// take takes a question. The abort is known to those who ask; where it is not known here yet, the answer waits for it.
func (w *world) take(a ask) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked = append(w.asked, a)
}

// answerAll answers what has been asked. There is an abort, or this replica has left all lanes.
func (w *world) answerAll() {
	w.mu.Lock()
	asked := w.asked
	w.asked = nil
	kinds := make([]byte, len(asked))
	for i, a := range asked {
		g := w.groups[a.key]
		kinds[i] = ofNever
		if g != nil && g.entered >= a.count || a.count == 0 && w.making[a.key] {
			kinds[i] = ofBegun
		}
	}
	w.mu.Unlock()
	for i, a := range asked {
		w.tell(a.from, a.message(kinds[i]))
	}
}

// told notes an answer.
func (w *world) told(a ask, begun bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := w.asking[a.key]
	switch {
	case q == nil || q.count != a.count:
	case begun:
		q.begun++
	default:
		q.never++
	}
}
