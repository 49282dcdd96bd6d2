//go:build unix

package tcp

import (
	"fmt"
	"os"
	"syscall"

	"gogcl.dev/transport/internal/handshake"
)

// besides is how many descriptors a replica needs beside its control connections: some for what its lanes wait with,
// one to spare for each listener, and for a first connection.
const besides = 8

// checkDescriptors says that this process cannot open the connections of a job of size replicas: all are to hear that
// before they connect, since some of them could not be told afterwards. nil: it can, or nobody knows.
func checkDescriptors(size int, over Network) error {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return nil
	}
	open, err := os.ReadDir("/dev/fd")
	if short := handshake.Shortage(err); short != nil {
		return short
	}
	has := len(open) - 1 // that of the folder is closed again
	each := 1
	if over.memory() { // that of its bell
		each = 2
	}
	if want := each*(size-1) + besides; err == nil && uint64(has+want) > uint64(limit.Cur) {
		return fmt.Errorf("process %d has %d files open, a job of %d replicas wants %d more, and its limit is %d "+
			"(RLIMIT_NOFILE): raise it by ulimit -n, or have it open fewer files", os.Getpid(), has, size, want, limit.Cur)
	}
	return nil
}
