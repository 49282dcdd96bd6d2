package stream

import "golang.org/x/sys/unix"

// YieldProcessor lets another thread have the processor, of this process or another one.
func YieldProcessor() { unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0) }
