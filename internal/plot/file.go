package plot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// File is a file for a figure. It is opened before there is something to draw, so that a name that cannot be written is
// found then. The file keeps what it has until Draw.
type File struct {
	path  string
	file  *os.File // nil: no picture, or it is done
	fresh bool     // the file was not there before
}

// OpenFile opens a file. An empty path is no picture. Errors begin with the path.
func OpenFile(path string) (*File, error) {
	f := &File{path: path}
	if path == "" {
		return f, nil
	}
	info, err := os.Stat(path)
	f.fresh = errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe would wait for its other end
		return nil, fmt.Errorf("%s: it is not a regular file", path)
	}
	if f.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
		return nil, fmt.Errorf("%s: %w", path, cause(err))
	}
	return f, nil
}

// cause is an error without the path, which the message has already.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// GiveUp closes the file if nothing has been drawn, and removes one that was not there before.
func (f *File) GiveUp() error {
	if f.file == nil {
		return nil
	}
	err := f.file.Close()
	f.file = nil
	if f.fresh {
		err = errors.Join(err, os.Remove(f.path))
	}
	return err
}

// Draw draws the figure in place of what the file had, and closes it. Errors begin with the path.
func (f *File) Draw(figure *Figure) error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	err := file.Truncate(0)
	if err == nil {
		err = figure.Write(file)
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, cause(err))
	}
	return nil
}
