package osfile

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/windows"
)

// Lock takes the file for this opening of it, until f is closed. taken says that another one has it. What is locked is
// the last byte that a file could have, since others could not read what is locked.
func Lock(f *os.File) (taken bool, err error) {
	at := windows.Overlapped{Offset: math.MaxUint32 - 1, OffsetHigh: math.MaxInt32}
	err = windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY,
		0, 1, 0, &at)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return true, nil
	}
	return false, err
}

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }
