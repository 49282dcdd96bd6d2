package spawn

import (
	"fmt"
	"syscall"
)

// End is how a process has ended.
type End struct {
	Code   int            // the exit code that a shell has for it: 128 + n after signal n
	Signal syscall.Signal // that has ended it; 0: none has
}

func (e End) String() string {
	if e.Signal != 0 {
		return fmt.Sprintf("was ended by signal %d (%v)", int(e.Signal), e.Signal)
	}
	return fmt.Sprintf("ended with exit code %d", e.Code)
}
