//go:build unix

package command

import (
	"os"

	"golang.org/x/sys/unix"
)

// columns is the width of the terminal that the file is, 0 where the terminal does not know. It is not ok for another
// file.
func columns(file *os.File) (n int, ok bool) {
	raw, err := file.SyscallConn()
	if err != nil {
		return 0, false
	}
	err = raw.Control(func(fd uintptr) {
		if size, err := unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ); err == nil {
			n, ok = int(size.Col), true
		}
	})
	return n, ok && err == nil
}
