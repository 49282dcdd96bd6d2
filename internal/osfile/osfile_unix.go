//go:build unix && !aix

package osfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Lock takes the file for this opening of it, until f is closed. taken says that another one has it.
func Lock(f *os.File) (taken bool, err error) {
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err != unix.EINTR {
			break
		}
	}
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// SyncDir makes the names in a directory outlast the machine. On a file system that says EINVAL, which is that it
// cannot (/proc and automounters do), it does nothing.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
