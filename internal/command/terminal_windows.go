package command

import (
	"os"

	"golang.org/x/sys/windows"
)

// columns is the width of the console that the file is. It is not ok for another file.
func columns(file *os.File) (n int, ok bool) {
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleScreenBufferInfo(windows.Handle(file.Fd()), &info) != nil {
		return 0, false
	}
	return int(info.Window.Right-info.Window.Left) + 1, true
}
