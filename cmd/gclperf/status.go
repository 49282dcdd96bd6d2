package main

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

// status is standard error. On a terminal it has a line that says what is being measured, where that takes longer than
// quiet. Whatever else is printed, by it or by the output of measurements, takes the place of the line.
type status struct {
	to      io.Writer
	columns func() int  // of the terminal that to is; nil: to is none that can redraw a line
	timer   *time.Timer // until begin's line is shown; nil without one

	mu    sync.Mutex // guards what follows, and to
	what  string     // what is being measured, "" for nothing
	shown int        // characters of the line that stands there
}

func newStatus(to io.Writer) *status {
	s := &status{to: to}
	if t := command.TerminalOf(to); t != nil {
		s.columns = t.Columns
	}
	return s
}

// Write writes p in place of the line.
func (s *status) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	return s.to.Write(p)
}

// begin says what is being measured from now on, if it takes long. end must follow.
func (s *status) begin(what string) {
	if s.columns == nil {
		return
	}
	s.mu.Lock()
	s.what = what
	s.mu.Unlock()
	s.timer = time.AfterFunc(quiet, s.show)
}

// show writes the line, cut to one column less than there are: one that wraps cannot be wiped out.
func (s *status) show() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wipe()
	line := s.what[:min(len(s.what), max(s.columns()-1, 0))]
	fmt.Fprint(s.to, line)
	s.shown = len(line)
}

// end wipes out the line, so that standard output, which may be the same terminal, can be written.
func (s *status) end() {
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

func (s *status) wipe() {
	if s.shown > 0 {
		fmt.Fprintf(s.to, "\r%s\r", strings.Repeat(" ", s.shown))
		s.shown = 0
	}
}
