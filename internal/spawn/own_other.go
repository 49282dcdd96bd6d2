//go:build !unix

package spawn

import "syscall"

// Own asks for nothing: there are no process groups here.
func Own() *syscall.SysProcAttr { return nil }
