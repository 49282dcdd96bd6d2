//go:build !linux

package main

import (
	"errors"
	"runtime"
)

// pickCores refuses -bind.
func pickCores(int) ([]int, error) {
	return nil, errors.New("-bind is for Linux only, and this is " + runtime.GOOS)
}

// onCore is not reached: there are no cores to choose from.
func onCore(_ int, start func() error) error { return start() }
