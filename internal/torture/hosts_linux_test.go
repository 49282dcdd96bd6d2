package main

import (
	"bytes"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/hosttest"
)

// TestSurviveOverHosts: jobs on two hosts, with memory inside and sockets between, go on when replicas are killed or
// stopped. bench/hosts.sh runs more of them.
func TestSurviveOverHosts(t *testing.T) {
	hosttest.Run(t, 2, nil, func(t *testing.T, s *hosttest.Stage) {
		var stdout, stderr bytes.Buffer
		args := []string{"survive", "-runs", "4", "-seed", "100", "-hosts", s.Network(0) + "," + s.Network(1)}
		if code := run(t.Context(), args, &stdout, &stderr); code != command.OK ||
			!strings.HasPrefix(stdout.String(), "4 jobs went on, 0 wrong") {
			t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
		}
	})
}
