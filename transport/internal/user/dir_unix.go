//go:build unix

package user

import (
	"fmt"
	"os"
	"syscall"
)

// CheckDir refuses a directory that is not this process's user's, or that others may write to.
func CheckDir(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch own := os.Geteuid(); {
	case !ok:
		return fmt.Errorf("nobody knows whose %s is: give all replicas a secret", path)
	case !info.IsDir():
		return fmt.Errorf("%s is no directory", path)
	case stat.Uid != uint32(own):
		return fmt.Errorf("%s is of user %d, this process of user %d: remove it, or give all replicas a secret",
			path, stat.Uid, own)
	case info.Mode().Perm()&0o022 != 0:
		return fmt.Errorf("others may write to %s (%v): remove it, or give all replicas a secret", path, info.Mode())
	}
	return nil
}

// CheckParent refuses a directory in which others could put another directory in the place of one of this process's
// user: one to which all may write, without the sticky bit.
func CheckParent(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		return fmt.Errorf("all users may write to %s: use another directory, or give all replicas a secret", path)
	}
	return err
}
