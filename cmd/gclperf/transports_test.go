package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// over is a list of transports: goroutines, and processes twice where there are two networks.
func over() string { return strings.Join(append([]string{"inproc"}, networks()...), ",") }

// TestTransports measures over one transport after the other, with the flags of one, and puts them side by side.
func TestTransports(t *testing.T) {
	t.Setenv(asGclperf, "")
	dir := t.TempDir()
	out, svg := filepath.Join(dir, "all.csv"), filepath.Join(dir, "all.svg")
	few := strings.Fields("-g 3 -sizes 8,9000 -iters 3 -d float,int8 -o max -w 3 -dirty -transport " + over())
	got := perform(t, t.Context(), nil, append(few, "-json", "-out", out, "-svg", svg)...)
	if got.code != command.OK || got.stderr != "" {
		t.Fatal(got)
	}
	var have, want []string
	for _, m := range parsed(t, got.stdout) {
		have = append(have, strings.Join([]string{m.Transport, m.DType, m.Op, m.Place}, " "))
		if m.N != 3 || m.Wrong != 0 || m.P50 <= 0 || m.Dirty <= 0 || m.Settings != "-iters 3 -w 3 -c 1 -dirty" {
			t.Errorf("%+v", m)
		}
	}
	for transport := range strings.SplitSeq(over(), ",") {
		for _, kind := range []string{"float32", "int8"} {
			for range 2 {
				for _, place := range []string{"oop", "ip"} {
					want = append(want, transport+" "+kind+" MAX "+place)
				}
			}
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("measured %q, want %q", have, want)
	}
	if text, err := os.ReadFile(out); err != nil || strings.Count(string(text), "\n") != 1+len(want) {
		t.Errorf("%v, %s", err, text)
	}
	if text, err := os.ReadFile(svg); err != nil || !strings.Contains(string(text), ">auto, tcp, int8<") {
		t.Errorf("%v: no line of tcp and int8 in the picture", err)
	}
	got = perform(t, t.Context(), nil, append(few, "-v")...)
	if got.code != command.OK || strings.Count(got.stdout, "How many times as fast as over inproc") != 1 ||
		strings.Count(got.stdout, "p90, p99") != len(want)/2 {
		t.Errorf("%+v", got)
	}
}

// TestSimulated: times are those of the network, the same every time, and results are checked.
func TestSimulated(t *testing.T) {
	flags := strings.Fields("-transport sim -network torus:4:12.5e9,1us -method recursive_doubling -sizes 64K -place oop -json")
	got := perform(t, t.Context(), nil, flags...)
	all := parsed(t, got.stdout)
	// A round of 64 KiB to a neighbour, and one two links far, each of which carries two messages: 3 us, and 3 times
	// 5.243.
	if got.code != command.OK || len(all) != 1 || all[0].N != 4 || all[0].Transport != "sim" || all[0].P50 != 18.7286 ||
		all[0].OfBound <= 0 || all[0].OfBound > 1 {
		t.Errorf("%+v", got)
	}
	got = perform(t, t.Context(), func(replica int, result []byte) { result[0] ^= 1 }, flags...)
	if got.code != command.Failed || !strings.Contains(got.stderr, "wrong values\n") {
		t.Errorf("%+v", got)
	}
}

// TestWrongTransport: what is wrong in the processes of one transport is said once, and ends the run.
func TestWrongTransport(t *testing.T) {
	t.Setenv(asGclperf, "wrong 1")
	got := perform(t, t.Context(), nil, strings.Fields("-transport tcp,inproc -sizes 9000 -place oop -iters 3 -json")...)
	all := parsed(t, got.stdout)
	if got.code != command.Failed || strings.Count(got.stderr, "gclperf: 1 wrong values\n") != 1 || len(all) != 1 ||
		all[0].Transport != "tcp" || all[0].Wrong != 1 {
		t.Errorf("%+v", got)
	}
	t.Setenv(asGclperf, "")
	got = perform(t, t.Context(), func(replica int, result []byte) { result[0] ^= 1 },
		strings.Fields("-transport inproc,tcp -sizes 8 -place oop -iters 3 -n 2")...)
	if got.code != command.Failed || !strings.Contains(got.stderr, "gclperf: 4 wrong values\n") ||
		!strings.Contains(got.stdout, "How many times") {
		t.Errorf("%+v", got)
	}
}

// TestInterruptedTransports: one line, and no further transport.
func TestInterruptedTransports(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("on Windows one process cannot interrupt another")
	}
	t.Setenv(asGclperf, "")
	ctx, cancel := context.WithCancel(t.Context())
	out, errs := &cancelWriter{cancel: cancel}, &safeBuffer{}
	code := run(ctx, strings.Fields("-transport tcp,inproc -n 3 -time 50ms -place oop -max 64K -csv"), out, errs)
	if code != command.Interrupted || errs.String() != "gclperf: interrupted\n" ||
		strings.Contains(out.String(), "inproc") {
		t.Errorf("code %d, stdout %q, stderr %q", code, out.String(), errs.String())
	}
}

// TestBrokenOutputOfTransports: an output that is full is an error here too.
func TestBrokenOutputOfTransports(t *testing.T) {
	t.Setenv(asGclperf, "")
	var stderr safeBuffer
	code := run(t.Context(), strings.Fields("-transport tcp,inproc -max 64 -iters 1 -csv"), &brokenWriter{100}, &stderr)
	if code != command.Failed || !strings.Contains(stderr.String(), "gclperf: "+os.ErrClosed.Error()+"\n") {
		t.Errorf("code %d, stderr %s", code, stderr.String())
	}
}

// TestReader reads CSV in pieces of any length, and passes other lines on.
func TestReader(t *testing.T) {
	all := sample()
	text := "a library, says\n" + string(printed(t, &settings{format: asCSV}, all)) + "\"\n"
	for _, length := range []int{1, 7, len(text)} {
		var seen []measurement
		var rest strings.Builder
		r := &reader{rest: &rest, take: func(m measurement) error {
			seen = append(seen, m)
			return nil
		}}
		for piece := range slices.Chunk([]byte(text), length) {
			if n, err := r.Write(piece); n != len(piece) || err != nil {
				t.Fatal(n, err)
			}
		}
		if !slices.Equal(seen, all) || rest.String() != "a library, says\n\"\n" {
			t.Errorf("pieces of %d: %+v, and the rest %q", length, seen, rest.String())
		}
	}
	full := errors.New("full")
	r := &reader{take: func(measurement) error { return full }}
	if _, err := r.Write([]byte(text[strings.Index(text, "\n")+1:])); !errors.Is(err, full) {
		t.Errorf("%v, want %v", err, full)
	}
	line := strings.Repeat("x,", len(fields())-1) + "x"
	if m, ok := parseMeasurement(strings.Split(line, ",")); ok {
		t.Errorf("%+v of %s", m, line)
	}
}

// threeTransports are samples over three transports, the last of which has not all.
func threeTransports() (all []measurement) {
	for i, name := range []string{"tcp", "unix", "inproc"} {
		for _, m := range sample() {
			m.Transport = name
			m.P50 /= []float64{1, 2, 25}[i]
			if name != "inproc" || m.Place == "oop" {
				all = append(all, m)
			}
		}
	}
	return all
}
