package schedule

import "fmt"

// budget is how much memory a check may still take. It bounds what a small text can make a check do: one span can name
// a million chunks.
type budget struct {
	left, all int64 // bytes
	steps     int64
}

// The memory that a check may take: 384 MiB, and 16 KiB for each step. A text of 25 KB has 4,000 steps at most, and its
// check stays below 1 GiB whatever it says, garbage of the Go runtime included. Schedules of many ranks need less for a
// step: a ring all-reduce of 1,024 ranks has 4 million steps, and a check of it takes 0.1 GiB.
const (
	budgetBytes     = 384 << 20
	budgetStepBytes = 16 << 10
)

// newBudget is the budget of a schedule of so many steps.
func newBudget(bytes, steps int64) *budget {
	all := bytes + budgetStepBytes*steps
	return &budget{left: all, all: all, steps: steps}
}

// take notes that memory is taken. A caller looks at lack before it takes more.
func (b *budget) take(bytes int64) { b.left -= bytes }

// lack is an error if more was taken than there was.
func (b *budget) lack() error {
	if b.left >= 0 {
		return nil
	}
	return &budgetError{b.all, b.steps}
}

// budgetError says that a check takes too much memory.
type budgetError struct{ all, steps int64 }

func (e *budgetError) Error() string {
	return fmt.Sprintf("the check takes more than %d MiB of memory, the most for %s, want fewer chunks, ranks or slots",
		e.all>>20, counted(int(e.steps), "step"))
}
