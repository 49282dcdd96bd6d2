//go:build unix && !linux

package spawn

import "syscall"

// Own makes a replica the leader of a process group. Only Linux can end it together with this process.
func Own() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
