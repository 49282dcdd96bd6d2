package gcl

import (
	"sync"

	"gogcl.dev/gcl/internal/flight"
)

// DumpOnSignal has SIGUSR1 print to standard error what Comm.Dump says of every open communicator of this process, and
// the program goes on:
//
//	defer gcl.DumpOnSignal()()
//
// Replicas of other processes are asked, for a second at most, and what they say follows; one that does not answer is
// named as silent. It may be called several times: SIGUSR1 prints once, until each stop has been called. stop waits for
// a dump that goes on. A program that listens to SIGUSR1 too gets it as well.
//
// On systems without the signal, as Windows, Plan 9 and in WebAssembly, it does nothing, nor in a bubble of
// testing/synctest.
func DumpOnSignal() (stop func()) { return sync.OnceFunc(flight.DumpOnUserSignal()) }

// WithDumpOnQuit says whether SIGQUIT prints the dump of DumpOnSignal while this communicator is open. Without the
// option it does, on systems that have the signal. After the dump the process ends as without gcl: with the stacks of
// its goroutines and exit code 2. A second SIGQUIT does not wait for the dump, and SIGABRT has the stacks alone at
// once.
//
// A program that ignores SIGQUIT by signal.Ignore goes on ignoring it. Package os/signal does not say whether a program
// listens to SIGQUIT itself. One that does gets the first SIGQUIT twice, the second time after the dump, and later ones
// once: it wants WithDumpOnQuit(false), with which it gets each once. As long as any communicator of the process is
// open without that, SIGQUIT prints the dump of all. Of communicators that share their transport's memory the first one
// made decides for all. In a bubble of testing/synctest there is no dump.
func WithDumpOnQuit(on bool) CommOption { return func(c *config) { c.noQuit = !on } }
