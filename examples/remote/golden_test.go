package main

import (
	"testing"

	"gogcl.dev/internal/golden"
	"gogcl.dev/remote"
)

// TestProgramStays holds the program against what it was.
func TestProgramStays(t *testing.T) {
	golden.Hashes(t, "programs.txt", map[string]string{"program": build(remote.Memory{}).String()})
}
