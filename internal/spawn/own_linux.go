package spawn

import "syscall"

// Own makes a replica the leader of a process group, and lets the kernel kill it when this process is gone, whatever
// this process died of.
//
// Pdeathsig is sent when the thread ends that started the replica, not when this process does
// (go.dev/issue/27505). The goroutine that starts replicas must therefore stay locked to its thread for as long as they
// run. Processes that a replica has started do not inherit it.
func Own() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
