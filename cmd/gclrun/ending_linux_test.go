package main

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gogcl.dev/internal/spawn"
)

// TestIsEnding: a process that was killed and not waited for is ending, and one that runs is not.
func TestIsEnding(t *testing.T) {
	if isEnding(os.Getpid()) {
		t.Error("this process is ending")
	}
	killed := kept(t)
	if !isEnding(killed.Process.Pid) {
		t.Error("a process that was killed is not ending")
	}
	pid := killed.Process.Pid
	_ = killed.Wait() // killed
	if isEnding(pid) {
		t.Error("a process that is no more is ending")
	}
}

// kept is a process that was killed, and that nobody has waited for.
func kept(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "600")
	c.SysProcAttr = spawn.Own()
	must(t, c.Start())
	must(t, c.Process.Kill())
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_PID, c.Process.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			must(t, err)
			return c
		}
	}
}

// TestReportedLate: a replica that was ending when the first failed is to blame, whenever gclrun hears of it.
func TestReportedLate(t *testing.T) {
	failed := exec.Command("sh", "-c", "exit 1")
	_ = failed.Run() // as it says
	killed := kept(t)
	began := time.Now()
	j := &job{after: func(time.Duration) <-chan time.Time { return nil }, running: 2, replicas: []*replica{
		{rank: 0, cmd: failed, ended: began}, {rank: 1, cmd: killed, ended: began.Add(time.Hour)},
	}}
	j.end(j.replicas[0])
	_ = killed.Wait() // killed
	j.end(j.replicas[1])
	if _, code := judge(j.endings, nil, ""); code != 128+int(syscall.SIGKILL) {
		t.Errorf("exit code %d", code)
	}
}
