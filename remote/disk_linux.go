package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// createWhole makes a file without a name, writes it, and then gives it the name, so that no process that is killed
// leaves an empty file, which would look like one that was cut. On a file system that has no files without names it is
// createPlain.
func createWhole(path string, bytes []byte) (*os.File, error) {
	fd, err := unix.Open(filepath.Dir(path), unix.O_TMPFILE|unix.O_RDWR|unix.O_CLOEXEC, 0o666)
	if err != nil {
		return createPlain(path, bytes) // its error names the file
	}
	f := os.NewFile(uintptr(fd), path)
	if err = lock(f); err == nil {
		_, err = f.WriteAt(bytes, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	err = unix.Linkat(unix.AT_FDCWD, fmt.Sprintf("/proc/self/fd/%d", fd), unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, fs.ErrExist):
		return nil, errors.Join(&fs.PathError{Op: "link", Path: path, Err: err}, f.Close())
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	return createPlain(path, bytes)
}

// roomOnDisk asks the file system. One that knows no size of itself has room as far as is known.
func roomOnDisk(dir string, bytes int64) error {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil || s.Blocks == 0 || s.Bsize <= 0 {
		return nil
	}
	blocks := s.Bavail
	if os.Geteuid() == 0 {
		blocks = s.Bfree // root may take the reserve
	}
	if free := blocks * uint64(s.Bsize); uint64(bytes) > free {
		return noRoom(uint64(bytes), free)
	}
	return nil
}

func noRoom(need, free uint64) error {
	return fmt.Errorf("%d bytes more are needed, and its disk has %d free: %w", need, free, unix.ENOSPC)
}
