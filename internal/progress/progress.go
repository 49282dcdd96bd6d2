// Package progress prints how far a program has come: lines that stay, and a status that on a terminal is redrawn in
// place.
package progress

import (
	"fmt"
	"io"
	"os"
)

// Printer prints lines. On a terminal a status overwrites the status before it. It is used by one goroutine at a time.
type Printer struct {
	w     io.Writer
	live  bool // w is a terminal
	width int  // of the status that stands on the terminal, without a newline; 0 if there is none
	err   error
}

// New makes a Printer that prints to w.
func New(w io.Writer) *Printer {
	return &Printer{w: w, live: isTerminal(w)}
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

// Status shows a line that the next status may replace.
func (p *Printer) Status(line string) {
	if !p.live {
		p.Line(line)
		return
	}
	p.print(fmt.Sprintf("\r%-*s", p.width, line)) // spaces wipe out what is left of a longer one
	p.width = max(p.width, len(line))
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
