package main

import (
	"fmt"
	"io"
	"os"
)

// progress prints lines. On a terminal a status overwrites the status before it.
type progress struct {
	w     io.Writer
	live  bool // w is a terminal
	width int  // of the status that stands on the terminal, without a newline; 0 if there is none
	err   error
}

// newProgress makes a progress that prints to w.
func newProgress(w io.Writer) *progress {
	return &progress{w: w, live: isTerminal(w)}
}

// isTerminal reports whether w is a character device.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// status shows a line that the next status may replace.
func (p *progress) status(line string) {
	if !p.live {
		p.line(line)
		return
	}
	p.print(fmt.Sprintf("\r%-*s", p.width, line)) // spaces wipe out what is left of a longer one
	p.width = max(p.width, len(line))
}

// line prints a line that stays. The status before it stays too.
func (p *progress) line(line string) {
	p.close()
	p.print(line + "\n")
}

// close ends the line of a status.
func (p *progress) close() {
	if p.width > 0 {
		p.width = 0
		p.print("\n")
	}
}

// print writes s, unless an earlier write failed. The first error stays in p.err.
func (p *progress) print(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}
