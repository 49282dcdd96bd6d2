package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The names in a directory: those of checkpoints, of what becomes one, and of what was one, each with its number.
const (
	lockName  = "checkpoint.lock"
	indexName = "index.json"

	inPlace  = "checkpoint-"
	saving   = ".saving-"
	removing = ".removing-"
)

// entry is a name of one of the three kinds. That there is a directory behind it is not said.
type entry struct {
	kind   string
	number int
	isDir  bool
}

func (e entry) path(dir string) string {
	return filepath.Join(dir, fmt.Sprintf("%s%08d", e.kind, e.number))
}

// list returns the entries of a directory that are of the three kinds, the newest first.
func list(dir string) ([]entry, error) {
	all, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var entries []entry
	for _, a := range all {
		for _, kind := range []string{inPlace, saving, removing} {
			digits, ok := strings.CutPrefix(a.Name(), kind)
			n, err := strconv.Atoi(digits)
			if ok && err == nil && fmt.Sprintf("%08d", n) == digits && n > 0 {
				entries = append(entries, entry{kind, n, a.IsDir()})
			}
		}
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(b.number, a.number) })
	return entries, nil
}

// newest returns the checkpoint with the highest number, or ErrNone. It may be a symbolic link to a directory. What is
// no directory is an error: to pass it over would be to fall back to an older checkpoint.
func newest(dir string) (entry, error) {
	entries, err := list(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return entry{}, err
	}
	for _, e := range entries {
		if e.kind != inPlace {
			continue
		}
		if !e.isDir {
			info, err := os.Stat(e.path(dir))
			if err == nil && !info.IsDir() {
				err = inFile(e.path(dir),
					errors.New("it has the name of a checkpoint, and is not a directory: move it away"))
			}
			if err != nil {
				return entry{}, err
			}
		}
		return e, nil
	}
	return entry{}, ErrNone
}

func shardName(k, files int) string { return fmt.Sprintf("shard-%05d-of-%05d.safetensors", k, files) }

// isShard reports whether a file has such a name as shards have.
func isShard(name string) bool {
	var k, files int
	_, err := fmt.Sscanf(name, "shard-%d-of-%d.safetensors", &k, &files)
	return err == nil && name == shardName(k, files)
}

// isOurs reports whether there is nothing in a directory but what Save writes.
func isOurs(dir string) (bool, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return false, err
	}
	return !slices.ContainsFunc(files, func(f os.DirEntry) bool {
		return !f.Type().IsRegular() || f.Name() != indexName && !isShard(f.Name())
	}), nil
}

// remove removes a directory and the files in it, unless there is anything else.
func remove(dir string) error {
	ours, err := isOurs(dir)
	if err != nil || !ours {
		return err
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(dir, f.Name())); err != nil {
			return err
		}
	}
	return os.Remove(dir)
}

// clean removes what a crash has left over, and returns the number of the next checkpoint.
func clean(dir string) (int, error) {
	entries, err := list(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range entries {
		if e.kind != inPlace && e.isDir {
			if err := remove(e.path(dir)); err != nil {
				return 0, fmt.Errorf("a directory left over from a crash: %w", err)
			}
		}
	}
	if len(entries) == 0 {
		return 1, nil
	}
	next := entries[0].number + 1
	if next < 1 {
		return 0, fmt.Errorf("%s has the highest number that there can be", entries[0].path(dir))
	}
	return next, nil
}

// prune removes all checkpoints but the newest.
func prune(dir string, keep int) error {
	entries, err := list(dir)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.kind != inPlace || !e.isDir })
	for _, e := range entries[min(keep, len(entries)):] {
		path := e.path(dir)
		ours, err := isOurs(path)
		if err != nil {
			return err
		}
		if !ours {
			continue
		}
		e.kind = removing
		if err := os.Rename(path, e.path(dir)); err != nil {
			return err
		}
		if err := remove(e.path(dir)); err != nil {
			return err
		}
	}
	return nil
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
