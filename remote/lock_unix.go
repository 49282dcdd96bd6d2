//go:build unix && !aix

package remote

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the file for this opening of it, until f is closed. taken says that another one has it.
func lock(f *os.File) (taken bool, err error) {
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

// syncDir makes the names in a directory outlast the machine.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
