package main

import (
	"bytes"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// unsupported says why torture cannot run here: "" on Linux.
const unsupported = ""

// attributes are those of a replica's process: it dies with torture, and Ctrl-C on the terminal does not reach it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

func raiseStop() { unix.Kill(unix.Getpid(), unix.SIGSTOP) }
func raiseKill() { unix.Kill(unix.Getpid(), unix.SIGKILL) }

// proceed ends a stop.
func proceed(p *os.Process) { p.Signal(unix.SIGCONT) }

// askStacks has a process write its goroutines to standard error, and end.
func askStacks(p *os.Process) {
	p.Signal(unix.SIGCONT)
	p.Signal(unix.SIGQUIT)
}

// warmUp has the Go runtime make what it keeps: its poller, and the goroutine that hears of signals.
func warmUp() {
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGWINCH)
	signal.Stop(heard)
	if r, w, err := os.Pipe(); err == nil {
		r.Close()
		w.Close()
	}
}

// openDescriptors lists this process's open descriptors with what they are.
func openDescriptors() (out []string) {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil { // not that of the directory itself
			out = append(out, e.Name()+" "+to)
		}
	}
	return out
}

// resetOne ends one of this process's connections, as a network or a firewall could: over TCP by a reset.
func resetOne(seed uint64) {
	var connected []int
	for _, d := range openDescriptors() {
		number, to, _ := strings.Cut(d, " ")
		fd, err := strconv.Atoi(number)
		if err != nil || !strings.HasPrefix(to, "socket:") {
			continue
		}
		if _, err := unix.Getpeername(fd); err == nil {
			connected = append(connected, fd)
		}
	}
	if len(connected) == 0 {
		return
	}
	fd := connected[seed%uint64(len(connected))]
	if domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN); err == nil && domain != unix.AF_UNIX {
		// A connection to nowhere ends the one that there is, by a reset.
		var nowhere [16]byte // its first two bytes are AF_UNSPEC
		unix.Syscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&nowhere)), unsafe.Sizeof(nowhere))
		return
	}
	unix.Shutdown(fd, unix.SHUT_RDWR)
}

// openMemory opens this process's own memory: what is written to where nothing is mapped is an error, and no fault.
func openMemory() (*os.File, error) { return os.OpenFile("/proc/self/mem", os.O_RDWR, 0) }

// segments lists where the segments of shared memory begin that this process has mapped: its own and those of others.
func segments() (out []int64) {
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		fields := strings.Fields(line) // 7f0000000000-7f1000000000 rw-s 00000000 00:01 1234 /memfd:gogcl (deleted)
		if len(fields) < 6 || fields[5] != "/memfd:gogcl" || strings.Trim(fields[2], "0") != "" {
			continue
		}
		from, _, _ := strings.Cut(fields[0], "-")
		if at, err := strconv.ParseInt(from, 16, 64); err == nil {
			out = append(out, at)
		}
	}
	return out
}

// sharedFiles lists the files in /dev/shm that have the library's name.
func sharedFiles() (out []string) {
	entries, _ := os.ReadDir("/dev/shm") // there may be none
	for _, e := range entries {
		if strings.Contains(e.Name(), "gogcl") {
			out = append(out, e.Name())
		}
	}
	return out
}

// children lists the processes that a process has started, by the rank in their environment. Those without one are left
// out.
func children(parent int) (out []child, err error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// "pid (name) state parent ...", of a process that may have ended meanwhile.
		stat, _ := os.ReadFile("/proc/" + e.Name() + "/stat")
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		environment, _ := os.ReadFile("/proc/" + e.Name() + "/environ")
		for entry := range strings.SplitSeq(string(environment), "\x00") {
			if text, ok := strings.CutPrefix(entry, "RANK="); ok {
				if rank, err := strconv.Atoi(text); err == nil {
					out = append(out, child{rank: rank, pid: pid})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b child) int { return a.rank - b.rank })
	return out, nil
}

// stopSignal is SIGSTOP.
const stopSignal = int(unix.SIGSTOP)

// processVitals is how many descriptors a process has open, and its resident memory in KiB.
func processVitals(pid int) (descriptors, resident float64, err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0, 0, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			resident, err = strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(text), " kB"), 64)
			return float64(len(entries)), resident, err
		}
	}
	return 0, 0, fmt.Errorf("no VmRSS in /proc/%d/status", pid)
}

// signalTo sends a signal to a process.
func signalTo(pid, signal int) error { return unix.Kill(pid, unix.Signal(signal)) }

// socketsNamed lists the abstract sockets of this machine whose names have a prefix.
func socketsNamed(prefix string) (out []string) {
	table, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return []string{fmt.Sprint(err)}
	}
	for line := range strings.Lines(string(table)) {
		if fields := strings.Fields(line); len(fields) > 0 && strings.HasPrefix(fields[len(fields)-1], prefix) {
			out = append(out, fields[len(fields)-1])
		}
	}
	return out
}
