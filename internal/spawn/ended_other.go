//go:build !unix

package spawn

import (
	"fmt"
	"os"
)

// Ended describes the end of a process, and returns its exit code.
func Ended(p *os.ProcessState) (code int, how string) {
	return p.ExitCode(), fmt.Sprintf("ended with exit code %d", p.ExitCode())
}
