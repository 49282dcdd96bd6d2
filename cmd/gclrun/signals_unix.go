//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// passedOn are the signals that replicas get when gclrun does. They lead process groups of their own, so Ctrl-C on the
// terminal reaches gclrun alone, and each replica once, from gclrun. SIGTSTP is not among them: Ctrl-Z stops gclrun
// only, and replicas go on until they wait for room in a pipe.
var passedOn = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1,
	syscall.SIGUSR2}

// asksForEnd reports whether replicas that get a signal are to end, as far as gclrun can know.
func asksForEnd(s syscall.Signal) bool { return s != syscall.SIGUSR1 && s != syscall.SIGUSR2 }

// listen begins to collect the signals to pass on. A signal that is ignored, as nohup does, stays so, also in replicas.
// A closed pipe at an output of gclrun becomes an error of Write.
func listen() <-chan os.Signal {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // nobody receives: the write's error says it
	signals := make(chan os.Signal, 64)
	for _, s := range passedOn {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
	return signals
}

// ignoreTerminalInput turns reading from the terminal in the background into an error, where it would stop gclrun.
// Replicas that are started later inherit that.
func ignoreTerminalInput() { signal.Ignore(syscall.SIGTTIN) }

// signal sends s to the replica's process group.
func (r *replica) signal(s os.Signal) {
	if !r.gone {
		_ = syscall.Kill(-r.cmd.Process.Pid, s.(syscall.Signal)) // fails when the group has just ended
	}
}

// groupGone tells after the end of the replica's process whether its group has ended too. If it has, the system may use
// its number again, and no signal may be sent to it any more.
func (r *replica) groupGone() bool { return syscall.Kill(-r.cmd.Process.Pid, 0) != nil }
