// Package goroutine tells one goroutine from another, so that a lock can see that its holder asks for it again.
package goroutine

import (
	"bytes"
	"runtime"
	"strconv"
)

// ID is the number of the calling goroutine, as stack traces have it, or 0 if they no longer begin with one. It makes
// such a trace, which is too slow for every call of anything.
func ID() uint64 {
	var room [64]byte
	text := room[:runtime.Stack(room[:], false)]
	text, _ = bytes.CutPrefix(text, []byte("goroutine "))
	digits, _, _ := bytes.Cut(text, []byte(" "))
	id, err := strconv.ParseUint(string(digits), 10, 64)
	if err != nil {
		return 0
	}
	return id
}
