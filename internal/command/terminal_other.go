//go:build !unix && !windows

package command

import "os"

// columns knows of no terminals here.
func columns(*os.File) (n int, ok bool) { return 0, false }
