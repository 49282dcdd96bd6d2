package schedule

import "fmt"

// room is how much memory a check may still take. It bounds what a small text can make a check do: one span can name a
// million chunks.
type room struct {
	left, all int64 // bytes
	steps     int64
}

// The memory that a check may take: 384 MiB, and 16 KiB for each step. A text of 25 KB has 4,000 steps at most, and its
// check stays below 1 GiB whatever it says, garbage of the Go runtime included. Schedules of many ranks need less for a
// step: a ring all-reduce of 1,024 ranks has 4 million steps, and a check of it takes 0.1 GiB.
const (
	roomBytes     = 384 << 20
	roomStepBytes = 16 << 10
)

// newRoom is the room for a schedule of so many steps.
func newRoom(bytes, steps int64) *room {
	all := bytes + roomStepBytes*steps
	return &room{left: all, all: all, steps: steps}
}

// take notes that memory is taken. A caller looks at lack before it takes more.
func (r *room) take(bytes int64) { r.left -= bytes }

// lack is an error if more was taken than there was.
func (r *room) lack() error {
	if r.left >= 0 {
		return nil
	}
	return &roomError{r.all, r.steps}
}

// roomError says that a check takes too much memory.
type roomError struct{ all, steps int64 }

func (e *roomError) Error() string {
	return fmt.Sprintf("the check takes more than %d MiB of memory, the most for %s, want fewer chunks, ranks or slots",
		e.all>>20, counted(int(e.steps), "step"))
}
