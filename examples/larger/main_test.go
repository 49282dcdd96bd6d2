package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// larger runs the program with files in a directory of its own, which must be empty after it.
func larger(t *testing.T, ctx context.Context, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	dir := t.TempDir()
	var out, errs strings.Builder
	code = run(ctx, append(args, "-dir", dir), &out, &errs)
	left, err := os.ReadDir(dir)
	if err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
	return code, out.String(), errs.String()
}

var parameters = regexp.MustCompile(`parameters [0-9a-f]{8}`)

// TestLarger trains 32 MiB of parameters, 96 with Adam's states, in 16 MiB of heap, and in 28 on four replicas. They
// begin with the same bits on any number of replicas.
func TestLarger(t *testing.T) {
	first := ""
	for _, c := range [][]string{{"-n", "2", "-limit", "16"}, {"-n", "4", "-limit", "28"}} {
		if c[1] == "4" && testing.Short() {
			continue
		}
		code, out, errs := larger(t, t.Context(), append(c, "-mib", "32", "-width", "512")...)
		sums := parameters.FindAllString(out, -1)
		if code != command.OK || errs != "" || len(sums) != 6 ||
			!strings.Contains(out, "for 96 MiB in files; resumed with the same bits\n") {
			t.Fatalf("%v: exit code %d, %s\n%s", c, code, errs, out)
		}
		if first == "" {
			first = sums[0]
		}
		if sums[0] != first {
			t.Errorf("%v: the first %s, and on two replicas %s", c, sums[0], first)
		}
	}
}

// TestLimit has a limit that is too low to be kept.
func TestLimit(t *testing.T) {
	code, out, errs := larger(t, t.Context(), "-mib", "8", "-width", "1024", "-limit", "8")
	if code != command.Failed || !strings.HasPrefix(errs, "larger: the heap came to ") ||
		!strings.HasSuffix(errs, " MiB, want at most 8.0\n") {
		t.Errorf("exit code %d, %s\n%s", code, errs, out)
	}
}

// TestEnds has the ways in which the program ends early.
func TestEnds(t *testing.T) {
	done, cancel := context.WithCancel(t.Context())
	cancel()
	if code, _, errs := larger(t, done, "-mib", "2", "-width", "512"); code != command.Interrupted ||
		errs != "larger: interrupted\n" {
		t.Errorf("interrupted: exit code %d, %s", code, errs)
	}
	for args, want := range map[string]string{
		"-n 1":                 "-n 1, want 2 or more",
		"-mib 0":               "-mib 0, want 1 to 1048576",
		"-width 0":             "-width 0, want 1 to 16384",
		"-mib 1":               "-width 1024: 1 MiB are less than two layers",
		"-mib 2048 -width 32":  "-width 32: 2048 MiB are 524288 layers, want at most 65536: a larger -width",
		"-limit -1":            "-limit -1, want 1 or more, or 0",
		"here":                 `unexpected argument "here"`,
		"-dir /does/not/exist": "no such file or directory",
	} {
		var out, errs strings.Builder
		code := run(t.Context(), strings.Fields(args), &out, &errs)
		if want := map[bool]int{true: command.Failed,
			false: command.Usage}[strings.HasPrefix(args, "-dir")]; code != want {
			t.Errorf("%s: exit code %d, want %d", args, code, want)
		}
		if !strings.Contains(errs.String(), want) || out.Len() > 0 {
			t.Errorf("%s: %q and %q, want %q", args, errs.String(), out.String(), want)
		}
	}
	var out, errs strings.Builder
	if code := run(t.Context(), []string{"-h"}, &out, &errs); code != command.OK ||
		!strings.Contains(out.String(), "-mib MiB") {
		t.Errorf("-h: exit code %d, %s", code, errs.String())
	}
}

// TestLayers counts parameters of more bytes than an int of 32 bits has.
func TestLayers(t *testing.T) {
	for args, want := range map[string]int64{"-mib 2047": 511, "-mib 2048": 512, "-mib 4096": 1024,
		"-mib 1048576 -width 16384": 1024} {
		if cfg, err := parseFlags(strings.Fields(args), io.Discard); err != nil || cfg.layers() != want {
			t.Errorf("%s: %d layers, %v, want %d", args, cfg.layers(), err, want)
		}
	}
}
