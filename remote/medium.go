package remote

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
)

// A medium is the access to a file's bytes from its beginning to the size it was given. No two calls of what touches
// the same bytes run at once, but for reads. What was written is there for who opens the file later, in the order of
// the calls, however the process ends; only sync makes it outlast the machine.
type medium interface {
	word(off int64) (uint64, error) // off is a multiple of 8, here and below
	setWord(off int64, w uint64) error
	read(off int64, dst []byte) error
	write(off int64, src []byte) error
	resize(size int64) error // the file has grown
	sync(off, n int64) error
	close() error // the file stays open
}

// A platform is what an operating system has to offer.
type platform struct {
	open func(f *os.File, size int64) (medium, error)
	// create makes a file of these bytes and locks it. Whoever finds the file finds all of them, if the system can do
	// that. The error is an fs.ErrExist when there is a file already.
	create func(path string, bytes []byte) (*os.File, error)
	// room is the error of a directory on whose disk there are not that many bytes free, as far as that is known.
	room func(dir string, bytes int64) error
	// reserve makes a file of from bytes one of to bytes, the new ones zeros for which there is room on the disk.
	reserve func(f *os.File, from, to int64) error
}

// plain needs nothing but files.
var plain = platform{
	open:    openPlain,
	create:  createPlain,
	room:    func(string, int64) error { return nil },
	reserve: writeZeros,
}

// createPlain makes a file of another name, which ends in .new, and then gives it a second name, so that no process
// that is killed leaves an empty file of the first, which would look like one that was cut. What it may leave is the
// other, which nobody reads. On a file system without second names it is createInPlace.
func createPlain(path string, bytes []byte) (*os.File, error) {
	other := fmt.Sprintf("%s.%d.new", path, rand.Uint32())
	f, err := createInPlace(other, bytes)
	if err != nil {
		if named, ok := errors.AsType[*fs.PathError](err); ok {
			named.Path = path // which the user knows
		}
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, errors.Join(err, os.Remove(other))
	}
	err = os.Link(other, path)
	if removed := os.Remove(other); removed != nil {
		return nil, removed
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return take(path, func() (*os.File, error) { return nil, fs.ErrNotExist }) // it was removed again
	}
	return createInPlace(path, bytes)
}

// createInPlace leaves an empty file where it is cut short.
func createInPlace(path string, bytes []byte) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	if err = lock(f); err == nil {
		_, err = f.WriteAt(bytes, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), os.Remove(path))
	}
	return f, nil
}

// plainMedium asks the operating system for every read and write.
type plainMedium struct{ f *os.File }

func openPlain(f *os.File, _ int64) (medium, error) { return plainMedium{f}, nil }

func (m plainMedium) word(off int64) (uint64, error) {
	var b [8]byte
	_, err := m.f.ReadAt(b[:], off)
	return binary.NativeEndian.Uint64(b[:]), err
}

func (m plainMedium) setWord(off int64, w uint64) error {
	var b [8]byte
	binary.NativeEndian.PutUint64(b[:], w)
	_, err := m.f.WriteAt(b[:], off)
	return err
}

func (m plainMedium) read(off int64, dst []byte) error {
	_, err := m.f.ReadAt(dst, off)
	return err
}

func (m plainMedium) write(off int64, src []byte) error {
	_, err := m.f.WriteAt(src, off)
	return err
}

func (m plainMedium) resize(int64) error      { return nil }
func (m plainMedium) sync(off, n int64) error { return m.f.Sync() }
func (m plainMedium) close() error            { return nil }

// writeZeros is a platform's reserve that works with every file system that does not compress.
func writeZeros(f *os.File, from, to int64) error {
	zeros := make([]byte, min(to-from, 1<<20))
	for from < to {
		n, err := f.WriteAt(zeros[:min(to-from, int64(len(zeros)))], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}
