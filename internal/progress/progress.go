// Package progress prints how far a program has come: lines that stay, and a status that on a terminal is redrawn in
// place.
package progress

import (
	"fmt"
	"io"

	"gogcl.dev/internal/command"
)

// Printer prints lines. On a terminal a status overwrites the status before it. It is used by one goroutine at a time.
type Printer struct {
	w       io.Writer
	columns func() int // of the terminal; nil: w is none that can redraw a line
	width   int        // of the status that stands on the terminal, without a newline; 0 if there is none
	err     error
}

// New makes a Printer that prints to w.
func New(w io.Writer) *Printer {
	p := &Printer{w: w}
	if t := command.TerminalOf(w); t != nil {
		p.columns = t.Columns
	}
	return p
}

// Status shows a line of ASCII that the next status may replace. On a terminal the line is cut to one column less than
// there are: a line that wraps cannot be overwritten.
func (p *Printer) Status(line string) {
	if p.columns == nil {
		p.Line(line)
		return
	}
	room := max(p.columns()-1, 0)
	line = line[:min(len(line), room)]
	p.print(fmt.Sprintf("\r%-*s", min(p.width, room), line)) // spaces wipe out what is left of a longer one
	p.width = min(max(p.width, len(line)), room)
}

// Line prints a line that stays. The status before it stays too.
func (p *Printer) Line(line string) {
	p.Close()
	p.print(line + "\n")
}

// Close ends the line of a status. The Printer may still be used.
func (p *Printer) Close() {
	if p.width > 0 {
		p.width = 0
		p.print("\n")
	}
}

// Err is the first error of a write. After it nothing is written.
func (p *Printer) Err() error { return p.err }

// print writes s, unless an earlier write failed.
func (p *Printer) print(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}
