// Package fulldisk is for tests of what writes to somewhere that has no room left.
package fulldisk

import "errors"

// Err is the error of what does not fit.
var Err = errors.New("disk full")

// Writer takes so many writes and refuses the rest.
type Writer struct{ Room int }

func (w *Writer) Write(p []byte) (int, error) {
	if w.Room <= 0 {
		return 0, Err
	}
	w.Room--
	return len(p), nil
}
