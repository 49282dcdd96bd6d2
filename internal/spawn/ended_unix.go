//go:build unix

package spawn

import (
	"os"
	"syscall"
)

// Ended is how a process has ended.
func Ended(p *os.ProcessState) End {
	if w := p.Sys().(syscall.WaitStatus); w.Signaled() {
		return End{Code: 128 + int(w.Signal()), Signal: w.Signal()}
	}
	return End{Code: p.ExitCode()}
}
