package stream

import "golang.org/x/sys/unix"

// yieldProcessor lets another thread have the processor, of this process or another one.
func yieldProcessor() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
