package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/examples/charlm/opticks"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/fulldisk"
)

// pages is a part of the book: enough for a few steps.
func pages() ([]byte, error) {
	text, err := opticks.Text()
	if err != nil {
		return nil, err
	}
	return text[20000:][:pagesBytes], nil
}

// page is enough for a step.
func page() ([]byte, error) {
	text, err := pages()
	return text[:min(4000, len(text))], err
}

// output is what a run with args on some text printed, with the speeds, which differ from run to run, made equal.
func output(t *testing.T, load func() ([]byte, error), args string) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields(args), load, &stdout, &stderr); code != command.OK || stderr.Len() > 0 {
		t.Fatalf("embedding %s: exit code %d\n%s%s", args, code, stdout.String(), stderr.String())
	}
	return regexp.MustCompile(`\d+ words/s`).ReplaceAllString(stdout.String(), "N words/s")
}

// want is the form of the whole output.
var want = regexp.MustCompile(`^\d+ words to learn from, \d+ held out, \d+ different; replicas: \d+, batch: \d+
table: \d+ rows of \d+, \d+ on each replica, of which one asks another for \d+ a step at most
(?:epoch \d+/\d+  loss \d+\.\d{4}  held-out loss \d+\.\d{4}  N words/s
)+held-out loss (\d+\.\d{4}) nats a word; how frequent words are alone gives (\d+\.\d{4})
(?:nearest to \w+: \w+ -?\d\.\d\d(?:, \w+ -?\d\.\d\d){4}
)*(?:table, weights and losses: the same to the bit as on one replica with the whole table
)?$`)

// TestVerify has the numbers of replicas of verifyReplicas.
func TestVerify(t *testing.T) {
	for _, n := range verifyReplicas {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			got := output(t, pages, fmt.Sprintf("-n %d -batch %d -epochs %d -dim 7 -near red,glass -verify",
				n, 24*n, verifyEpochs))
			if !want.MatchString(got) || !strings.HasSuffix(got, " the whole table\n") ||
				strings.Count(got, "nearest") != 2 {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

// TestLoss learns from the whole book, but once: what is known of the words around must be worth most of a nat.
func TestLoss(t *testing.T) {
	onNumbers(t)
	if testing.Short() {
		t.Skip("the whole book takes a while; TestVerify runs the same code on a part of it")
	}
	got := output(t, opticks.Text, "-epochs 1")
	match := want.FindStringSubmatch(got)
	if match == nil {
		t.Fatalf("output:\n%s", got)
	}
	loss, _ := strconv.ParseFloat(match[1], 64)
	baseline, _ := strconv.ParseFloat(match[2], 64)
	if !(loss > 0 && loss < baseline-0.7) {
		t.Errorf("loss %v, want at most %v, 0.7 less than that of frequencies", loss, baseline-0.7)
	}
	colours := regexp.MustCompile(`nearest to red: .*\b(blue|green|yellow|violet|orange)\b`)
	if !colours.MatchString(got) {
		t.Errorf("no colour is near red:\n%s", got)
	}
}

func TestDeterminism(t *testing.T) {
	onNumbers(t)
	first := output(t, pages, "-n 3 -batch 96 -epochs 1 -near red")
	if second := output(t, pages, "-n 3 -batch 96 -epochs 1 -near red"); second != first {
		t.Errorf("one seed, two results:\n%s\n%s", first, second)
	}
	if other := output(t, pages, "-n 3 -batch 96 -epochs 1 -near red -seed 2"); other == first {
		t.Errorf("two seeds, one result:\n%s", first)
	}
}

func TestMistakes(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-n 0", "-n 0: there must be 1 to 64 replicas"},
		{"-n 65", "-n 65: there must be 1 to 64 replicas"},
		{"-n x", `invalid value "x" for flag -n: parse error`},
		{"-epochs 0", "-epochs 0: there must be at least 1"},
		{"-batch 0", "-batch 0: there must be at least 1 word in a step"},
		{"-n 3 -batch 256", "-batch 256: it must be a multiple of the 3 replicas"},
		{"-batch 30", "-batch 30: it must be a multiple of the 4 replicas"},
		{"-batch 100000", "-batch 100000: there are only "},
		{"-dim 0", "-dim 0: there must be 1 to 1024 numbers"},
		{"-dim 1025", "-dim 1025: there must be 1 to 1024 numbers"},
		{"-lr 0", "-lr 0: the rate must be above 0 and finite"},
		{"-lr 1e-60", "-lr 1e-60: the rate must be above 0 and finite in float32"},
		{"-lr NaN", "-lr NaN: the rate must be above 0 and finite"},
		{"-lr 1e39", "-lr 1e+39: the rate must be above 0 and finite"},
		{"-seed -1", `invalid value "-1" for flag -seed: parse error`},
		{"-near red,quark", `-near "quark": the book has no such word (they are in lower case)`},
		{"-near red,", `-near "": the book has no such word`},
		{"-verify=2", `invalid boolean value "2" for -verify: parse error`},
		{"-speed 9", "flag provided but not defined: -speed"},
		{"-n 2 now", `unexpected argument "now"`},
	} {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(t.Context(), strings.Fields(tt.args), pages, &stdout, &stderr)
			commandtest.Mistake(t, "embedding", tt.want, code, stdout.String(), stderr.String())
		})
	}
}

// TestDefaultBatch: without -batch any number of replicas will do.
func TestDefaultBatch(t *testing.T) {
	for n := 1; n <= maxReplicas; n++ {
		cfg, err := parseFlags([]string{"-n", strconv.Itoa(n)}, io.Discard)
		if err != nil || cfg.batch%n != 0 || cfg.batch > 256 || cfg.batch+n <= 256 {
			t.Errorf("-n %d: batch %d, error %v", n, cfg.batch, err)
		}
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-h"}, pages, &stdout, &stderr); code != command.OK || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
	for _, flag := range []string{"-n replicas", "-epochs passes",
		"-batch words", "-dim numbers", "-lr rate", "-seed number", "-near words", "-verify"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("usage does not explain %s:\n%s", flag, stdout.String())
		}
	}
}

// TestBadText: what is wrong with the text is no mistake of the command line.
func TestBadText(t *testing.T) {
	for _, tt := range []struct {
		text []byte
		err  error
		want string
	}{
		{nil, errors.New("no text"), "embedding: no text\n"},
		{bytes.Repeat([]byte("a "), 49), nil, "embedding: 49 words, want 50 or more\n"},
	} {
		var stderr strings.Builder
		code := run(t.Context(), nil, func() ([]byte, error) { return tt.text, tt.err }, io.Discard, &stderr)
		if code != command.Failed || stderr.String() != tt.want {
			t.Errorf("exit code %d, standard error %q, want %q", code, stderr.String(), tt.want)
		}
	}
}

func TestInterrupt(t *testing.T) {
	for _, line := range []string{"table", "epoch 1/"} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var stdout, stderr strings.Builder
		args := strings.Fields("-epochs 1000000 -near the")
		code := run(ctx, args, page, commandtest.StopAt(line, stop, &stdout), &stderr)
		if code != command.Interrupted || stderr.String() != "embedding: interrupted\n" {
			t.Errorf("exit code %d, standard error %q", code, stderr.String())
		}
		if !strings.HasSuffix(stdout.String(), "\n") || strings.Contains(stdout.String(), "nearest") {
			t.Errorf("standard output is %q", stdout.String())
		}
	}
}

func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := run(t.Context(), strings.Fields("-epochs 1000000 -near the"), page, &fulldisk.Writer{Room: 2}, &stderr)
	if code != command.Failed || !strings.HasPrefix(stderr.String(), "embedding: ") ||
		!strings.Contains(stderr.String(), "disk full") {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}
