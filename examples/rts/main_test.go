package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/fulldisk"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
)

// result is what a run with args came to.
type result struct {
	code           int
	stdout, stderr string
}

func runWith(ctx context.Context, args ...string) result {
	var stdout, stderr strings.Builder
	code := run(ctx, args, &stdout, &stderr)
	return result{code, stdout.String(), stderr.String()}
}

// output is what a run printed that went well, with what differs from run to run made equal.
func output(t *testing.T, args ...string) string {
	t.Helper()
	got := runWith(t.Context(), args...)
	if got.code != command.OK || got.stderr != "" {
		t.Fatalf("rts %s: exit code %d\n%s%s", args, got.code, got.stdout, got.stderr)
	}
	return plain(got.stdout)
}

func plain(stdout string) string {
	stdout = regexp.MustCompile(`\d+ samples/s(  \d+% comm\+wait)?`).ReplaceAllString(stdout, "N samples/s")
	return regexp.MustCompile(`files in .*`).ReplaceAllString(stdout, "files")
}

// epochs are the lines about epochs.
func epochs(output string) string {
	return strings.Join(regexp.MustCompile(`(?m)^epoch .*\n`).FindAllString(output, -1), "")
}

// want is the form of the whole output; the last epoch's accuracy is the test accuracy.
var want = regexp.MustCompile(`^1437 digits to learn, 360 held out; replicas: (\d+), batch: \d+, method: \w+
9610 parameters and Adam's states in (.*)
(?:comm\+wait: .*
)?(?:buffers: files
)?(?:resumed from .*
)?(?:epoch \d+/\d+  loss \d+\.\d{4}  accuracy 0\.\d{4}  N samples/s
)*epoch (\d+)/(\d+)  loss \d+\.\d{4}  accuracy (0\.\d{4})  N samples/s
(?:verified: (\d+) steps, losses, parameters and Adam's states equal to the last bit
)?test accuracy (0\.\d{4})
bytes per replica( .*)
parameters      ( .*)
Adam's states   ( .*)
whole copies    ( .*)
gradients       ( .*)
others          ( .*)
peak of all     ( .*)
Each row is the most there is at any time; not all at the same, so they do not add up to the peak\.
$`)

// TestAccuracy trains with the default flags, but for the number of replicas.
func TestAccuracy(t *testing.T) {
	for _, n := range accuracyReplicas {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			got := output(t, "-n", strconv.Itoa(n))
			match := want.FindStringSubmatch(got)
			if match == nil {
				t.Fatalf("output:\n%s", got)
			}
			if match[1] != strconv.Itoa(n) || match[3] != match[4] || match[5] != match[7] || match[6] != "" {
				t.Errorf("replicas, epochs or accuracies do not agree:\n%s", got)
			}
			if lines := strings.Count(got, "epoch "); strconv.Itoa(lines) != match[4] {
				t.Errorf("%d lines for %s epochs", lines, match[4])
			}
			if accuracy, err := strconv.ParseFloat(match[7], 64); err != nil || accuracy < 0.96 {
				t.Errorf("test accuracy %s, want at least 0.96", match[7])
			}
		})
	}
}

// TestVerify has the losses compared with those of the reference, and the same losses whatever does not matter to
// them. 1437 images are 22 batches of 64 and one of 29, which only 1 of these numbers of replicas divides.
func TestVerify(t *testing.T) {
	for _, n := range verifyReplicas {
		replicas := strconv.Itoa(n)
		first := ""
		for _, args := range verifyArgs {
			t.Run("n="+replicas+"/args="+args, func(t *testing.T) {
				got := output(t, append(strings.Fields(args), "-n", replicas, "-epochs", "2", "-verify")...)
				match := want.FindStringSubmatch(got)
				if match == nil || match[1] != replicas || match[6] != "46" {
					t.Fatalf("output:\n%s", got)
				}
				if first == "" {
					first = epochs(got)
				}
				if epochs(got) != first {
					t.Errorf("other losses:\n%s, want\n%s", epochs(got), first)
				}
			})
		}
	}
}

// TestOddShares has batches that the replicas cannot share equally, a last batch with fewer images than replicas (1437
// is 1 more than 4 times 359), one batch of everything, as many replicas as images, no clipping, and micro-batches.
func TestOddShares(t *testing.T) {
	onNumbers(t)
	for _, args := range []string{
		"-n 3 -batch 50 -epochs 1", "-n 4 -batch 359 -epochs 1",
		"-n 2 -batch 1437 -epochs 2", "-n 16 -batch 16 -epochs 1 -clip 0", "-n 4 -clip 0.01 -epochs 1",
		"-n 1 -accumulate 5 -epochs 1", "-n 4 -accumulate 16 -epochs 1", "-n 3 -batch 50 -accumulate 3 -epochs 1",
		"-n 4 -batch 359 -accumulate 7 -epochs 1 -overlap", "-n 2 -accumulate 2 -clip 0 -epochs 1 -bucket 1",
	} {
		t.Run(args, func(t *testing.T) {
			if got := output(t, strings.Fields(args+" -verify")...); !want.MatchString(got) {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	onNumbers(t)
	for _, method := range append(thinned.Methods(0), methods.Auto) {
		t.Run(fmt.Sprintf("method=%v", method), func(t *testing.T) {
			got := output(t, "-n", "5", "-epochs", "1", "-verify", "-method", method.String())
			if !want.MatchString(got) || !strings.Contains(got, fmt.Sprintf("method: %v\n", method)) {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestDeterminism(t *testing.T) {
	onNumbers(t)
	first := output(t, "-n", "3", "-epochs", "2", "-seed", "5")
	if second := output(t, "-n", "3", "-epochs", "2", "-seed", "5"); second != first {
		t.Errorf("one seed, two results:\n%s\n%s", first, second)
	}
	for _, args := range []string{"-seed 6", "-seed 5 -lr 0.004", "-seed 5 -clip 0.1", "-seed 5 -batch 65"} {
		if other := output(t, strings.Fields("-n 3 -epochs 2 "+args)...); epochs(other) == epochs(first) {
			t.Errorf("with %s there is the same result:\n%s", args, first)
		}
	}
}

// TestMemory compares the table with what follows from the sizes of the parameters: 9610 in all, and a shard of
// each, padded.
func TestMemory(t *testing.T) {
	onNumbers(t)
	for _, tt := range []struct {
		n                                int
		where, names, parameters, states string
	}{
		{1, "plain remote variables: one replica has nobody to share with", "plain", "38440", "76880"},
		{4, "remote buffers, 1/4 on each replica", "in 4 shards not sharded", "9612 38440", "19224 76880"},
		{8, "remote buffers, 1/8 on each replica", "in 8 shards not sharded", "4808 38440", "9616 76880"},
	} {
		match := want.FindStringSubmatch(output(t, "-n", strconv.Itoa(tt.n), "-epochs", "1"))
		if match == nil {
			t.Fatal("output of another form")
		}
		squeeze := func(s string) string { return strings.Join(strings.Fields(s), " ") }
		if match[2] != tt.where || squeeze(match[8]) != tt.names || squeeze(match[9]) != tt.parameters ||
			squeeze(match[10]) != tt.states {
			t.Errorf("n=%d: %q", tt.n, match)
		}
		peaks := strings.Fields(match[14])
		if tt.n == 1 {
			continue
		}
		if sharded, err := strconv.Atoi(peaks[0]); err != nil || sharded >= 120_000 {
			t.Errorf("n=%d: a peak of %s bytes in shards", tt.n, peaks[0])
		}
		if whole, err := strconv.Atoi(peaks[1]); err != nil || whole <= 200_000 {
			t.Errorf("n=%d: a peak of %s bytes without", tt.n, peaks[1])
		}
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-n 0", "-n 0: there must be at least 1 replica"},
		{"-n -4", "-n -4: there must be at least 1 replica"},
		{"-n x", `invalid value "x" for flag -n: parse error`},
		{"-n 65", "-n 65: more replicas than the 64 images of a batch"},
		{"-epochs 0", "-epochs 0: there must be at least 1"},
		{"-epochs 93368855", "-epochs 93368855: more than 2147483647 steps in all"},
		{"-batch 0", "-batch 0: there must be at least 1 image in a batch"},
		{"-batch 1438", "-batch 1438: there are only 1437 training images"},
		{"-accumulate 0", "-accumulate 0: there must be at least 1 micro-batch"},
		{"-accumulate 17", "-accumulate 17: more micro-batches than the 16 images of a replica"},
		{"-lr 0", "-lr 0: the rate must be above 0 and finite in float32"},
		{"-lr 1e-60", "-lr 1e-60: the rate must be above 0 and finite in float32"},
		{"-lr 1e60", "-lr 1e+60: the rate must be above 0 and finite in float32"},
		{"-lr NaN", "-lr NaN: the rate must be above 0 and finite in float32"},
		{"-clip -1", "-clip -1: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-clip 1e-60", "-clip 1e-60: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-clip NaN", "-clip NaN: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-clip Inf", "-clip +Inf: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-seed -1", `invalid value "-1" for flag -seed: parse error`},
		{"-method zigzag", `invalid value "zigzag" for flag -method: methods: unknown method "zigzag", the closest is direct; want one of auto,`},
		{"-method", "flag needs an argument: -method"},
		{"-bucket 0", "-bucket 0: there must be at least 1 byte in a bucket"},
		{"-storage disk", `-storage "disk": want memory or file`},
		{"-storage=", "-storage: the name is empty"},
		{"-svg=", "-svg: the name is empty"},
		{"-svg /dev/null/a.svg", "-svg /dev/null/a.svg: "},
		{"-svg testdata/none/a.svg", "-svg testdata/none/a.svg: "},
		{"-svg .", "-svg .: it is not a regular file"},
		{"-svg /dev/null", "-svg /dev/null: it is not a regular file"},
		{"-checkpoint=", "-checkpoint: the name is empty"},
		{"-checkpoint testdata/none/a", "checkpoint: open testdata/none/a: "},
		{"-checkpoint main.go", "checkpoint: open main.go: it is not a directory"},
		{"-resume", "-resume: there is no -checkpoint to go on from"},
		{"-resume -checkpoint main.go", "checkpoint: open main.go: it is not a directory"},
		{"-resume -checkpoint testdata/none", "-resume: there is no checkpoint in testdata/none"},
		{"-speed 9", "flag provided but not defined: -speed"},
		{"now", `unexpected argument "now"`},
		{"-n 2 now", `unexpected argument "now"`},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			wantMistake(t, runWith(t.Context(), strings.Fields(tt.args)...), tt.want)
		})
	}
}

// wantMistake wants the line of a mistake and nothing else.
func wantMistake(t *testing.T, got result, want string) {
	t.Helper()
	commandtest.Mistake(t, "rts", want, got.code, got.stdout, got.stderr)
}

// TestFinite: with -finite a rate that makes numbers too large is an error that says where the first of them was, and
// without it nobody notices.
func TestFinite(t *testing.T) {
	output(t, "-n", "2", "-epochs", "1", "-lr", "1e38")
	got := runWith(t.Context(), "-n", "2", "-epochs", "1", "-lr", "1e38", "-finite")
	form := regexp.MustCompile(`^rts: ir: replica \d: \w+ built at \w+\.go:\d+ in graph .*: element \d+ of float32 .* is (NaN|[+-]Inf), not a finite number.*\n$`)
	if got.code != command.Failed || !form.MatchString(got.stderr) {
		t.Errorf("exit code %d, standard error %q", got.code, got.stderr)
	}
}

func TestHelp(t *testing.T) {
	got := runWith(t.Context(), "-h")
	if got.code != command.OK || got.stderr != "" {
		t.Errorf("exit code %d, standard error %q", got.code, got.stderr)
	}
	for _, flag := range []string{
		"-n replicas", "-epochs passes", "-batch images", "-accumulate micro-batches",
		"-lr rate", "-clip norm", "-seed number", "-method name", "-bucket bytes",
		"-overlap", "-storage where", "-verify", "-svg file", "-checkpoint directory", "-resume",
		"-survive", "-copy steps", "-die replica:step",
	} {
		if !strings.Contains(got.stdout, "\n  "+flag) {
			t.Errorf("usage does not explain %s:\n%s", flag, got.stdout)
		}
	}
}

// interrupt runs with a Ctrl-C while the first line is written that has some words.
func interrupt(t *testing.T, words string, args ...string) result {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var stdout, stderr strings.Builder
	code := run(ctx, args, commandtest.StopAt(words, stop, &stdout), &stderr)
	return result{code, stdout.String(), stderr.String()}
}

func TestInterrupt(t *testing.T) {
	for _, prefix := range []string{"1437", "epoch 1/"} {
		got := interrupt(t, prefix, "-epochs", "1000000")
		if got.code != command.Interrupted || got.stderr != "rts: interrupted\n" {
			t.Errorf("exit code %d, standard error %q", got.code, got.stderr)
		}
		if !strings.HasSuffix(got.stdout, "\n") || strings.Contains(got.stdout, "test accuracy") {
			t.Errorf("standard output ends in %q", got.stdout[max(0, len(got.stdout)-80):])
		}
	}
}

// TestFullDisk ends a long training as soon as nobody can see how it goes on, and fails when it is the end that is
// lost.
func TestFullDisk(t *testing.T) {
	for _, tt := range []struct {
		epochs string
		room   int
	}{{"1000000", 3}, {"1", 5}} {
		var stderr strings.Builder
		code := run(t.Context(), []string{"-epochs", tt.epochs}, &fulldisk.Writer{Room: tt.room}, &stderr)
		if code != command.Failed || stderr.String() != "rts: standard output: disk full\n" {
			t.Errorf("exit code %d, standard error %q", code, stderr.String())
		}
	}
}

// TestStorage has files that lose their names as soon as they are open, or for which there is no room, and sees that
// files of other runs are left alone.
func TestStorage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir) // Windows
	if err := os.Mkdir(dir+"/gogcl-rts-0", 0o777); err != nil {
		t.Fatal(err)
	}
	wantLeft := func() {
		t.Helper()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 || entries[0].Name() != "gogcl-rts-0" {
			t.Errorf("there are %v, error %v", entries, err)
		}
	}
	var stdout strings.Builder
	look := writer(func(p []byte) {
		stdout.Write(p)
		if !strings.HasPrefix(string(p), "epoch") || runtime.GOOS == "windows" {
			return
		}
		wantLeft()
		if runtime.GOOS == "linux" {
			maps, err := os.ReadFile("/proc/self/maps")
			// for each parameter two, on each replica
			if n := strings.Count(string(maps), " "+dir+"/gogcl-rts-"); err != nil || n != 3*8 {
				t.Errorf("%d files are mapped, want 24; error %v", n, err)
			}
		}
	})
	if code := run(t.Context(), strings.Fields("-storage file -n 3 -epochs 1"), look, io.Discard); code != command.OK {
		t.Errorf("exit code %d", code)
	}
	if got := plain(stdout.String()); !want.MatchString(got) || !strings.Contains(got, "\nbuffers: files\n") {
		t.Errorf("output:\n%s", got)
	}
	wantLeft()
	wantMistake(t, runWith(t.Context(), "-storage", "file", "-resume", "-checkpoint", t.TempDir()),
		"-resume: there is no checkpoint")
	wantLeft()
	t.Setenv("TMPDIR", dir+"/none")
	t.Setenv("TMP", dir+"/none")
	if got := runWith(t.Context(), "-storage", "file"); got.code != command.Failed ||
		!strings.HasPrefix(got.stderr, "rts: -storage file: ") {
		t.Errorf("exit code %d, standard error %q", got.code, got.stderr)
	}
}

// writer is a function that is given what is written.
type writer func(p []byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}
