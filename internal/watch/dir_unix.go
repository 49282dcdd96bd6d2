//go:build unix

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Dir is the directory of the sockets of this user: gcl in $XDG_RUNTIME_DIR, or gcl-<uid> where temporary files are. It
// is made if it is not there, and is the user's alone: nobody else reads from it or puts anything there.
func Dir() (string, error) {
	dir := filepath.Join(os.TempDir(), fmt.Sprint("gcl-", os.Geteuid()))
	if runtime := os.Getenv("XDG_RUNTIME_DIR"); runtime != "" {
		dir = filepath.Join(runtime, "gcl")
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.IsDir():
		return "", fmt.Errorf("%s is no directory: remove it", dir)
	case !ok || stat.Uid != uint32(os.Geteuid()):
		return "", fmt.Errorf("%s is of another user: set XDG_RUNTIME_DIR to a directory of this one", dir)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("%s is open to others (%v), want -rwx------: chmod 700 %[1]s", dir, info.Mode().Perm())
	}
	return dir, nil
}

// gone reports whether there is no process of that number.
func gone(pid int) bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }

// silence says why a process does not answer.
func silence(pid int) string {
	const silent = "does not answer"
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return silent
	}
	// The name of the program, in parentheses, may have any characters in it.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	if len(fields) == 0 {
		return silent
	}
	return cmp.Or(map[string]string{"T": "is stopped", "t": "is stopped by a debugger", "Z": "has ended",
		"D": "does not answer, and waits for the system"}[fields[0]], silent)
}
