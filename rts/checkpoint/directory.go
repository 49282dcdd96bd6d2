package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"gogcl.dev/internal/osfile"
	"gogcl.dev/ir"
)

// ErrInUse is the error of Open, and of Save, when somebody else has the directory open: another process, or another
// Directory of this one.
var ErrInUse = errors.New("the directory is in use: somebody else has it open to save to it")

// closedError is the error of a Directory after Close, and an fs.ErrClosed.
type closedError struct{}

func (closedError) Error() string { return "the Directory is closed: Open it anew" }
func (closedError) Unwrap() error { return fs.ErrClosed }

// Directory is a directory of checkpoints that nobody else saves to, from Open to Close. Its methods may be called from
// several goroutines, but there is one Save at a time: the other is an error.
type Directory struct {
	dir  string
	lock *os.File // nil: replica 0 of job has it
	job  ir.Job   // nil: there is but this process

	mu     sync.Mutex // guards what follows
	saving bool
	closed bool
}

// Open makes a directory, unless there is one, but not the directory that is to hold it, and keeps all others from
// saving to it until Close (on systems without file locks the user must see to that). Those who only load need no Open:
// see the function Load. Open removes what a crash has left over.
//
// It finds what would make each Save fail: errors are ErrInUse, that dir is no directory, and that nothing can be made
// in it or removed.
func Open(dir string) (*Directory, error) { return openSyncing(dir, osfile.SyncDir) }

// openSyncing is Open with the function that makes the names in a directory outlast the machine.
func openSyncing(dir string, syncDir func(dir string) error) (*Directory, error) {
	d, err := openDirectory(dir, syncDir)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: open %s: %w", dir, err)
	}
	return d, nil
}

func openDirectory(dir string, syncDir func(dir string) error) (*Directory, error) {
	d, beside, err := openShowing(dir, syncDir)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(beside); err != nil {
		return nil, errors.Join(err, d.lock.Close())
	}
	return d, nil
}

// openShowing opens a directory and leaves in it the directory in which the next checkpoint begins.
func openShowing(dir string, syncDir func(dir string) error) (_ *Directory, beside string, err error) {
	if dir == "" {
		return nil, "", errNoName
	}
	if err := makeDirectory(dir, syncDir); err != nil {
		return nil, "", err
	}
	path := filepath.Join(dir, lockName)
	lock, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, "", err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, lock.Close())
		}
	}()
	taken, err := osfile.Lock(lock)
	if taken {
		err = ErrInUse
	}
	if err != nil {
		return nil, "", inFile(path, err)
	}
	d := &Directory{dir: dir, lock: lock}
	// What Save begins with shows whether it can: the lock could be had in a directory that cannot be written to.
	if _, beside, err = d.beside(); err != nil {
		return nil, "", err
	}
	return d, beside, nil
}

var errNoName = errors.New("the directory has no name")

// makeDirectory makes a directory unless there is one, and its name outlasts the machine, whoever has made it: what is
// synced is what the system has for its "..", so that a slash at the end of dir, or dir being "." or a symbolic link,
// makes no difference. Who may not read that one cannot sync it; then
// the directory is one that was there before.
func makeDirectory(dir string, syncDir func(dir string) error) error {
	mkdirErr := os.Mkdir(dir, 0o777)
	if mkdirErr != nil && !errors.Is(mkdirErr, fs.ErrExist) {
		return mkdirErr
	}
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return errors.New("it is not a directory")
	}
	err = syncDir(dir + string(filepath.Separator) + "..") // filepath.Join would make "c" of "c/d/..", link or not
	switch {
	case err != nil && mkdirErr == nil:
		return errors.Join(err, os.Remove(dir))
	case errors.Is(err, fs.ErrPermission):
		return nil
	}
	return err
}

// beside removes what is left over, and makes the directory in which the next checkpoint begins.
func (d *Directory) beside() (number int, path string, err error) {
	if number, err = clean(d.dir); err != nil {
		return 0, "", err
	}
	path = entry{kind: saving, number: number}.path(d.dir)
	return number, path, os.Mkdir(path, 0o777)
}

var (
	errNoContext   = errors.New("nil context")
	errNoDirectory = errors.New("no directory: Open opens one")
)

// name is the directory's for an error.
func (d *Directory) name() string {
	if d == nil || d.dir == "" {
		return "a nil Directory"
	}
	return d.dir
}

// begin is the beginning of a method.
func (d *Directory) begin(save bool) error {
	if d == nil || d.dir == "" {
		return errNoDirectory
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return closedError{}
	}
	if save && d.saving {
		return errors.New("another Save is at work in this directory")
	}
	d.saving = d.saving || save
	return nil
}

// Save saves a checkpoint as the function Save does.
func (d *Directory) Save(ctx context.Context, tensors []Tensor, meta map[string]string, options ...SaveOption) error {
	if d == nil || d.dir == "" {
		return saveError(d.name(), errNoDirectory)
	}
	return saveError(d.dir, func() error {
		if d.job != nil {
			return d.saveTogether(ctx, tensors, meta, options)
		}
		p, err := prepare(ctx, d.dir, tensors, meta, options)
		if err != nil {
			return err
		}
		return d.save(ctx, p)
	}())
}

// Load loads the newest checkpoint as the function Load does.
func (d *Directory) Load(ctx context.Context, tensors []Tensor) (meta map[string]string, err error) {
	if d != nil && d.job != nil && ctx != nil {
		if meta, err = d.loadTogether(ctx, tensors); err != nil {
			return nil, loadError(d.dir, err)
		}
		return meta, nil
	}
	if err := d.begin(false); err != nil {
		return nil, loadError(d.name(), err)
	}
	return Load(ctx, d.dir, tensors)
}

// Meta returns the strings of the newest checkpoint, which are the caller's own, and looks at none of its tensors: Load
// may still find it damaged. The error is ErrNone when there is no checkpoint.
func (d *Directory) Meta(ctx context.Context) (map[string]string, error) {
	if err := d.begin(false); err != nil {
		return nil, loadError(d.name(), err)
	}
	if ctx == nil {
		return nil, loadError(d.dir, errNoContext)
	}
	var x *index
	if d.job != nil {
		_, x, err := d.sameNewest(ctx)
		if err != nil {
			return nil, loadError(d.dir, err)
		}
		return x.meta, nil
	}
	err := atNewest(ctx, d.dir, func(dir string) (err error) {
		x, err = readIndex(ctx, filepath.Join(dir, indexName), openRegular)
		return err
	})
	if err != nil {
		return nil, loadError(d.dir, err)
	}
	return x.meta, nil
}

// Close lets others save to the directory. An error says that a Save is at work, and leaves it open. To close again
// does nothing.
func (d *Directory) Close() error {
	if d == nil || d.dir == "" {
		return errNoDirectory
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	if d.saving {
		return fmt.Errorf("checkpoint: close %s: a Save is at work", d.dir)
	}
	d.closed = true
	if d.lock == nil {
		return nil
	}
	return d.lock.Close()
}
