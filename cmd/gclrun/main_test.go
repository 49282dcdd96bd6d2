//go:build unix

package main

import (
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"testing"
	"time"

	"gogcl.dev/internal/leaktest"
)

const (
	asPuppet      = "puppet"             // first argument of a replica of a test
	asGclrun      = "GOGCL_GCLRUN"       // set in gclrun's environment: the socket of its clock; "": the system's clock
	asGclrunFiles = "GOGCL_GCLRUN_FILES" // how many descriptors gclrun may have
	asGclrunNoHup = "GOGCL_GCLRUN_NOHUP" // gclrun is started as by nohup
)

// TestMain is gclrun, or a replica, where it is started as one.
func TestMain(m *testing.M) {
	switch clock, gclrun := os.LookupEnv(asGclrun); {
	case len(os.Args) > 1 && os.Args[1] == asPuppet:
		beAPuppet(os.Args[2], os.Args[3:])
	case gclrun:
		after := time.After
		if clock != "" {
			after = remoteClock(clock)
		}
		if files, err := strconv.ParseUint(os.Getenv(asGclrunFiles), 10, 64); err == nil {
			limit := syscall.Rlimit{Cur: files, Max: files}
			if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
				panic(err)
			}
		}
		if os.Getenv(asGclrunNoHup) != "" {
			signal.Ignore(syscall.SIGHUP)
		}
		os.Exit(run(os.Args[1:], after))
	}
	leaktest.Main(m)
}
