//go:build !linux

package main

import (
	"context"
	"errors"
	"os"

	"gogcl.dev/gcl"
)

// Elsewhere there is no signal that stops a process on all systems.
var (
	stopSignal = os.Kill
	killSignal = os.Kill
)

func writeNothing() error { return errors.New("a full disk is only there on Linux") }

func cutOff(context.Context, *gcl.Comm, int) error {
	return errors.New("connections can only be cut off on Linux")
}
