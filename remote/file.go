package remote

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"gogcl.dev/internal/osfile"
)

// file keeps entries in a file.
type file struct {
	platform platform
	f        *os.File // closed last, which gives up the lock
	medium   medium
	head     header           // the newest one in the file
	first    uint32           // checksum of what the file is: see firstSum
	mu       sync.Mutex       // guards missing
	missing  map[int]struct{} // the entries known to be lost
}

// openFile opens a file that is locked already, whose header is there. It is the owner of f, unless it returns an
// error.
func openFile(f *os.File, p platform, spec Spec, bytes int) (*file, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file")
	case info.Size() == 0:
		return nil, errors.New("it is empty: what was stored in it is lost, if anything was; " + anew)
	}
	head := make([]byte, min(info.Size(), headBytes))
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	k := &file{platform: p, f: f, first: firstSum(spec), missing: map[int]struct{}{}}
	if k.head, err = parseHead(head, info.Size()); err != nil {
		return nil, err
	}
	if k.head.spec.Entries == 0 {
		if err := k.make(spec, bytes); err != nil {
			return nil, err
		}
		return k, nil
	}
	if err := differs(k.head.spec, spec); err != nil {
		return nil, err
	}
	if k.medium, err = p.open(f, k.size()); err != nil {
		return nil, err
	}
	err = k.readRows(spec.Names)
	if err == nil && k.head.open {
		k.scan()
	}
	if err == nil {
		err = k.setHead(k.head.spec.Entries, true)
	}
	if err == nil {
		err = k.setTags(spec.Names[:min(len(spec.Names), k.head.spec.Entries)])
	}
	if err == nil && k.head.spec.Entries < spec.Entries {
		err = k.extend(spec.Entries, spec.Names)
	}
	if err != nil {
		return nil, errors.Join(err, k.medium.close())
	}
	return k, nil
}

// firstHead is the header of a file in which nothing is, and page its first headBytes. Cut short later, the making
// leaves a file with such a header, from which the next begins again.
func firstHead(spec Spec, bytes int) (h header, page []byte, err error) {
	spec.Entries, spec.Names = 0, nil
	h = header{spec: spec, bytes: bytes, seq: 2, open: true}
	page, err = h.page()
	return h, append(page, make([]byte, headBytes-len(page))...), err
}

// make grows a file in whose header there are no entries, which may be one that was to hold something else.
func (k *file) make(spec Spec, bytes int) error {
	head, page, err := firstHead(spec, bytes)
	if err != nil {
		return err
	}
	if was := k.head.spec; differs(was, head.spec) != nil {
		if _, err := k.f.WriteAt(page, 0); err != nil {
			return err
		}
	}
	k.head = head
	if err := osfile.SyncDir(filepath.Dir(k.f.Name())); err != nil {
		return err
	}
	if k.medium, err = k.platform.open(k.f, headBytes); err != nil {
		return err
	}
	if err := k.extend(spec.Entries, spec.Names); err != nil {
		return errors.Join(err, k.medium.close())
	}
	return nil
}

// setHead writes the next header over the one before the newest, and waits until it is on the disk, so that a damaged
// header cannot hide that anything was stored under it.
func (k *file) setHead(entries int, open bool) error {
	next := k.head
	next.seq++
	next.spec.Entries, next.open = entries, open
	page, err := next.page()
	if err != nil {
		return err
	}
	if err := k.medium.write(int64(next.seq%2)*pageBytes, page); err != nil {
		return err
	}
	if err := k.medium.sync(0, headBytes); err != nil {
		return err
	}
	k.head = next
	return nil
}

// size of the file by its header. That it is a number was seen when the header was made.
func (k *file) size() int64 {
	size, _ := fileBytes(k.head.bytes, k.head.spec.Entries)
	return size
}

// grow reserves first and writes the header last. Cut short before that, the file is only longer than it says, and the
// next grow begins by cutting it.
func (k *file) grow(entries int) error { return inFile(k.f.Name(), k.extend(entries, nil)) }

// extend is grow with the names of those who have the entries, new ones too.
func (k *file) extend(entries int, names []string) error {
	want, err := fileBytes(k.head.bytes, entries)
	if err != nil {
		return err
	}
	from := k.size()
	if err := k.f.Truncate(from); err != nil {
		return err
	}
	if want > from { // it may be less, after a grow whose second header failed
		err = k.platform.room(filepath.Dir(k.f.Name()), want-from)
		if err == nil {
			err = k.platform.reserve(k.f, from, want)
		}
	}
	if err == nil {
		err = k.medium.resize(want)
	}
	if err == nil {
		err = k.writeRows(k.head.spec.Entries, entries, names)
	}
	if err == nil {
		err = k.f.Sync()
	}
	if err != nil {
		return errors.Join(err, k.f.Truncate(from))
	}
	// Twice, for both pages: if one is damaged later, the other knows all entries too.
	if err := k.setHead(entries, true); err != nil {
		return err
	}
	return k.setHead(entries, true)
}

// inFile names the file, unless err does.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return err
	}
	return fmt.Errorf("file %s: %w", path, err)
}

func (k *file) lost() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Sorted(maps.Keys(k.missing))
}

func (k *file) sync() error { return inFile(k.f.Name(), k.medium.sync(0, k.size())) }

// close says in the header that all is well, if it is: the next opening believes it and scans nothing.
func (k *file) close() error {
	err := k.medium.sync(0, k.size())
	if err == nil && len(k.missing) == 0 {
		err = k.setHead(k.head.spec.Entries, false)
	}
	return inFile(k.f.Name(), errors.Join(err, k.medium.close(), k.f.Close()))
}
