package flight

import (
	"iter"
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

	later   *time.Timer // of the next lookAfterQuit, while quit is not nil
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
	if s.quits = quitSignal != nil && !s.noQuit && !inBubble(); s.quits && process.quit == nil {
		if process.quit = listenToQuit(); process.quit != nil {
			process.later = time.AfterFunc(quitLook, lookAfterQuit)
		}
	}
}

func (s *Recorders) leave() {
	process.mu.Lock()
	defer process.mu.Unlock()
	own := weak.Make(s)
	process.all = slices.DeleteFunc(process.all, func(p weak.Pointer[Recorders]) bool { return p == own })
	if s.quits && process.quit != nil {
		process.later.Reset(quitStays)
	}
}

// quitStays is how long SIGQUIT is listened to after a communicator was closed, unless one is open: to listen and to
// stop it takes 0.15 ms, five times as long as to open a communicator and to close it.
const quitStays = 100 * time.Millisecond

// quitLook is how often communicators are looked for that nobody has closed, and nobody has any more.
const quitLook = time.Second

// lookAfterQuit ends the listening to SIGQUIT if nobody is left who asks for it.
func lookAfterQuit() {
	process.mu.Lock()
	defer process.mu.Unlock()
	for _, p := range process.all {
		if s := p.Value(); s != nil && s.quits {
			process.later.Reset(quitLook)
			return
		}
	}
	process.quit.stop() // nil: two looks have met
	process.quit = nil
}
