package flight

import (
	"iter"
	"slices"
	"sync"
	"weak"
)

// process has the recorders of the communicators of this process that have an open connection, in the order in which
// they came. It keeps none of them: of a communicator that nobody has closed, and nobody has any more, nothing is left.
var process struct {
	mu  sync.Mutex // guards all
	all []weak.Pointer[Recorders]
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

// enter is called with the first connection of recorders, and leave after the last.
func (s *Recorders) enter() {
	process.mu.Lock()
	defer process.mu.Unlock()
	process.all = slices.DeleteFunc(process.all, func(p weak.Pointer[Recorders]) bool { return p.Value() == nil })
	process.all = append(process.all, weak.Make(s))
}

func (s *Recorders) leave() {
	process.mu.Lock()
	defer process.mu.Unlock()
	own := weak.Make(s)
	process.all = slices.DeleteFunc(process.all, func(p weak.Pointer[Recorders]) bool { return p == own })
}
