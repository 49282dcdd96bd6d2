package flight

import (
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"
	"weak"
)

// process has the recorders of the communicators of this process that have an open connection, in the order in which
// they came. It keeps none of them: of a communicator that nobody has closed, and nobody has any more, nothing is left.
var process struct {
	mu  sync.Mutex // guards what follows
	all []weak.Pointer[Recorders]

	later   *time.Timer // for quit, since the first of all came that has quits; nil: none has come since
	quit    *listener   // of SIGQUIT; nil: there is none
	handled bool        // the process has outlived a SIGQUIT: the program handles it itself

	users int       // calls of DumpOnUserSignal that have not been stopped
	user  *listener // of SIGUSR1; nil: there is none
}

// Open are the recorders of the communicators of this process that have an open connection, the oldest first.
func Open() iter.Seq[*Recorders] {
	process.mu.Lock()
	all := slices.Clone(process.all)
	process.mu.Unlock()
	return func(yield func(*Recorders) bool) {
		for _, p := range all {
			if s := p.Value(); s != nil && !yield(s) {
				return
			}
		}
	}
}

// enter is called with the first connection of recorders, and leave after the last. The caller holds s.mu.
func (s *Recorders) enter() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.all = slices.DeleteFunc(process.all, func(p weak.Pointer[Recorders]) bool { return p.Value() == nil })
	process.all = append(process.all, weak.Make(s))
	s.quits = quitSignal != nil && !s.noQuit && !inBubble()
	switch {
	case !s.quits:
	case process.quit != nil:
		s.leaveWhenDropped()
	case process.later == nil:
		process.later = time.AfterFunc(quitDelay, quitLater)
	}
}

// leave returns a function that waits for a dump of SIGQUIT that goes on. The caller holds s.mu, and calls it without.
func (s *Recorders) leave() (wait func()) {
	process.mu.Lock()
	defer process.mu.Unlock()
	own := weak.Make(s)
	process.all = slices.DeleteFunc(process.all, func(p weak.Pointer[Recorders]) bool { return p == own })
	return leaveQuit().wait
}

// quitDelay is how long a communicator must have been open for SIGQUIT to print the dump: to listen and to stop it
// takes 0.15 ms, five times as long as to open a communicator and to close it.
const quitDelay = 100 * time.Millisecond

// quitLater begins to listen to SIGQUIT.
func quitLater() {
	process.mu.Lock()
	defer process.mu.Unlock()
	if process.quit != nil || process.later == nil {
		return
	}
	process.quit = listenToQuit()
	for _, p := range process.all {
		if s := p.Value(); s != nil && s.quits {
			s.leaveWhenDropped()
		}
	}
	leaveQuit()
}

// leaveWhenDropped has leaveQuit called when nobody has the recorders any more.
func (s *Recorders) leaveWhenDropped() {
	runtime.AddCleanup(s, func(struct{}) {
		process.mu.Lock()
		defer process.mu.Unlock()
		leaveQuit()
	}, struct{}{})
}

// leaveQuit ends the listening to SIGQUIT if nobody is left who asks for it, and returns the listener that was, or nil.
// The caller holds process.mu.
func leaveQuit() *listener {
	for _, p := range process.all {
		if s := p.Value(); s != nil && s.quits {
			return nil
		}
	}
	if process.later == nil {
		return nil
	}
	process.later.Stop()
	l := process.quit
	process.later, process.quit = nil, nil
	l.stop()
	return l
}
