package command

import (
	"io"
	"os"
)

// Terminal is a terminal on which a line can be redrawn in place.
type Terminal struct{ file *os.File }

// TerminalOf returns the terminal that w writes to, or nil if it writes elsewhere. A terminal that cannot go back to
// the begin of a line, as TERM=dumb says of it, counts as none. So does one without a width: mpirun has the output of
// its processes go through one, whatever becomes of it then.
func TerminalOf(w io.Writer) *Terminal {
	var file *os.File
	switch w := w.(type) {
	case *os.File:
		file = w
	case *output:
		file = w.file
	default:
		return nil
	}
	if os.Getenv("TERM") == "dumb" {
		return nil
	}
	if n, ok := columns(file); !ok || n == 0 {
		return nil
	}
	return &Terminal{file}
}

// usualColumns is the width of a terminal that no longer knows its own.
const usualColumns = 80

// Columns is how many characters a line has now: the window may have been made wider or narrower.
func (t *Terminal) Columns() int {
	if n, ok := columns(t.file); ok && n > 0 {
		return n
	}
	return usualColumns
}
