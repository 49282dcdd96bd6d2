package schedule

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Traffic is the messages of a schedule, described for all ranks at once, without steps. It says who sends how many
// chunks to whom in each round, and not which chunks. That is all a price takes, and it stays small where a schedule
// would have billions of steps. An all-reduce round a ring of k ranks, of k chunks:
//
//	Traffic{Size: k, Chunks: k, Rounds: []Alike{
//		{Times: k - 1, Flows: []Flow{{Move: 1, Chunks: 1, Fold: true}}},
//		{Times: k - 1, Flows: []Flow{{Move: 1, Chunks: 1}}},
//	}}
type Traffic struct {
	Size   int // ranks
	Chunks int // of equal size, into which the larger buffer is cut

	// Orders are permutations of the ranks. A flow goes by the places of one of them.
	Orders [][]int

	Rounds []Alike
}

// Alike is rounds with the same messages, one after the other: those of the flows, and then those that are listed.
type Alike struct {
	Times  int // rounds; at least 1
	Flows  []Flow
	Listed []Message
}

// Flow is messages of one pattern: from each of some places, one of so many chunks to the place that differs in one
// digit. The digit of a place is place/Stride % Radix, and Move is added to it, modulo Radix:
//
//	a ring of k ranks                                   {Move: 1}
//	the partner at distance 4, as of 0 and 4, 5 and 1   {Stride: 4, Radix: 2, Move: 1}
//	the next along the second side of 8 by 8 ranks      {Stride: 8, Radix: 8, Move: 1}
//	even ranks 3 up, odd ones 3 down                    {Move: 3, Alternate: true}
//	everyone to everyone else                           {All: true}
type Flow struct {
	Order int // places are ranks (0), or place p is rank Orders[Order-1][p]

	// The places that send: First, First+Every and so on, Count of them. An Every of 0 means 1, and a Count of 0 as
	// many as there are.
	First, Every, Count int

	Stride, Radix int  // the digit; 0 means 1, and Traffic.Size
	Move          int  // by how much it differs, up or down
	Alternate     bool // odd digits move the other way

	// All has each of the places send to every other place, the next one first, and not to one. There is no digit then.
	// Without is a place that is sent nothing, by its number from 1 on. 0: there is none.
	All     bool
	Without int

	Chunks   int  // of each message
	Messages int  // from each of the places to one receiver, one like the other; 0 means 1
	Fold     bool // the receivers combine what arrives with what they have
}

// Message is one message of a Traffic, between two ranks.
type Message struct {
	From, To int
	Chunks   int
	Fold     bool
}

// These bound what a Traffic makes others count.
const (
	maxTrafficRanks  = 1 << 24
	maxTrafficChunks = 1 << 32
	maxAlike         = 1 << 24
	maxMessages      = 1 << 26 // messages that a round is listed as
)

// Check refuses what is no traffic: fewer than 1 rank or chunk, or more than 1<<24 and 1<<32; orders that are no
// permutations; rounds less than once or more than 1<<24 times; a flow of an order, a place, a digit or a number of
// chunks or messages that cannot be; a listed message between ranks or of chunks that cannot be. Whether each place has
// another to send to is for [Traffic.Messages] to say.
func (t *Traffic) Check() error {
	if err := t.checkSize(); err != nil {
		return err
	}
	for i, order := range t.Orders {
		seen := make([]bool, t.Size)
		for _, rank := range order {
			if rank < 0 || rank >= t.Size || seen[rank] || len(order) != t.Size {
				return fmt.Errorf("schedule: order %d of a traffic is no permutation of 0 to %d", i+1, t.Size-1)
			}
			seen[rank] = true
		}
		if len(order) == 0 {
			return fmt.Errorf("schedule: order %d of a traffic is empty", i+1)
		}
	}
	for i, alike := range t.Rounds {
		if alike.Times < 1 || alike.Times > maxAlike {
			return fmt.Errorf("schedule: rounds %d of a traffic: %d times, want 1 to %d", i, alike.Times, maxAlike)
		}
		for j, f := range alike.Flows {
			if err := t.checkFlow(f); err != nil {
				return fmt.Errorf("schedule: rounds %d of a traffic, flow %d: %w", i, j, err)
			}
		}
		for j, m := range alike.Listed {
			if err := t.checkListed(m); err != nil {
				return fmt.Errorf("schedule: rounds %d of a traffic, message %d: %w", i, j, err)
			}
		}
	}
	return nil
}

// checkListed refuses a message that no ranks exchange.
func (t *Traffic) checkListed(m Message) error {
	if min(m.From, m.To) < 0 || max(m.From, m.To) >= t.Size || m.From == m.To || m.Chunks < 0 || m.Chunks > t.Chunks {
		return fmt.Errorf("%d chunks of %d from rank %d to rank %d of %d", m.Chunks, t.Chunks, m.From, m.To, t.Size)
	}
	return nil
}

func (t *Traffic) checkSize() error {
	switch {
	case t == nil:
		return fmt.Errorf("schedule: nil traffic")
	case t.Size < 1 || t.Size > maxTrafficRanks:
		return fmt.Errorf("schedule: traffic of %d ranks, want 1 to %d", t.Size, maxTrafficRanks)
	case t.Chunks < 1 || int64(t.Chunks) > maxTrafficChunks:
		return fmt.Errorf("schedule: traffic of %d chunks, want 1 to %d", t.Chunks, int64(maxTrafficChunks))
	}
	return nil
}

func (t *Traffic) checkFlow(f Flow) error {
	switch {
	case f.Order < 0 || f.Order > len(t.Orders):
		return fmt.Errorf("order %d of %d", f.Order, len(t.Orders))
	case f.First < 0 || f.First >= t.Size || f.Every < 0 || f.Count < 0 || f.Count > f.most(t.Size):
		return fmt.Errorf("%d places, every %d from place %d on, of %d", f.Count, max(f.Every, 1), f.First, t.Size)
	case f.Stride < 0 || f.Radix < 0 || f.Stride > t.Size || f.Radix > t.Size:
		return fmt.Errorf("a digit of stride %d and radix %d, want 1 to %d, or 0", f.Stride, f.Radix, t.Size)
	case f.Chunks < 0 || f.Chunks > t.Chunks:
		return fmt.Errorf("%d chunks of %d", f.Chunks, t.Chunks)
	case f.Messages < 0 || f.Messages > maxTrafficRanks:
		return fmt.Errorf("%d messages, want 1 to %d, or 0 for 1", f.Messages, maxTrafficRanks)
	case f.All && (f.Stride != 0 || f.Radix != 0 || f.Move != 0 || f.Alternate):
		return fmt.Errorf("a digit beside All, which has none")
	case f.Without < 0 || f.Without > t.Size || f.Without > 0 && !f.All:
		return fmt.Errorf("without place %d of %d, want 1 to %[2]d with All, or 0 for none", f.Without, t.Size)
	}
	return nil
}

// Messages appends to dst the messages of one of the rounds of Rounds[i], by the ranks that send them and for each in
// the order of the flows, and the listed ones last. Errors: those of Check in sizes, flows and messages, an i that is
// out of range, a message to a place that does not exist or is the sender's own, and more than 1<<26 messages.
func (t *Traffic) Messages(dst []Message, i int) ([]Message, error) {
	if err := t.checkSize(); err != nil {
		return dst, err
	}
	if i < 0 || i >= len(t.Rounds) {
		return dst, fmt.Errorf("schedule: no rounds %d in the traffic", i)
	}
	first := len(dst)
	for j, f := range t.Rounds[i].Flows {
		err := t.checkFlow(f)
		if err == nil {
			dst, err = t.flow(dst, f)
		}
		if err != nil {
			return dst[:first], fmt.Errorf("schedule: rounds %d of a traffic, flow %d: %w", i, j, err)
		}
	}
	for j, m := range t.Rounds[i].Listed {
		if err := t.checkListed(m); err != nil {
			return dst[:first], fmt.Errorf("schedule: rounds %d of a traffic, message %d: %w", i, j, err)
		}
	}
	dst = append(dst, t.Rounds[i].Listed...)
	inTurn(dst[first:], t.Size)
	return dst, nil
}

// inTurn sorts messages of so many ranks by those that send them, and leaves those of a rank in order.
func inTurn(messages []Message, size int) {
	bySender := func(a, b Message) int { return cmp.Compare(a.From, b.From) }
	if slices.IsSortedFunc(messages, bySender) {
		return
	}
	if len(messages) < size/16 {
		slices.SortStableFunc(messages, bySender)
		return
	}
	room, _ := sorting.Get().(*sortRoom)
	if room == nil {
		room = &sortRoom{}
	}
	defer sorting.Put(room)
	room.copied = append(room.copied[:0], messages...)
	if len(room.next) < size {
		room.next = make([]int32, size)
	}
	next := room.next[:size]
	clear(next)
	for _, m := range messages {
		next[m.From]++
	}
	begin := int32(0)
	for rank, count := range next {
		next[rank] = begin
		begin += count
	}
	for _, m := range room.copied {
		messages[next[m.From]] = m
		next[m.From]++
	}
}

// sorting has the memory of sorts that are over.
var sorting sync.Pool // of *sortRoom

type sortRoom struct {
	copied []Message
	next   []int32 // by rank: the place of its next message
}

// most is how many places from First on can send.
func (f Flow) most(size int) int { return (size-f.First-1)/max(f.Every, 1) + 1 }

// flow appends the messages of a flow that checkFlow has seen.
func (t *Traffic) flow(dst []Message, f Flow) ([]Message, error) {
	count := f.Count
	if count == 0 {
		count = f.most(t.Size)
	}
	stride, radix := max(f.Stride, 1), f.Radix
	if radix == 0 {
		radix = t.Size
	}
	up := (f.Move%radix + radix) % radix
	down := (radix - up) % radix
	var order []int
	if f.Order > 0 {
		order = t.Orders[f.Order-1]
		if len(order) != t.Size {
			return dst, fmt.Errorf("order %d of %d ranks, want %d", f.Order, len(order), t.Size)
		}
	}
	receivers := 1
	if f.All {
		receivers = t.Size
	}
	copies := max(f.Messages, 1)
	if int64(count)*int64(receivers) > int64(maxMessages/copies) {
		return dst, fmt.Errorf("%d places send %d messages to each of %d, want at most %d in all", count, copies,
			receivers, maxMessages)
	}
	add := func(from, to int) error {
		m := Message{from, to, f.Chunks, f.Fold}
		if order != nil {
			m.From, m.To = order[from], order[to]
			if min(m.From, m.To) < 0 || max(m.From, m.To) >= t.Size {
				return fmt.Errorf("order %d has rank %d or %d of %d", f.Order, m.From, m.To, t.Size)
			}
		}
		for range copies {
			dst = append(dst, m)
		}
		return nil
	}
	for i := range count {
		from := f.First + i*max(f.Every, 1)
		if f.All {
			for d := 1; d < t.Size; d++ {
				to := (from + d) % t.Size
				if to == f.Without-1 {
					continue
				}
				if err := add(from, to); err != nil {
					return dst, err
				}
			}
			continue
		}
		digit := from / stride % radix
		moved := digit + up
		if f.Alternate && digit%2 == 1 {
			moved = digit + down
		}
		if moved >= radix {
			moved -= radix
		}
		to := from + (moved-digit)*stride
		if to < 0 || to >= t.Size || to == from {
			return dst, fmt.Errorf("place %d sends to place %d of %d", from, to, t.Size)
		}
		if err := add(from, to); err != nil {
			return dst, err
		}
	}
	return dst, nil
}

// Traffic returns the messages of the schedule that Build would return, without making it: nothing that depends on what
// a rank holds is looked at, and no error of it found. Errors: the first of a call
// before, and a Builder with [Builder.Ports] or Only.
func (b *Builder) Traffic() (*Traffic, error) {
	switch {
	case b == nil || b.err == nil && b.s.Size == 0:
		return nil, errors.New("schedule: a Builder that NewBuilder has not made")
	case b.err != nil:
		return nil, b.err
	case b.ports != nil || b.only >= 0:
		return nil, fmt.Errorf("schedule: the traffic of a Builder with Ports or Only: %w", errors.ErrUnsupported)
	}
	t := &Traffic{Size: b.s.Size, Chunks: b.s.Chunks, Rounds: make([]Alike, b.rounds)}
	begins := make([]int, b.rounds) // by round: where its messages begin in moves, and before that where they end
	for _, m := range b.moves {
		begins[m.round]++
	}
	for i := 1; i < len(begins); i++ {
		begins[i] += begins[i-1]
	}
	moves := make([]built, len(b.moves))
	for _, m := range slices.Backward(b.moves) {
		begins[m.round]--
		moves[begins[m.round]] = m
	}
	for i, begin := range begins {
		end := len(moves)
		if i+1 < len(begins) {
			end = begins[i+1]
		}
		messages := moves[begin:end]
		slices.SortStableFunc(messages, func(a, b built) int { return cmp.Compare(a.from, b.from) })
		listed := make([]Message, 0, len(messages))
		for n := 0; len(messages) > 0; messages = messages[n:] {
			from := messages[0].from
			for n = 1; n < len(messages) && messages[n].from == from; n++ {
			}
			sends := messages[:n]
			if n > 1 {
				sends, _ = apart(from, sends)
			}
			for _, m := range sends {
				listed = append(listed, Message{m.from, m.to, m.n, m.fold})
			}
		}
		t.Rounds[i] = Alike{Times: 1, Listed: listed}
	}
	return t, nil
}
