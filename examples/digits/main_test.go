package main

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/fulldisk"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
)

// output is what a run with args printed, with the speeds, which differ from run to run, made equal.
func output(t *testing.T, args string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields(args), &stdout, &stderr); code != command.OK {
		t.Fatalf("digits %s: exit code %d\n%s%s", args, code, stdout.String(), stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("digits %s wrote to standard error: %s", args, stderr.String())
	}
	return regexp.MustCompile(`\d+ samples/s`).ReplaceAllString(stdout.String(), "N samples/s")
}

// want is the form of the whole output; the last epoch's accuracy is the test accuracy.
var want = regexp.MustCompile(`^1437 digits to learn, 360 held out; replicas: (\d+), batch: \d+, method: \w+
(?:epoch \d+/\d+  loss \d+\.\d{4}  held-out accuracy 0\.\d{4}  N samples/s
)*epoch (\d+)/(\d+)  loss \d+\.\d{4}  held-out accuracy (0\.\d{4})  N samples/s
test accuracy (0\.\d{4})
weights: (.*) \(crc32 [0-9a-f]{8}\)
$`)

// TestAccuracy trains with the default flags, but for the number of replicas.
func TestAccuracy(t *testing.T) {
	for _, n := range accuracyReplicas {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			got := output(t, fmt.Sprint("-n ", n))
			match := want.FindStringSubmatch(got)
			if match == nil {
				t.Fatalf("output:\n%s", got)
			}
			t.Log(match[0][strings.LastIndex(match[0], "test"):])
			if match[1] != strconv.Itoa(n) || match[2] != match[3] || match[4] != match[5] {
				t.Errorf("replicas, epochs or accuracies do not agree:\n%s", got)
			}
			if lines := strings.Count(got, "epoch "); strconv.Itoa(lines) != match[3] {
				t.Errorf("%d lines for %s epochs", lines, match[3])
			}
			if accuracy, err := strconv.ParseFloat(match[5], 64); err != nil || accuracy < 0.96 {
				t.Errorf("test accuracy %s, want at least 0.96", match[5])
			}
			sameness := fmt.Sprintf("the same to the bit on all %d replicas", n)
			if n == 1 {
				sameness = "one replica, nothing to compare"
			}
			if match[6] != sameness {
				t.Errorf("weights: %s, want %s", match[6], sameness)
			}
		})
	}
}

// TestOddShares has batches that the replicas cannot share equally, a last batch with fewer images than replicas (1437
// is 1 more than 4 times 359), and one batch of everything.
func TestOddShares(t *testing.T) {
	for _, args := range []string{"-n 3 -epochs 1", "-n 4 -batch 359 -epochs 1", "-n 2 -batch 1437 -epochs 2"} {
		t.Run(args, func(t *testing.T) {
			if got := output(t, args); !want.MatchString(got) {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestDeterminism(t *testing.T) {
	first := output(t, "-n 3 -epochs 2 -seed 5")
	if second := output(t, "-n 3 -epochs 2 -seed 5"); second != first {
		t.Errorf("one seed, two results:\n%s\n%s", first, second)
	}
	if other := output(t, "-n 3 -epochs 2 -seed 6"); other == first {
		t.Errorf("two seeds, one result:\n%s", first)
	}
}

func TestMethods(t *testing.T) {
	for _, method := range append(thinned.Methods(1), methods.Auto) {
		t.Run(fmt.Sprintf("method=%v", method), func(t *testing.T) {
			got := output(t, fmt.Sprintf("-n 5 -epochs 1 -method %v", method))
			if !want.MatchString(got) || !strings.Contains(got, fmt.Sprintf("method: %v\n", method)) {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-n 0", "-n 0: there must be at least 1 replica"},
		{"-n -4", "-n -4: there must be at least 1 replica"},
		{"-n x", `invalid value "x" for flag -n: parse error`},
		{"-n 65", "-n 65: more replicas than the 64 images of a batch"},
		{"-epochs 0", "-epochs 0: there must be at least 1"},
		{"-batch 0", "-batch 0: there must be at least 1 image in a batch"},
		{"-batch 1438", "-batch 1438: there are only 1437 training images"},
		{"-lr 0", "-lr 0: the rate must be above 0 and finite"},
		{"-lr NaN", "-lr NaN: the rate must be above 0 and finite"},
		{"-lr Inf", "-lr +Inf: the rate must be above 0 and finite"},
		{"-seed -1", `invalid value "-1" for flag -seed: parse error`},
		{"-method zigzag", `invalid value "zigzag" for flag -method: methods: unknown method "zigzag", the closest is direct; want one of auto,`},
		{"-method", "flag needs an argument: -method"},
		{"-speed 9", "flag provided but not defined: -speed"},
		{"now", `unexpected argument "now"`},
		{"-n 2 now", `unexpected argument "now"`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(t.Context(), strings.Fields(tt.args), &stdout, &stderr)
			commandtest.Mistake(t, "digits", tt.want, code, stdout.String(), stderr.String())
		})
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-h"}, &stdout, &stderr); code != command.OK || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
	for _, flag := range []string{"-n replicas", "-epochs passes",
		"-batch images", "-lr rate", "-seed number", "-method name"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("usage does not explain %s:\n%s", flag, stdout.String())
		}
	}
}

func TestInterrupt(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout, stderr strings.Builder
	code := run(ctx, []string{"-epochs", "1000000"}, commandtest.StopAt("epoch 1/", stop, &stdout), &stderr)
	if code != command.Interrupted || stderr.String() != "digits: interrupted\n" {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
	if !strings.HasSuffix(stdout.String(), "\n") || strings.Contains(stdout.String(), "test accuracy") {
		t.Errorf("standard output ends in %q", stdout.String()[max(0, stdout.Len()-80):])
	}
}

func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := run(t.Context(), []string{"-epochs", "1"}, &fulldisk.Writer{Room: 1}, &stderr)
	if code != command.Failed || stderr.String() != "digits: standard output: disk full\n" {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}
