//go:build unix

package flight

import (
	"os"
	"syscall"
	"time"
)

// The signals that print the dump. nil: the system has none.
var (
	quitSignal os.Signal = syscall.SIGQUIT
	userSignal os.Signal = syscall.SIGUSR1
)

// raiseQuit sends SIGQUIT to this process.
func raiseQuit() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGQUIT) } // which a process may always do

// inBubble reports whether the caller is in a bubble of testing/synctest, whose time is not the system's. A goroutine
// that waits for a signal would keep the bubble from going on.
func inBubble() bool {
	var t syscall.Timeval
	if syscall.Gettimeofday(&t) != nil {
		return false
	}
	return time.Until(time.Unix(t.Unix())).Abs() > 24*time.Hour
}
