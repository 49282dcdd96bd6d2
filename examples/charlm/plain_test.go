//go:build !race

package main

import "testing"

// waysFlags are the ways that are compared.
var waysFlags = []string{"-whole", "-overlap", "-bucket 1", "-bucket 1000000 -overlap", "-clip 1e6"}

// onNumbers skips a test of which numbers come out, where that takes too long.
func onNumbers(*testing.T) {}
