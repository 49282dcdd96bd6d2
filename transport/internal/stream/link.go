package stream

import (
	"time"

	"gogcl.dev/transport"
)

// Link is a stream of bytes in each direction between this replica and another one. No method waits. Only the lane that
// the link is attached to uses it, one call at a time.
type Link interface {
	// Send takes as much of head, body and tail, one after the other, as there is room for, and returns how many bytes
	// that is. What is taken is copied.
	Send(head, body, tail []byte) (int, error)

	// Peek returns what has arrived and lies in one place, at least n bytes, n at most 64, or nil when fewer have
	// arrived. The bytes are only to be read, until the next call on the link. The number of a byte in the stream and
	// its address are equal modulo 64, if the link's memory is aligned. The error is io.EOF when the other side has
	// ended and fewer than n bytes are left.
	Peek(n int) ([]byte, error)

	// Skip lets go of n bytes that Peek has shown.
	Skip(n int)

	// ReadInto moves what has arrived into dst and returns how many bytes that is. The error is io.EOF when the other
	// side has ended and nothing is left.
	ReadInto(dst []byte) (int, error)

	// Close sends what Send has taken, in a bounded time, and ends both directions.
	Close() error
}

// Dropper is a Link that can be closed without sending what Send has taken. A lane of a node that has aborted asks for
// it: nobody wants those bytes, and to wait until they have arrived may take long.
type Dropper interface {
	// Drop is called in place of Close.
	Drop() error
}

// Poster is a Link that hands memory to an engine, which reads and writes it between the calls. Send is given the whole
// rest of a payload at a time, and says that bytes are taken when the engine no longer reads them.
type Poster interface {
	Link

	// Retract takes back what Send and ReadInto have handed over, of an Exchange that has failed. It returns when the
	// engine neither reads nor writes that memory any more.
	Retract()
}

// Poller is a Parker of links on which nothing moves unless it is asked to.
type Poller interface {
	Parker

	// Poll starts what the links of the lane have been given, and looks for progress on them, for the time given or
	// until there is some, or Wake is called. It reports whether there is some.
	Poll(limit time.Duration) bool
}

// Parker lets a lane wait. Only the lane calls Park and Watch, one call at a time.
type Parker interface {
	// Watch has Park return when something can be done on the link that could not be done before.
	Watch(l Link) error

	// Park waits for a link that is watched, for Wake, or for the time given, if that is not negative. It may return
	// for no reason. A Wake since the last Park counts.
	Park(limit time.Duration)

	// Wake ends a Park, this one or the next. Any goroutine may call it, at any time.
	Wake()

	// Close gives back what the Parker has. The lane calls it last, when no more Wake can come.
	Close() error
}

// Gauge is a Link that says how much has come over it. Without it a link is not found silent.
type Gauge interface {
	Link

	// Come is how many bytes have arrived, those included that Peek would show and those that it cannot show yet. moved
	// grows with each byte that comes, also with one of a record that bytes counts as a whole.
	Come() (bytes, moved uint64)

	// Ends names the connection, as in "127.0.0.1:4711 to 127.0.0.1:4712".
	Ends() string
}

// Awaited is what a call waits for that is no message.
type Awaited interface {
	// Met reports whether there is nothing to wait for.
	Met() bool

	// Awaits reports whether the wait is for a replica.
	Awaits(replica int) bool
}

// Looker is a Parker of links that lie in memory, some of them or all: what a lane waits for can be seen there without
// a call of the system.
type Looker interface {
	Parker

	// Sees reports whether a link is one of those.
	Sees(l Link) bool

	// Attend has Look and Park return when w is met, until it is called with nil.
	Attend(w Awaited)

	// Look looks for what Park waits for, as long as that is worth a processor or until stop, and reports whether it
	// has come. crowded says that not every replica of the call can have a processor, as far as the caller knows,
	// goroutines that those of this process cannot: what the lane waits for is then done by a goroutine.
	Look(crowded, goroutines bool, stop func() bool) bool
}

// Boards is what replicas tell each other beside the messages of a lane. The lane asks where a wait is long, where
// others have left, and when it is closed.
type Boards interface {
	// Elsewhere finds what shows that another replica is in another call than this one, or nil. The call in progress
	// goes by messages if one is given, else by what the Boards are of.
	Elsewhere(messages *transport.Call) *transport.MismatchError

	// Instead finds what shows that a replica which has left has made another call in place of one of this replica's.
	Instead(replica int) *transport.MismatchError

	// Heard reports whether all that this replica has told has been heard, or will be by nobody. Unheard is what is
	// wrong with the rest, or nil.
	Heard() bool
	Unheard() error

	// Check is asked where a wait has turned out to be long, whatever it is for. The error says that what replicas tell
	// each other has been overwritten: this wait may never end, or that of another one for this one.
	Check() error
}
