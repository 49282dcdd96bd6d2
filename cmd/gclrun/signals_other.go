//go:build !unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// asksForEnd reports whether replicas that get a signal are to end.
func asksForEnd(syscall.Signal) bool { return true }

// listen begins to collect interrupts. The console sends Ctrl-C to the replicas too, so there is nothing to pass on.
func listen() <-chan os.Signal {
	signals := make(chan os.Signal, 64)
	signal.Notify(signals, os.Interrupt)
	return signals
}

func ignoreTerminalInput() {}

// signal can only kill here. Asked to end a replica gently, it does nothing.
func (r *replica) signal(s os.Signal) {
	if s == os.Kill && !r.gone {
		_ = r.cmd.Process.Kill() // fails when it has just ended
	}
}

// groupGone is true: a process is alone here.
func (r *replica) groupGone() bool { return true }
