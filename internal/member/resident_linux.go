package member

import (
	"bytes"
	"os"
	"strconv"
)

// resident is how many bytes of memory the process has, of its own and shared; 0 if the system does not say.
func resident() int64 {
	text, err := os.ReadFile("/proc/self/statm") // pages in all, pages in memory, ...
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
