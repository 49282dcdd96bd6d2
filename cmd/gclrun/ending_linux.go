package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// isEnding reports whether the kernel is ending a process, a child that has not been waited for: it has closed, or is
// about to close, what the process had open.
func isEnding(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	// The name, in brackets, may have spaces and brackets in it.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	const flags, exiting = 9 - 3, 0x4 // the third field is the first one behind the name; PF_EXITING
	if len(fields) <= flags {
		return false
	}
	n, err := strconv.ParseUint(string(fields[flags]), 10, 64)
	return err == nil && n&exiting != 0
}
