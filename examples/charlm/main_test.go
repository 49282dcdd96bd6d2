package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/commandtest"
	"gogcl.dev/internal/fulldisk"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
)

// output is what a run with args printed, with the speeds, which differ from run to run, made equal.
func output(t *testing.T, args string, load func() (*text, error)) string {
	t.Helper()
	var stdout, stderr strings.Builder
	if code := run(t.Context(), strings.Fields(args), load, &stdout, &stderr); code != command.OK {
		t.Fatalf("charlm %s: exit code %d\n%s%s", args, code, stdout.String(), stderr.String())
	}
	if stderr.Len() > 0 {
		t.Errorf("charlm %s wrote to standard error: %s", args, stderr.String())
	}
	return regexp.MustCompile(`\d+( characters/s|% comm\+wait)`).ReplaceAllString(stdout.String(), "N$1")
}

// want is the form of the whole output.
var want = regexp.MustCompile(`^(\d+) characters to train on, \d+ held out, \d+ different; entropy \d\.\d\d nats, given the one before \d\.\d\d
(\d+) parameters: \d+ blocks, width \d+, heads: \d+, window \d+; batch: \d+, method: (\w+), replicas: (\d+)(?:, nothing is sharded)?
(?: *\d+%  step \d+  loss \d\.\d{4}  held out \d\.\d{4}  N characters/s  N% comm\+wait
)*100%  step (\d+)  loss \d\.\d{4}  held out \d\.\d{4}  N characters/s  N% comm\+wait
held-out loss (\d\.\d{4}) nats a character
bytes on each replica: parameters \d+, Adam's states \d+, gathered \d+, gradients \d+, others \d+, peak \d+
beside that, evaluation and the sample have a program of one replica each: parameters \d+, whole
((?s).*)
$`)

// TestLearns trains a model of the default size until it loses less than the entropy of a character given the one
// before: it knows more than which characters follow each other. With -short it is a few steps of a small model, for
// which some output must do.
func TestLearns(t *testing.T) {
	onNumbers(t)
	steps, limit, size, text := 500, 2.39, "", loadText
	if testing.Short() {
		steps, limit, size, text = 5, 5, small, fewPages
	}
	got := output(t, fmt.Sprintf("-n 2 -steps %d%s", steps, size), text)
	match := want.FindStringSubmatch(got)
	if match == nil {
		t.Fatalf("output:\n%s", got)
	}
	if match[4] != "2" || match[5] != strconv.Itoa(steps) {
		t.Errorf("replicas %s, steps %s", match[4], match[5])
	}
	loss, err := strconv.ParseFloat(match[6], 64)
	if err != nil || loss > limit || loss < 1 {
		t.Errorf("held-out loss %s, want below %v", match[6], limit)
	}
	if n := len([]rune(match[7])); n != 401 && n != 21 { // a line break, and what is made up
		t.Errorf("a sample of %d characters, want 401, or 21 of a small model", n)
	}
	t.Logf("held-out loss %s\n%s", match[6], match[7])
}

// fewPages is the text's beginning, which is soon evaluated.
func fewPages() (*text, error) {
	book, err := loadText()
	if err != nil {
		return nil, err
	}
	return newText([]byte(book.decode(book.train[:4000])))
}

// small says that a model trains in no time.
const small = " -size 10000 -batch 6 -sample 20"

func TestDeterminism(t *testing.T) {
	onNumbers(t)
	first := output(t, "-n 3 -steps 8 -seed 5"+small, fewPages)
	if second := output(t, "-n 3 -steps 8 -seed 5"+small, fewPages); second != first {
		t.Errorf("one seed, two results:\n%s\n%s", first, second)
	}
	if !want.MatchString(first) {
		t.Errorf("output:\n%s", first)
	}
	for _, other := range []string{"-seed 6", "-seed 5 -lr 0.001", "-seed 5 -temperature 0"} {
		if got := output(t, "-n 3 -steps 8 "+other+small, fewPages); got == first {
			t.Errorf("%s makes no difference:\n%s", other, first)
		}
	}
}

// TestWays: whole or sharded, with overlap, in other buckets, all the same but the memory that is reported.
func TestWays(t *testing.T) {
	bytes := regexp.MustCompile(`bytes on each replica.*`)
	first := output(t, "-n 3 -steps 8"+small, fewPages)
	for _, flags := range waysFlags {
		got := output(t, "-n 3 -steps 8 "+flags+small, fewPages)
		if bytes.ReplaceAllString(got, "") != bytes.ReplaceAllString(first, "") {
			t.Errorf("%s makes another model:\n%s\n%s", flags, got, first)
		}
		if flags != "-clip 1e6" && bytes.FindString(got) == bytes.FindString(first) {
			t.Errorf("%s takes the same memory: %s", flags, bytes.FindString(first))
		}
	}
	if got := output(t, "-n 3 -steps 8 -clip 0.001"+small, fewPages); bytes.ReplaceAllString(got,
		"") == bytes.ReplaceAllString(first, "") {
		t.Error("-clip makes no difference")
	}
}

// TestCompare has a line for each number of replicas and each way, and the parameters in as many parts.
func TestCompare(t *testing.T) {
	onNumbers(t)
	got := output(t, "-compare -minutes 0.001 -size 10000 -batch 4", fewPages)
	row := regexp.MustCompile(`(?m)^(\d+) +(\w+) +(\d+) +(\d+) +\d+ +\d+ +\d+ +\d+ +\d+$`)
	var names []string
	all := 0 // bytes of the parameters
	for _, m := range row.FindAllStringSubmatch(got, -1) {
		names = append(names, m[1]+" "+m[2])
		n, err1 := strconv.Atoi(m[1])
		parameters, err2 := strconv.Atoi(m[3])
		states, err3 := strconv.Atoi(m[4])
		if m[2] == "whole" {
			n = 1
		}
		if all == 0 {
			all = parameters
		}
		if err := errors.Join(err1, err2, err3); err != nil || states != 2*parameters || parameters*n < all ||
			parameters*n > all*11/10 && m[2] == "sharded" {
			t.Errorf("%s: want %d bytes in %d parts, and twice as many of states; %v", m[0], all, n, err)
		}
	}
	want := "1 whole, 2 whole, 2 sharded, 2 overlap, 4 whole, 4 sharded, 4 overlap"
	if have := strings.Join(names, ", "); have != want {
		t.Errorf("rows %s, want %s\n%s", have, want, got)
	}
	if left := "\n8 replicas are left out: they cannot share a batch of 4 equally\n"; !strings.Contains(got, left) ||
		strings.Count(got, "left out") != 1 {
		t.Errorf("no line %q:\n%s", left, got)
	}
}

// TestMinutes trains for half a second.
func TestMinutes(t *testing.T) {
	if got := output(t, "-n 2 -minutes 0.008"+small, fewPages); !want.MatchString(got) ||
		!strings.Contains(got, "replicas: 2") {
		t.Errorf("output:\n%s", got)
	}
}

func TestNoSample(t *testing.T) {
	got := output(t, "-n 1 -steps 1 -size 10000 -sample 0", fewPages)
	if !strings.Contains(got, ", replicas: 1, nothing is sharded\n") {
		t.Errorf("one replica shards:\n%s", got)
	}
	if !regexp.MustCompile(`, peak \d+\nbeside that, evaluation has a program of one replica: parameters \d+, whole\n$`).MatchString(got) {
		t.Errorf("output:\n%s", got)
	}
}

func TestMethods(t *testing.T) {
	onNumbers(t)
	for _, method := range append(thinned.Constants(), methods.Auto) {
		t.Run(fmt.Sprintf("method=%v", method), func(t *testing.T) {
			got := output(t, fmt.Sprintf("-n 3 -steps 2 -method %v", method)+small, fewPages)
			if match := want.FindStringSubmatch(got); match == nil || match[3] != method.String() {
				t.Errorf("output:\n%s", got)
			}
		})
	}
}

func TestMistakes(t *testing.T) {
	tests := []struct{ args, want string }{
		{"-n 0", "-n 0: there must be at least 1 replica"},
		{"-n x", `invalid value "x" for flag -n: parse error`},
		{"-n 3", "-batch 16: the 3 replicas cannot share it equally"},
		{"-batch 0", "-batch 0: want 1 to 4096 windows"},
		{"-batch 8192", "-batch 8192: want 1 to 4096 windows"},
		{"-minutes 0", "-minutes 0: want more than 0, up to 10080"},
		{"-minutes NaN", "-minutes NaN: want more than 0, up to 10080"},
		{"-minutes 1e9", "-minutes 1e+09: want more than 0, up to 10080"},
		{"-steps 0", "-steps 0: there must be at least 1"},
		{"-steps 3000000000", map[bool]string{ // by the width of an int
			true:  "-steps 3000000000: want up to 2147483647",
			false: `invalid value "3000000000" for flag -steps: value out of range`,
		}[math.MaxInt > math.MaxInt32]},
		{"-steps 5 -minutes 1", "-minutes and -steps: want one of them"},
		{"-size 2658", "-size 2658: want 2659 to 5000000 parameters"},
		{"-size 5000001", "-size 5000001: want 2659 to 5000000 parameters"},
		{"-lr -1", "-lr -1: the rate must be above 0 and finite in float32, or 0 for one by the model's width"},
		{"-lr NaN", "-lr NaN: the rate must be above 0 and finite in float32"},
		{"-lr Inf", "-lr +Inf: the rate must be above 0 and finite in float32"},
		{"-lr 1e39", "-lr 1e+39: the rate must be above 0 and finite in float32"},
		{"-lr 1e-60", "-lr 1e-60: the rate must be above 0 and finite in float32"},
		{"-seed -1", `invalid value "-1" for flag -seed: parse error`},
		{"-method zigzag", `invalid value "zigzag" for flag -method: methods: unknown method "zigzag", the closest is direct; want one of auto,`},
		{"-bucket -1", "-bucket -1: want 0 bytes or more"},
		{"-clip -1", "-clip -1: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-clip 1e39", "-clip 1e+39: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-clip NaN", "-clip NaN: the norm must be above 0 and finite in float32, or 0 for no clipping"},
		{"-compare -n 2", "-compare and -n: want one of them"},
		{"-compare -steps 2", "-compare and -steps: want one of them"},
		{"-compare -lr 0.1", "-compare and -lr: want one of them"},
		{"-compare -seed 2", "-compare and -seed: want one of them"},
		{"-n 1 -method direct", "-n 1 and -method: one replica has nobody to share with, want 2 or more"},
		{"-n 1 -whole", "-n 1 and -whole: one replica has nobody to share with, want 2 or more"},
		{"-n 1 -overlap", "-n 1 and -overlap: one replica has nobody to share with, want 2 or more"},
		{"-sample 0 -temperature 1", "-temperature and -sample 0: there is no text that it would apply to"},
		{"-compare -whole", "-compare and -whole: want one of them"},
		{"-compare -overlap", "-compare and -overlap: want one of them"},
		{"-compare -sample 1", "-compare and -sample: want one of them"},
		{"-compare -temperature 1", "-compare and -temperature: want one of them"},
		{"-sample -1", "-sample -1: want 0 characters or more"},
		{"-temperature -1", "-temperature -1: want 0 or more, and finite"},
		{"-temperature Inf", "-temperature +Inf: want 0 or more, and finite"},
		{"-split", "the layers cannot be split over 4 replicas, each with as many of the 2 heads: want a number of replicas among [1 2], or another -size"},
		{"-tokens -n 3", "the layers cannot be split over 3 replicas, each with as many of the 4 heads: want a number of replicas among [1 2 4], or another -size"},
		{"-split -survive", "-split and -survive: want one of them, since those who are left may not share the heads equally"},
		{"-split -sample 0", "-sample 0: there is no text to make up, want 1 or more with -split and -tokens"},
		{"-tokens -sample 0", "-sample 0: there is no text to make up, want 1 or more with -split and -tokens"},
		{"-tokens -split", "-tokens and -split: want one of them"},
		{"-tokens -steps 2", "-tokens and -steps: want one of them"},
		{"-tokens -n 2 -minutes 1", "-minutes and -svg are of the table of -tokens, which has replicas of its own: leave -n out, and start it by hand"},
		{"-tokens -svg none/a.svg", "-svg none/a.svg: "},
		{"-tokens -svg=", "-svg: the name is empty"},
		{"-svg a.svg", "-svg: it is a picture of the table of -tokens, which is not given"},
		{"-compare -tokens", "-compare and -tokens: want one of them"},
		{"-speed 9", "flag provided but not defined: -speed"},
		{"now", `unexpected argument "now"`},
	}
	ctx, stop := context.WithCancel(t.Context())
	stop() // what is no mistake must not train
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			var stdout, stderr strings.Builder
			code := run(ctx, strings.Fields(tt.args), fewPages, &stdout, &stderr)
			commandtest.Mistake(t, "charlm", tt.want, code, stdout.String(), stderr.String())
		})
	}
}

// TestDiverges: a rate that makes numbers too large is an error of the training. In the second step it shows in the
// evaluation after it, and later in that of the next step.
func TestDiverges(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"-n 2 -steps 2 -lr 1e38", `step 2: the held-out loss is`},
		{"-n 2 -steps 1000 -lr 1e38", `step \d+: the loss is`},
	} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), strings.Fields(tt.args+small), fewPages, &stdout, &stderr)
		form := regexp.MustCompile(`^charlm: ` + tt.want +
			` (NaN|[+-]Inf): training has diverged, -lr should be less\n$`)
		if code != command.Failed || !form.MatchString(stderr.String()) ||
			strings.Contains(stdout.String(), "nats a character") {
			t.Errorf("%s: exit code %d, standard error %q\n%s", tt.args, code, stderr.String(), stdout.String())
		}
	}
}

// TestFinite: with -finite the error says where the first number was that is not finite.
func TestFinite(t *testing.T) {
	var stdout, stderr strings.Builder
	code := run(t.Context(), strings.Fields("-n 2 -steps 2 -lr 1e38 -finite"+small), fewPages, &stdout, &stderr)
	form := regexp.MustCompile(`^charlm: ir: replica \d: \w+ built at \w+\.go:\d+ in graph .*: element \d+ of float32 .* is (NaN|[+-]Inf), not a finite number.*\n$`)
	if code != command.Failed || !form.MatchString(stderr.String()) {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}

func TestHelp(t *testing.T) {
	var stdout, stderr strings.Builder
	if code := run(t.Context(), []string{"-h"}, fewPages, &stdout, &stderr); code != command.OK || stderr.Len() > 0 {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
	for _, flag := range []string{"-n replicas", "-minutes time", "-steps number", "-size parameters", "-batch windows",
		"-lr rate", "-seed number", "-method name", "-whole",
		"-overlap", "-bucket bytes", "-clip norm", "-compare", "-split", "-tokens", "-svg file", "-sample characters", "-temperature degree"} {
		if !strings.Contains(stdout.String(), flag) {
			t.Errorf("usage does not explain %s:\n%s", flag, stdout.String())
		}
	}
}

// TestInterrupt: in training, in the evaluation at its end, while the sample is made, and in the comparison.
func TestInterrupt(t *testing.T) {
	for _, tt := range []struct{ args, after, notAnyMore string }{
		{"-n 3 -steps 1000" + small, "step ", "nats a character"},
		{"-n 2 -steps 1" + small, "100%", "nats a character"},
		{"-n 2 -steps 1" + small, "beside that", "whole\n\n"},
		{"-n 2 -steps 1 -split -size 65000 -batch 4", "100%", "nats a character"},
		{"-tokens -size 64000 -sample 1000000000", "random", "tokens a second"},
		{"-compare -minutes 0.001 -size 10000 -batch 4", "replicas ", "whole"},
	} {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		var stdout, stderr strings.Builder
		code := run(ctx, strings.Fields(tt.args), fewPages, commandtest.StopAt(tt.after, stop, &stdout), &stderr)
		if code != command.Interrupted || stderr.String() != "charlm: interrupted\n" {
			t.Errorf("%s, after %q: exit code %d, standard error %q", tt.args, tt.after, code, stderr.String())
		}
		if got := stdout.String(); !strings.HasSuffix(got, "\n") || !strings.Contains(got, tt.after) ||
			strings.Contains(got, tt.notAnyMore) {
			t.Errorf("%s, after %q: standard output ends in %q", tt.args, tt.after, got[max(0, len(got)-80):])
		}
	}
}

// TestFollows repeats a training by hand: each report is of the steps since the one before, the rate is that of the
// step, and what is held out is evaluated, and the sample made, with the parameters at the end.
func TestFollows(t *testing.T) {
	onNumbers(t)
	const steps = 2 * reports
	got := output(t, fmt.Sprintf("-n 2 -steps %d -temperature 0", steps)+small, fewPages)
	cfg, err := parseFlags(strings.Fields("-n 2"+small), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	book, err := fewPages()
	if err != nil {
		t.Fatal(err)
	}
	s := sizeFor(cfg.parameters, len(book.vocabulary))
	tr, err := newTrainer(cfg.way, s, cfg.batch/2, cfg.seed)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	random := rand.New(rand.NewPCG(cfg.seed, batchStream))
	var lines []string
	sum := 0.0
	for step := 1; step <= steps; step++ {
		book.drawBatch(random, tr.chars, tr.targets, s.window)
		loss, err := tr.run(t.Context(), step, rateAt(cfg.peak(s), step, float64(step-1)/steps))
		if err != nil {
			t.Fatal(err)
		}
		if sum += loss; step%2 == 0 {
			lines = append(lines, fmt.Sprintf("%3d%%  step %d  loss %.4f", step*100/steps, step, sum/2))
			sum = 0
		}
	}
	v, err := tr.values()
	if err != nil {
		t.Fatal(err)
	}
	e, err := newEvaluator(s, v)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	heldOut, err := e.loss(t.Context(), book.heldOut)
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, fmt.Sprintf("held-out loss %.4f nats a character", heldOut))
	g, err := newGenerator(s, v)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	begin, err := book.encode([]rune{'\n'})
	if err != nil {
		t.Fatal(err)
	}
	sample, err := g.generate(t.Context(), nil, begin, cfg.sample, 0)
	if err != nil {
		t.Fatal(err)
	}
	lines = append(lines, "whole\n"+book.decode(sample)+"\n")
	if strings.Trim(book.decode(sample), "\n") == "" {
		t.Error("the sample is that of a model that knows nothing")
	}
	// A percentage is rounded, and is told by the step anyway.
	got = regexp.MustCompile(`(?m)^ *\d+%`).ReplaceAllString(got, "")
	for _, line := range lines {
		if _, after, found := strings.Cut(line, "%"); found {
			line = after
		}
		if !strings.Contains(got, line) {
			t.Errorf("no %q in\n%s", line, got)
		}
	}
}

// TestPart: minutes are minutes.
func TestPart(t *testing.T) {
	for _, tt := range []struct {
		cfg  config
		step int
		took time.Duration
		want float64
	}{
		{config{minutes: 2}, 7, 30 * time.Second, 0.25},
		{config{minutes: 2}, 7, 2 * time.Minute, 1},
		{config{minutes: 2}, 7, time.Hour, 1},
		{config{minutes: 2, steps: 8}, 6, time.Hour, 0.75},
	} {
		if got := tt.cfg.part(tt.step, tt.took); got != tt.want {
			t.Errorf("%+v: after step %d and %v part %v is done, want %v", tt.cfg, tt.step, tt.took, got, tt.want)
		}
	}
}

func TestFullDisk(t *testing.T) {
	var stderr strings.Builder
	code := run(t.Context(), strings.Fields("-n 1 -steps 1"+small), fewPages, &fulldisk.Writer{Room: 1}, &stderr)
	if code != command.Failed || stderr.String() != "charlm: standard output: disk full\n" {
		t.Errorf("exit code %d, standard error %q", code, stderr.String())
	}
}
