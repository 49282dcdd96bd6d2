//go:build unix

package gcl

import (
	"fmt"
	"io/fs"
	"syscall"
)

// exposure says who else than a user knows what is in a file, or nil. Root does always. A file of root's
// may be one for a group: that is how a volume of Kubernetes gives a secret to a user.
func exposure(name string, info fs.FileInfo, user int) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	others := fs.FileMode(0o077)
	switch {
	case !ok:
		return fmt.Errorf("nobody knows whose %s is", name)
	case stat.Uid != uint32(user) && stat.Uid != 0:
		return fmt.Errorf("%s is of user %d, and this process of user %d: want a file of its own user, or of root's",
			name, stat.Uid, user)
	case stat.Uid != uint32(user):
		others = 0o037
	}
	if info.Mode().Perm()&others != 0 {
		return fmt.Errorf("others may read or write %s (%v): chmod 600 it", name, info.Mode())
	}
	return nil
}
