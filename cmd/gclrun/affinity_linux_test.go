package main

import (
	"os"
	"strings"
)

// affinity is the list of cores that this process may use, as in "0-3".
func affinity() string {
	text, _ := os.ReadFile("/proc/self/status")
	return allowed(string(text))
}

// allowed is the list of cores in the text of a status file.
func allowed(status string) string {
	_, rest, _ := strings.Cut(status, "Cpus_allowed_list:\t")
	list, _, _ := strings.Cut(rest, "\n")
	return list
}
