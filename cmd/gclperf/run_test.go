package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/oracle"
	"gogcl.dev/internal/thinned"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// safeBuffer is a bytes.Buffer that several may write to.
type safeBuffer struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// parsed is the output of -json.
func parsed(t *testing.T, text string) []measurement {
	t.Helper()
	var out []measurement
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

// operators are those that take a type.
func operators(t *testing.T, d tensor.DType) (out []gcl.Operator) {
	t.Helper()
	for _, name := range oracle.Operators(d) {
		op, err := gcl.ParseOperator(string(name))
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, op)
	}
	return out
}

// TestEverything carries out every collective with every element type, and every operator once, in both places, and
// finds nothing wrong.
func TestEverything(t *testing.T) {
	try := func(n int, d tensor.DType, op gcl.Operator, collectives, reproducible string) {
		t.Run(fmt.Sprintf("n=%d/dtype=%v/op=%v", n, d, op), func(t *testing.T) {
			got := perform(t, t.Context(), nil, "-collective",
				collectives, "-n", fmt.Sprint(n), "-dtype", d.String(), "-op", op.String(),
				"-sizes", "40000", "-iters", "1", "-json", "-root", fmt.Sprint(n-1), reproducible)
			if got.code != command.OK || got.stderr != "" {
				t.Fatalf("code %d, stderr %s", got.code, got.stderr)
			}
			want := 2 * (strings.Count(collectives, ",") + 1)
			if collectives == "all" {
				want = 2 * len(measure.Collectives())
			}
			all := parsed(t, got.stdout)
			if len(all) != want {
				t.Errorf("%d measurements, want %d", len(all), want)
			}
			for _, m := range all {
				if m.Wrong != 0 || m.P50 <= 0 || m.P90 < m.P50 || m.P99 < m.P90 || m.DType != d.String() {
					t.Errorf("%+v", m)
				}
			}
		})
	}
	for _, d := range tensor.DTypes() {
		all := operators(t, d)
		try(3, d, all[0], "all", "-reproducible=false")
		if d == tensor.F32 || d == tensor.Bool {
			for _, op := range all[1:] {
				try(3, d, op, "allreduce,reducescatter", "-reproducible")
			}
		}
	}
	try(1, tensor.F32, gcl.Add, "all", "-reproducible=false")
	try(8, tensor.F32, gcl.Add, "all", "-reproducible")
}

// TestMethods carries out every method, and two by every implementation: a measurement for each of all that is asked
// for. Those of the gallery do an all-reduce, over a power of two if nothing else.
func TestMethods(t *testing.T) {
	var names, gallery []string
	for _, m := range append(thinned.Constants(), methods.Auto) {
		names = append(names, m.String())
	}
	for _, l := range methods.Gallery() {
		if l.Name != "bruck" && l.Name != "pat" { // which do no all-reduce
			gallery = append(gallery, l.Name)
		}
	}
	all := len(measure.Collectives())
	for _, x := range []struct {
		collectives, n                        string
		each                                  int
		methods, implementations, sizes, sync string
	}{
		{"all", "3", all, strings.Join(names, ","), "Auto", "8", "-sync=false"},
		{"allreduce", "8", 1, strings.Join(gallery, ","), "Auto", "8", "-sync=false"},
		{"allgather", "3", 1, "bruck,pat", "Auto", "8", "-sync=false"},
		{"all", "3", all, "direct,clockwise_ring", "syncless,Syncful", "8,10000", "-sync=false"},
		{"all", "3", all, "direct,clockwise_ring", "syncless,Syncful", "8,10000", "-sync"},
	} {
		got := perform(t, t.Context(), nil, "-collective",
			x.collectives, "-n", x.n, "-method", x.methods, "-implementation", x.implementations,
			"-sizes", x.sizes, "-iters", "5", "-json", x.sync)
		if got.code != command.OK || got.stderr != "" {
			t.Fatalf("%+v: code %d, stderr %s", x, got.code, got.stderr)
		}
		have := map[string]int{}
		for _, m := range parsed(t, got.stdout) {
			have[strings.ToLower(m.Method+" "+m.Implementation)]++
		}
		want := map[string]int{}
		for m := range strings.SplitSeq(x.methods, ",") {
			for i := range strings.SplitSeq(x.implementations, ",") {
				want[strings.ToLower(m+" "+i)] = x.each * len(strings.Split(x.sizes, ",")) * 2
			}
		}
		if !maps.Equal(have, want) {
			t.Errorf("%+v: measurements %v, want %v", x, have, want)
		}
	}
}

// TestNative: a method that the transport does not have is an error before anything is measured.
func TestNative(t *testing.T) {
	got := perform(t, t.Context(), nil, "-method", "direct,native", "-sizes", "8")
	if want := "option Method=native: it needs a transport with collectives of its own: mpi\n"; got.code != command.Failed ||
		!strings.Contains(got.stderr, want) || strings.Contains(got.stdout, "direct") {
		t.Errorf("code %d, stderr %q, want %q; stdout %q", got.code, got.stderr, want, got.stdout)
	}
}

// TestEnvironment checks that what is printed is what GCL_OPTIONS had measured.
func TestEnvironment(t *testing.T) {
	t.Setenv("GCL_OPTIONS", `{"method": "clockwise_ring",
		"collectiveImplementation": "Syncless"}`)
	args := []string{"-n", "3", "-method", "direct", "-implementation", "Syncful", "-sizes", "8", "-iters", "2"}
	got := perform(t, t.Context(), nil, append(args, "-json")...)
	if got.code != command.OK {
		t.Fatal(got)
	}
	for _, m := range parsed(t, got.stdout) {
		if m.Method != "clockwise_ring" || m.Implementation != "Syncless" {
			t.Errorf("measured %s, %s", m.Method, m.Implementation)
		}
	}
	got = perform(t, t.Context(), nil, args...)
	for _, want := range []string{"method clockwise_ring, implementation Syncless\n",
		"\n# GCL_OPTIONS={\"method\": \"clockwise_ring\", \"collectiveImplementation\": \"Syncless\"} overrides the " +
			"flags\n"} {
		if got.code != command.OK || !strings.Contains(got.stdout, want) {
			t.Errorf("%+v does not say %q", got, want)
		}
	}
	t.Setenv("GCL_OPTIONS", `{"method": "ring"}`)
	got = perform(t, t.Context(), nil, args...)
	if got.code != command.Usage || got.stdout != "" || !strings.HasPrefix(got.stderr, "gclperf: gcl: option "+
		"method=ring in the environment variable GCL_OPTIONS: no such value, the closest is ") {
		t.Errorf("%+v", got)
	}
}

// TestNothingMeasured: a run in which no method does the collective is no success.
func TestNothingMeasured(t *testing.T) {
	got := perform(t, t.Context(), nil, "-method", "swing,hierarchical_8", "-n", "3", "-sizes", "8", "-iters", "1",
		"-csv")
	if got.code != command.Failed || strings.Count(got.stderr, "gclperf: not measured, ") != 2 ||
		!strings.Contains(got.stderr, "nothing was measured: methods: hierarchical_8: all-reduce over 3 ranks: ") {
		t.Errorf("%+v", got)
	}
}

// TestTrueSizes checks what sizes are rounded up to.
func TestTrueSizes(t *testing.T) {
	for _, c := range []struct {
		collective   string
		n            int
		sizes        string
		bytes, count []int
	}{
		{"allreduce", 8, "1,4,7,8,1K", []int{4, 8, 1024}, []int{1, 2, 256}},
		{"broadcast", 8, "8,16", []int{8, 16}, []int{2, 4}},
		{"reducescatter", 8, "8,16,32,33,36,1K", []int{32, 64, 1024}, []int{1, 2, 32}},
		{"allgather", 3, "8,1KiB", []int{12, 1032}, []int{1, 86}},
		{"alltoall", 3, "8,1KiB", []int{12, 1032}, []int{1, 86}},
		{"reduce", 8, "8,16", []int{8, 16}, []int{2, 4}},
		{"gather", 3, "8,1KiB", []int{12, 1032}, []int{1, 86}},
		{"scatter", 3, "8,1KiB", []int{12, 1032}, []int{1, 86}},
	} {
		got := perform(t, t.Context(), nil, "-collective",
			c.collective, "-n", fmt.Sprint(c.n), "-sizes", c.sizes, "-iters", "1", "-json", "-place", "oop")
		var sizes, counts []int
		for _, m := range parsed(t, got.stdout) {
			sizes, counts = append(sizes, m.Bytes), append(counts, m.Count)
		}
		if !slices.Equal(sizes, c.bytes) || !slices.Equal(counts, c.count) {
			t.Errorf("%s over %d, sizes %s: bytes %v, counts %v, want %v and %v",
				c.collective, c.n, c.sizes, sizes, counts, c.bytes, c.count)
		}
	}
}

// TestTampered breaks one element of one replica's result.
func TestTampered(t *testing.T) {
	for _, c := range measure.CollectiveNames() {
		for _, p := range []string{"oop", "ip"} {
			for _, format := range []string{"-json", "-csv", "-sync", "-batch"} {
				var mu sync.Mutex
				calls := 0
				got := perform(t, t.Context(), func(replica int, result []byte) {
					mu.Lock()
					defer mu.Unlock()
					if replica == 2 {
						calls++
						if calls == 2 { // the check after the timed calls
							result[len(result)-1] ^= 1
						}
					}
				}, "-collective", c, "-root", "2", "-place", p, "-n", "3", "-sizes", "9000", "-iters", "3", format)
				if got.code != command.Failed || !strings.Contains(got.stderr, "1 wrong elements at replica 2") ||
					!strings.Contains(got.stderr, "after the timed calls") {
					t.Errorf("%s %s %s: code %d, stderr %s", c, p, format, got.code, got.stderr)
				}
				if format == "-json" && parsed(t, got.stdout)[0].Wrong != 1 {
					t.Errorf("%s %s: %s", c, p, got.stdout)
				}
				if batch := format == "-batch"; format != "-json" && format != "-csv" &&
					strings.Contains(got.stdout, " by a Batch") != batch {
					t.Errorf("%s %s %s: %s", c, p, format, got.stdout)
				}
				if format == "-sync" && !strings.Contains(got.stdout, "FAILED") {
					t.Errorf("%s %s: %s", c, p, got.stdout)
				}
			}
		}
	}
}

// TestDirty times every collective after a rewrite too, and finds nothing wrong afterwards.
func TestDirty(t *testing.T) {
	for _, how := range []string{"-sync", "-batch", "-dtype=bool"} {
		args := []string{"-collective", "all", "-n", "3", "-sizes", "8,9000", "-iters", "3", "-root", "1", "-json", how}
		if how == "-dtype=bool" {
			args = append(args, "-op", "LOGICAL_OR")
		}
		for _, dirty := range []bool{false, true} {
			if dirty {
				args = append(args, "-dirty")
			}
			got := perform(t, t.Context(), nil, args...)
			if got.code != command.OK || got.stderr != "" {
				t.Fatalf("%s: %+v", how, got)
			}
			for _, m := range parsed(t, got.stdout) {
				if m.Wrong != 0 || dirty != (m.Dirty > 0) || !dirty && m.Dirty != -1 ||
					dirty != strings.HasSuffix(m.Settings, "-dirty") && how != "-batch" {
					t.Errorf("%s: %+v", how, m)
				}
			}
		}
	}
}

// TestPathAndProcessors: how the data went and what it took of the processors, in the fields and in the table.
func TestPathAndProcessors(t *testing.T) {
	for how, want := range map[string]string{
		"-implementation=Syncless": "messages", "-implementation=Syncful": "small peer memory", "-n=1": "local",
		"-method=clockwise_ring -implementation=Syncful": "peer memory in rounds",
		"-batch": "small peer memory",
	} {
		args := append(strings.Fields(how), "-sizes", "8,4M", "-iters", "3", "-place", "oop")
		got := perform(t, t.Context(), nil, append(args, "-json")...)
		if got.code != command.OK || got.stderr != "" {
			t.Fatalf("%s: %+v", how, got)
		}
		var paths []string
		for _, m := range parsed(t, got.stdout) {
			paths = append(paths, m.Path)
			if (m.CPU < 0) != (runtime.GOOS == "windows") || runtime.GOOS == "linux" && m.Bytes > 8 && m.CPU == 0 {
				t.Errorf("%s: %+v", how, m)
			}
		}
		if have := strings.Join(slices.Compact(paths), " "); have != want {
			t.Errorf("%s: %s, want %s", how, have, want)
		}
		got = perform(t, t.Context(), nil, append(args, "-cpu")...)
		words := strings.ReplaceAll(want, "small ", "small, ")
		if got.code != command.OK || !strings.Contains(got.stdout, "# Data went by         : "+words+"\n") ||
			strings.Contains(got.stdout, "busbw") {
			t.Errorf("%s: %+v", how, got)
		}
	}
}

func TestInterrupt(t *testing.T) {
	for _, format := range []string{"-json", "-csv", "-reproducible"} {
		ctx, cancel := context.WithCancel(t.Context())
		calls := 0
		var mu sync.Mutex
		got := perform(t, ctx, func(int, []byte) {
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls == 7 { // while the second size is checked
				cancel()
			}
		}, "-n", "2", "-place", "oop", "-max", "1K", format)
		if got.code != command.Interrupted || got.stderr != "gclperf: interrupted\n" {
			t.Errorf("%s: code %d, stderr %q", format, got.code, got.stderr)
		}
		if format == "-json" && len(parsed(t, got.stdout)) != 1 {
			t.Errorf("what was measured before: %s", got.stdout)
		}
	}
}

func TestSVG(t *testing.T) {
	dir := t.TempDir()
	floor := filepath.Join(dir, "floor.csv")
	if err := os.WriteFile(floor, []byte("arlimit,2,1024,oop,reg,2,0.170,0.160,6.024,6.024\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "out.svg")
	got := perform(t, t.Context(), nil, "-collective", "allreduce,broadcast", "-method", "auto,direct",
		"-implementation", "Syncless,Syncful", "-sizes", "8,1K", "-iters", "2", "-svg", file, "-floor", floor)
	if got.code != command.OK {
		t.Fatal(got)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"<svg", "allreduce ADD",
		"broadcast, in place", ">direct, Syncless<", ">direct, Syncful<", "floor"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in the picture", want)
		}
	}
}

// brokenWriter is full after some bytes.
type brokenWriter struct{ left int }

func (w *brokenWriter) Write(p []byte) (int, error) {
	if w.left -= len(p); w.left < 0 {
		return 0, os.ErrClosed
	}
	return len(p), nil
}

func TestBrokenOutput(t *testing.T) {
	for _, format := range []string{"-json", "-csv", "-reproducible"} {
		var stderr safeBuffer
		code := run(t.Context(), []string{"-max", "64", "-iters", "1", format}, &brokenWriter{100}, &stderr)
		if code != command.Failed || !strings.Contains(stderr.String(), os.ErrClosed.Error()) {
			t.Errorf("%s: code %d, stderr %s", format, code, stderr.String())
		}
	}
}
