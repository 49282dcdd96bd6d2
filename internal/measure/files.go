package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CheckWritable opens the file of a flag for writing, and leaves no new one behind.
func CheckWritable(flag, name string) error {
	if dir, err := os.Stat(filepath.Dir(name)); err != nil || !dir.IsDir() {
		return fmt.Errorf("%s %s: there is no such directory", flag, name)
	}
	mode := os.O_WRONLY | os.O_APPEND
	switch file, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		mode |= os.O_CREATE
	case err == nil && file.IsDir():
		return fmt.Errorf("%s %s is a directory, want a file", flag, name)
	case err == nil && !file.Mode().IsRegular():
		return nil // a pipe may wait for its reader
	}
	f, err := os.OpenFile(name, mode, 0o644)
	if err == nil {
		err = f.Close()
	}
	if err == nil && mode&os.O_CREATE != 0 {
		err = os.Remove(name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
