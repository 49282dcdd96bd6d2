package agree

import (
	"errors"
	"fmt"
	"slices"
)

// Newcomer is a process that waits to become a member of a job. It has a number greater than those of all members, and
// is connected with members: with those that it has been told of at first, and then with those that they tell of. Each
// of them calls Wait. Like a Member it is not safe for use by several goroutines.
type Newcomer struct {
	id   int
	told map[int]job  // by member: what it has told last
	lost map[int]bool // members whose connection has ended

	ended error
}

// job is a generation as a member tells a newcomer.
type job struct {
	generation int
	members    []int
	notes      []uint64
}

func (j job) equal(k job) bool {
	return j.generation == k.generation && slices.Equal(j.members, k.members) && slices.Equal(j.notes, k.notes)
}

// ErrAgain says that a newcomer has to come again, with another number.
var ErrAgain = errors.New("a member is lost, or another newcomer with a greater number has come before: come again")

// NewNewcomer makes a newcomer.
func NewNewcomer(id int) *Newcomer {
	return &Newcomer{id: id, told: map[int]job{}, lost: map[int]bool{}}
}

// Hear takes a message of a member. It returns the Decision by which this process has become a member, when all other
// members have told it: before that some of them may be another job that may not go on. Until then nothing that they
// tell after it is to be heard. Else members are those that it is to be connected with, as far as the member knows.
// ErrAgain says that it can no longer become a member, and another error that the message makes no sense.
func (n *Newcomer) Hear(from int, message []byte) (d *Decision, members []int, err error) {
	if n.ended != nil {
		return nil, nil, n.ended
	}
	if n.lost[from] {
		return nil, nil, nil
	}
	kind, generation, members, _, notes, ok := parse(message)
	j := job{generation, members, notes}
	last := len(members) - 1
	switch {
	case !ok || kind != welcomed || !has(members, from):
		return nil, nil, fmt.Errorf("a message to a newcomer that makes no sense: %x", message)
	case n.TakenBy(from):
		return nil, nil, errors.New("it tells a newcomer more before all have taken it in")
	case members[last] > n.id:
		return nil, nil, n.end()
	case members[last] == n.id && len(notes) != len(members):
		return nil, nil, fmt.Errorf("it tells %d notes of %d members", len(notes), len(members))
	}
	n.told[from] = j
	if n.isVain() {
		return nil, nil, n.end()
	}
	if members[last] != n.id {
		return nil, members, nil
	}
	for _, id := range members[:last] {
		if !n.told[id].equal(j) {
			return nil, nil, nil
		}
	}
	return &Decision{Generation: generation, Members: members, Notes: notes, Came: true}, nil, nil
}

// Ready reports whether all members of the last generation that it has been told of have told it the same: then it
// waits with all of them.
func (n *Newcomer) Ready() bool {
	var last job
	for _, j := range n.told {
		if j.generation >= last.generation {
			last = j
		}
	}
	for _, id := range last.members {
		if !n.told[id].equal(last) {
			return false
		}
	}
	return len(last.members) > 0
}

// isVain reports whether some member has taken this process in, and another one does not or is lost.
func (n *Newcomer) isVain() bool {
	for from, j := range n.told {
		if !n.TakenBy(from) {
			continue
		}
		for _, id := range j.members[:len(j.members)-1] {
			if n.lost[id] || n.told[id].generation >= j.generation && !n.told[id].equal(j) {
				return true
			}
		}
	}
	return false
}

// TakenBy reports whether a member has told that this process is one. Nothing more that it tells is to be heard until
// the others have told so too.
func (n *Newcomer) TakenBy(id int) bool {
	members := n.told[id].members
	return len(members) > 0 && members[len(members)-1] == n.id
}

// Lose says that the connection with a member has ended, or cannot be made. ErrAgain: with a member that is to take
// this process in.
func (n *Newcomer) Lose(id int) error {
	if n.ended != nil {
		return n.ended
	}
	delete(n.told, id)
	n.lost[id] = true
	if n.isVain() {
		return n.end()
	}
	return nil
}

func (n *Newcomer) end() error {
	n.ended = ErrAgain
	return n.ended
}

// Member is this process's part from the Decision on by which it has become a member.
func (n *Newcomer) Member(d *Decision, most int, host Host) *Member {
	m := New(n.id, d.Members, most, host)
	m.generation, m.notes = d.Generation, d.Notes
	return m
}

// welcome is what a newcomer is told of this generation.
func (m *Member) welcome() []byte { return m.message(welcomed, m.members, nil, m.notes) }
