//go:build !windows && (!unix || aix)

package remote

import "os"

// lock does nothing: there are no locks here.
func lock(*os.File) (taken bool, err error) { return false, nil }

// syncDir does nothing: directories cannot be synced here.
func syncDir(string) error { return nil }
