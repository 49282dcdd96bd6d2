package command

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal returns a terminal of the kernel's, and the side from which its window is sized.
func terminal(t *testing.T) (file, window *os.File) {
	t.Helper()
	window, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	t.Cleanup(func() { window.Close() })
	fd := int(window.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	file, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no pseudo terminals: ", err)
	}
	t.Cleanup(func() { file.Close() })
	return file, window
}

func TestTerminal(t *testing.T) {
	file, window := terminal(t)
	t.Setenv("TERM", "xterm")
	resize := func(columns uint16) {
		size := &unix.Winsize{Row: 24, Col: columns}
		if err := unix.IoctlSetWinsize(int(window.Fd()), unix.TIOCSWINSZ, size); err != nil {
			t.Fatal(err)
		}
	}
	if TerminalOf(file) != nil {
		t.Error("a terminal without a width is one that redraws lines")
	}
	resize(80)
	for _, w := range []*Terminal{TerminalOf(file), TerminalOf(&output{file: file})} {
		if w == nil {
			t.Fatal("the terminal is none")
		}
		for _, set := range []uint16{40, 0, 200} {
			resize(set)
			want := int(set)
			if set == 0 {
				want = 80
			}
			if got := w.Columns(); got != want {
				t.Errorf("%d columns, want %d of a window of %d", got, want, set)
			}
		}
	}
	t.Setenv("TERM", "dumb")
	if TerminalOf(file) != nil {
		t.Error("TERM=dumb is a terminal that redraws lines")
	}
}

// TestNoTerminal has what is a character device, and yet no terminal.
func TestNoTerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if TerminalOf(null) != nil || TerminalOf(nil) != nil {
		t.Error("a terminal")
	}
	closed, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	if TerminalOf(closed) != nil {
		t.Error("a closed file is a terminal")
	}
}
