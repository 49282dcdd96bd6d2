package checkpoint

import (
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"slices"
	"syscall"

	"gogcl.dev/internal/safetensors"
)

// mostOpen is how many files of shards a Load has open at once: more than a checkpoint of most has, and few beside the
// 1,024 descriptors that systems give a process that does not ask for more.
const mostOpen = 64

// source is an open file.
type source interface {
	io.ReaderAt
	io.Closer
}

// opener opens a file and says how long it is.
type opener func(path string) (source, int64, error)

// vanished is the error of a file that is not there, or no longer: a Save may have removed it.
type vanished struct{ error }

func (v vanished) Unwrap() error { return v.error }

// existing opens a file. Its error is vanished where there is none.
func (o opener) existing(path string) (source, int64, error) {
	f, size, err := o(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = vanished{err}
	}
	return f, size, err
}

// files are those of a checkpoint. Each is opened when it is read; those read last stay open.
type files struct {
	opener opener
	most   int     // open at once, at least 1
	open   []*file // the one read last at the end
}

// file is a file with shards.
type file struct {
	among *files
	path  string
	f     source // nil unless it is among those that are open
	size  int64  // when it was opened last
	in    *safetensors.File
	sum   uint32 // crc32c of what has been read since it was set to 0
}

// ReadAt is how package safetensors reads.
func (f *file) ReadAt(b []byte, off int64) (int, error) {
	if err := f.among.use(f); err != nil {
		return 0, err
	}
	n, err := f.f.ReadAt(b, off)
	f.sum = crc32.Update(f.sum, castagnoli, b[:n])
	return n, err
}

// use makes f the last one read and opens it, unless it is open. Where there are as many open as may be, or the process
// has no descriptor left, it closes the one whose reading was longest ago.
func (s *files) use(f *file) error {
	if n := len(s.open); n > 0 && s.open[n-1] == f {
		return nil
	}
	if f.f != nil {
		s.open = append(slices.DeleteFunc(s.open, func(o *file) bool { return o == f }), f)
		return nil
	}
	for {
		for len(s.open) >= s.most {
			if err := s.closeFirst(); err != nil {
				return err
			}
		}
		var err error
		f.f, f.size, err = s.opener.existing(f.path)
		switch {
		case err == nil:
			s.open = append(s.open, f)
			return nil
		case !errors.Is(err, syscall.EMFILE) || len(s.open) == 0:
			f.f = nil
			return err
		}
		s.most = len(s.open)
	}
}

// closeFirst closes the file whose reading was longest ago.
func (s *files) closeFirst() error {
	f := s.open[0]
	s.open = slices.Delete(s.open, 0, 1)
	err := f.f.Close()
	f.f = nil
	return inFile(f.path, err)
}

// close closes all that are open.
func (s *files) close() error {
	var err error
	for len(s.open) > 0 {
		err = errors.Join(err, s.closeFirst())
	}
	return err
}
