//go:build !linux

package segment

import (
	"errors"
	"fmt"
	"runtime"
)

// errSystem is the error of all functions of this file.
var errSystem = fmt.Errorf("shared memory between processes: %w: it needs Linux, this is %s", errors.ErrUnsupported,
	runtime.GOOS)

// CheckRoom fails.
func CheckRoom(Form, int) error { return errSystem }

// Make fails: see the file for Linux.
func Make(int, Form) (*Segment, error) { return nil, errSystem }

// Open fails.
func Open(int, int, Form) (*Peer, error) { return nil, errSystem }

// MakeBell fails.
func MakeBell() (int, error) { return -1, errSystem }

// CheckBell fails.
func CheckBell(int) error { return errSystem }

// RingBell does nothing.
func RingBell(int) {}
