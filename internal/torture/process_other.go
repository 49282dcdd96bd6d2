//go:build !linux

package main

import (
	"os"
	"runtime"
	"syscall"
)

// unsupported says why torture cannot run here.
const unsupported = "torture needs Linux, and this is " + runtime.GOOS

const stopSignal = 0

// The functions below are not reached.

func attributes() *syscall.SysProcAttr { return nil }
func raiseStop()                       {}
func raiseKill()                       {}
func proceed(*os.Process)              {}
func askStacks(*os.Process)            {}
func warmUp()                          {}
func openDescriptors() (out []string)  { return nil }
func resetOne(uint64)                  {}
func children(int) ([]child, error)    { return nil, nil }
func processVitals(int) (descriptors, resident float64, err error) {
	return 0, 0, nil
}
func openMemory() (*os.File, error)      { return nil, nil }
func segments() (out []int64)            { return nil }
func sharedFiles() (out []string)        { return nil }
func signalTo(int, int) error            { return nil }
func socketsNamed(string) (out []string) { return nil }
