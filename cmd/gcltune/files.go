package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"gogcl.dev/internal/measure"
)

// tempFile makes a file beside another, whose place it may take.
func tempFile(name string) (*os.File, error) { return os.CreateTemp(filepath.Dir(name), ".gcltune-*") }

// checkReplaceable finds out whether a file can be written and take the place of another, rather than minutes later. It
// returns the name of the file that a link leads to.
func checkReplaceable(flag, name string) (target string, err error) {
	target = name
	if at, err := os.Lstat(name); err == nil && at.Mode()&fs.ModeSymlink != 0 {
		if target, err = filepath.EvalSymlinks(name); err != nil {
			return "", fmt.Errorf("%s %s is a link that leads nowhere: %w", flag, name, err)
		}
	}
	if err := measure.CheckWritable(flag, target); err != nil {
		return "", err
	}
	if file, err := os.Stat(target); err == nil && !file.Mode().IsRegular() {
		return "", fmt.Errorf("%s %s is no file, want one", flag, name)
	}
	f, err := tempFile(target)
	if err != nil {
		return "", fmt.Errorf("%s: %w", flag, err)
	}
	return target, errors.Join(f.Close(), os.Remove(f.Name()))
}

// replaceFile writes a file whole or not at all.
func replaceFile(name string, text []byte) (err error) {
	mode := fs.FileMode(0o644)
	if file, err := os.Stat(name); err == nil {
		mode = file.Mode().Perm()
	}
	f, err := tempFile(name)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}
