//go:build unix && !linux

package main

func affinity() string { return "unknown" }
