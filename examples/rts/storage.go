package main

import (
	"fmt"
	"os"

	"gogcl.dev/remote"
)

// openStorage gives the storage of -storage, and the directory to remove when it is no longer used, if there is one.
// Files are in a directory that is new every time, since a variable begins as what its file has: those of a run
// before would be taken for first weights. What is to outlive the run, -checkpoint keeps.
func openStorage(kind string) (s remote.Storage, dir string, err error) {
	if kind == inMemory {
		return remote.Memory{}, "", nil
	}
	if dir, err = os.MkdirTemp("", "gogcl-rts-"); err != nil {
		return nil, "", fmt.Errorf("-storage %s: %w", kind, err)
	}
	return remote.Dir(dir), dir, nil
}
