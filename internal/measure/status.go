package measure

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"gogcl.dev/internal/command"
)

// quiet is for how long a measurement says nothing.
const quiet = time.Second

// Status is standard error. On a terminal it has a line that says what is being measured, where that takes longer than
// quiet. Whatever else is printed, by it or by the output of measurements, takes the place of the line.
type Status struct {
	to      io.Writer
	columns func() int  // of the terminal that to is; nil: to is none that can redraw a line
	timer   *time.Timer // until Begin's line is shown; nil without one

	mu    sync.Mutex // guards what follows, and to
	what  string     // what is being measured, "" for nothing
	shown int        // characters of the line that stands there
}

func NewStatus(to io.Writer) *Status {
	s := &Status{to: to}
	if t := command.TerminalOf(to); t != nil {
		s.columns = t.Columns
	}
	return s
}

// Write writes p in place of the line.
func (s *Status) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.to.Write(p)
}

// Begin says what is being measured from now on, if it takes long. End must follow.
func (s *Status) Begin(what string) {
	if s.columns == nil {
		return
	}
	s.mu.Lock()
	s.what = what
	s.mu.Unlock()
	s.timer = time.AfterFunc(quiet, s.show)
}

// show writes the line, cut to one column less than there are: one that wraps cannot be wiped out.
func (s *Status) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	line := s.what[:min(len(s.what), max(s.columns()-1, 0))]
	fmt.Fprint(s.to, line)
	s.shown = len(line)
}

// End wipes out the line, so that standard output, which may be the same terminal, can be written.
func (s *Status) End() {
	if s.timer == nil {
		return
	}
	s.timer.Stop()
	s.timer = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	s.what = "" // for a show that has begun
	s.wipe()
}

func (s *Status) wipe() {
	if s.shown > 0 {
		fmt.Fprintf(s.to, "\r%s\r", strings.Repeat(" ", s.shown))
		s.shown = 0
	}
}
