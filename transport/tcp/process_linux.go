package tcp

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// process is another process of this host. Its number may be given to another one when it has ended: that one has
// another start.
type process struct {
	pid   int
	start string // as the kernel tells it; "": it had ended when it was looked for
}

// processName is Address.Process of this process.
func processName() string {
	space, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%s %d", space, os.Getpid())
}

// newProcess is the process with a name, or nil if it cannot be asked after, since it counts processes in another
// namespace than this one, whose name is mine, or need not be: it is this one, which has not ended while anyone asks.
// So nothing hangs on what an emulator tells of its own process: qemu gives each thread a start of its own.
func newProcess(mine, name string) *process {
	space, _, _ := strings.Cut(mine, " ")
	number, ok := strings.CutPrefix(name, space+" ")
	pid, err := strconv.Atoi(number)
	if space == "" || !ok || err != nil || pid <= 0 || pid == os.Getpid() {
		return nil
	}
	return &process{pid, startOf(pid)}
}

// startOf is when a process has started, or "".
func startOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name of the program, in brackets, may have spaces and brackets in it.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	const start = 22 - 3 // the third field is the first one behind the name
	if len(fields) <= start {
		return ""
	}
	return fields[start]
}

// ended reports whether the kernel says that the process has ended. It asks for as long as given.
func (p *process) ended(limit time.Duration) bool {
	if p == nil {
		return false
	}
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	if start := startOf(p.pid); start != "" && start != p.start {
		return true
	}
	for until := time.Now().Add(limit); ; {
		rest := max(time.Until(until), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(rest/time.Millisecond))
		if err != unix.EINTR || rest == 0 {
			return n > 0
		}
	}
}
