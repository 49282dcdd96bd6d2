//go:build !unix

package spawn

import "os"

// Ended is how a process has ended.
func Ended(p *os.ProcessState) End { return End{Code: p.ExitCode()} }
