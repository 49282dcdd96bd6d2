//go:build unix

package spawn

import (
	"fmt"
	"os"
	"syscall"
)

// Ended describes the end of a process, and returns the exit code that a shell has for it: 128 + n after signal n.
func Ended(p *os.ProcessState) (code int, how string) {
	if w := p.Sys().(syscall.WaitStatus); w.Signaled() {
		return 128 + int(w.Signal()), fmt.Sprintf("was ended by signal %d (%v)", int(w.Signal()), w.Signal())
	}
	return p.ExitCode(), fmt.Sprintf("ended with exit code %d", p.ExitCode())
}
