package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWatchingTerminal: on a terminal the state is drawn over the one before, until Ctrl-C.
func TestWatchingTerminal(t *testing.T) {
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	defer window.Close()
	fd := int(window.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 80}); err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	defer terminal.Close()
	t.Setenv("TERM", "xterm")
	answering(t, "a")
	done := make(chan int)
	go func() { done <- status([]string{"-watch"}, terminal, os.Stderr) }()
	shown, room := "", make([]byte, 4096)
	for strings.Count(shown, clear+"job a, ") < 2 {
		n, err := window.Read(room)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(room[:n])
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := <-done; code != 0 {
		t.Errorf("exit code %d", code)
	}
}
