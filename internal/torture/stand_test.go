package main

import (
	"bytes"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestStand: a job whose replicas pause for less than Silence ends well. One whose replicas pause for longer does not,
// which shows that mode stand would see a false alarm.
func TestStand(t *testing.T) {
	onLinux(t)
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"-n 3 -for 1s -pause 100ms -load 4 -silence 30s", command.OK, ": no false alarm\n"},
		{"-n 2 -for 10m -pause 2s -load 0 -silence 200ms", command.Failed, " replicas ended with an error\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"stand"}, strings.Fields(test.args)...)
		if code := run(t.Context(), args, &stdout, &stderr); code != test.code ||
			!strings.HasSuffix(stdout.String(), test.want) {
			t.Errorf("%s: exit code %d\n%s%s", test.args, code, &stdout, &stderr)
		}
	}
}

// TestDetect: both replicas find each harm, and the times are printed.
func TestDetect(t *testing.T) {
	for harm := range harms {
		t.Run(harm, func(t *testing.T) {
			t.Parallel()
			var stdout, stderr bytes.Buffer
			args := []string{"detect", "-harm", harm, "-runs", "1", "-silence", "4s"}
			if code := run(t.Context(), args, &stdout, &stderr); code != command.OK ||
				!strings.HasPrefix(stdout.String(), harm+", Silence 4s: 1 runs, p50 ") {
				t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
			}
		})
	}
}
