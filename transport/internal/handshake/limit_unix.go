//go:build unix

package handshake

import (
	"fmt"
	"syscall"
)

// descriptorLimit says how many descriptors this process may have.
func descriptorLimit() string {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return ""
	}
	return fmt.Sprintf("its limit is %d, ", limit.Cur)
}
