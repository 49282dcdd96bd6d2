//go:build !windows && (!unix || aix)

package osfile

import "os"

// Lock does nothing: there are no locks here.
func Lock(*os.File) (taken bool, err error) { return false, nil }

// SyncDir does nothing: directories cannot be synced here.
func SyncDir(string) error { return nil }
