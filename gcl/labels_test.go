package gcl_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"runtime/trace"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
)

// tool is what a tool of go says of a file that write has written.
func tool(t *testing.T, write func(f *os.File) error, args ...string) string {
	t.Helper()
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Skip(err)
	}
	f := must(os.Create(filepath.Join(t.TempDir(), "profile")))
	if err := write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), goCommand, append(append([]string{"tool"}, args...), f.Name())...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v: %s", args, err, stderr.String())
	}
	return string(out)
}

// tags are the values of labels in a profile, as pprof has them: by key, each with its samples.
func tags(t *testing.T, write func(f *os.File) error) map[string]map[string]string {
	t.Helper()
	all, key := map[string]map[string]string{}, ""
	for line := range strings.Lines(tool(t, write, "pprof", "-tags")) {
		if name, _, ok := strings.Cut(strings.TrimSpace(line), ": Total "); ok {
			key, all[name] = name, map[string]string{}
		} else if count, value, ok := strings.Cut(strings.TrimSpace(line), "): "); ok {
			all[key][value], _, _ = strings.Cut(count, " ")
		}
	}
	return all
}

// labelCalls has calls label their goroutines until the test ends.
func labelCalls(t *testing.T) {
	gcl.LabelCalls(true)
	t.Cleanup(func() { gcl.LabelCalls(false) })
}

// TestLabelsOfWaiting: a profile of the goroutines says which replicas there are, and who is in which call.
func TestLabelsOfWaiting(t *testing.T) {
	labelCalls(t)
	var seen map[string]map[string]string
	err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		if c.Rank() == 2 {
			for strings.Count(c.Dump(), ` is in barrier #1 "step" `) < 2 {
				time.Sleep(time.Millisecond)
			}
			for seen["collective"]["barrier"] != "2" { // a call has its record before its labels
				seen = tags(t, func(f *os.File) error { return pprof.Lookup("goroutine").WriteTo(f, 0) })
			}
		}
		return c.Named("step").Barrier(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]map[string]string{
		"replica": {"0": "1", "1": "1", "2": "1"}, "collective": {"barrier": "2"}, "name": {"step": "2"},
	} {
		if got := seen[key]; !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}

// TestLabelsOfWork: a CPU profile says for which call of which replica the processor worked.
func TestLabelsOfWork(t *testing.T) {
	labelCalls(t)
	seen := map[string]map[string]string{"collective": {}, "name": {}, "replica": {}}
	calls := 1000
	if underRace {
		calls = 200
	}
	for range 100 { // a profile has few samples, or none, where others keep the processors busy
		more := tags(t, func(f *os.File) error {
			if err := pprof.StartCPUProfile(f); err != nil {
				t.Skip(err) // the tests themselves are being profiled
			}
			defer pprof.StopCPUProfile()
			return gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
				data := make([]float32, 1<<16)
				for range calls {
					if err := gcl.AllReduceInPlace(ctx, c.Named("grads"), data, gcl.Max); err != nil {
						return err
					}
				}
				return nil
			})
		})
		for key, values := range seen {
			maps.Copy(values, more[key])
		}
		if seen["collective"]["all-reduce"] != "" && seen["name"]["grads"] != "" && len(seen["replica"]) == 2 {
			return
		}
	}
	t.Errorf("labels %v", seen)
}

// oddContext is a context that cannot be compared.
type oddContext struct {
	context.Context
	_ []int
}

// TestLabelsAfterwards: after a call, whether it goes well or not, its goroutine has the labels of the call's context;
// without any there, those of the body. In the call they are beside those of the call.
func TestLabelsAfterwards(t *testing.T) {
	labelCalls(t)
	own := func() string { // the labels of this goroutine
		var text strings.Builder
		if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
			t.Error(err)
		}
		for record := range strings.SplitSeq(text.String(), "\n\n") {
			if strings.Contains(record, "gcl_test.TestLabelsAfterwards.func1") {
				return regexp.MustCompile(`(?m)^# labels: .*$`).FindString(record)
			}
		}
		return "no such goroutine"
	}
	const (
		body    = `# labels: {"replica":"0"}`
		step    = `# labels: {"replica":"0", "step":"7"}`
		inBody  = `# labels: {"collective":"all-reduce", "name":"n", "replica":"0"}`
		inStep  = `# labels: {"collective":"all-reduce", "name":"n", "replica":"0", "step":"7"}`
		refused = gcl.Operator(99)
	)
	err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		if got := own(); got != body {
			t.Errorf("in the body: %s", got)
		}
		stepped := pprof.WithLabels(ctx, pprof.Labels("step", "7"))
		pprof.SetGoroutineLabels(stepped)
		for _, call := range []struct {
			name      string
			ctx       context.Context
			op        gcl.Operator
			in, after string
		}{
			{"that of the goroutine", stepped, gcl.Max, inStep, step},
			{"that of the goroutine, refused", stepped, refused, inStep, step},
			{"that of the body", ctx, gcl.Max, inBody, body},
			{"without labels", context.Background(), gcl.Max, inBody, body},
			{"none to compare", oddContext{Context: stepped}, gcl.Max, inStep, step},
			{"nil", nil, gcl.Max, step, step},
		} {
			for range 2 { // the second time the labels are known
				in := ""
				traced := withOptions(c, gcl.Options{Trace: &gcl.Trace{
					CollectiveStart: func(gcl.TraceCall) { in = own() }}}).Named("n")
				err := gcl.AllReduceInPlace(call.ctx, traced, make([]float32, 1), call.op)
				after, good := own(), call.op == gcl.Max && call.ctx != nil
				if in != call.in || after != call.after || (err == nil) != good {
					t.Errorf("context %s: %s, afterwards %s, want %s, %s: %v", call.name, in, after, call.in,
						call.after, err)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestRegions: an execution trace has a region for each call, and says which call of its group it is.
func TestRegions(t *testing.T) {
	text := tool(t, func(f *os.File) error {
		if err := trace.Start(f); err != nil {
			t.Skip(err) // the tests themselves are being traced
		}
		defer trace.Stop()
		return gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			for range 2 {
				if err := gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 8), gcl.Max); err != nil {
					return err
				}
			}
			return c.Barrier(ctx)
		})
	}, "trace", "-d=parsed")
	count := func(pattern string) int { return len(regexp.MustCompile(pattern).FindAllString(text, -1)) }
	want := map[string]int{
		`RegionBegin .*Type="all-reduce"`: 4, `RegionEnd .*Type="all-reduce"`: 4, `RegionBegin .*Type="barrier"`: 2,
		`RegionEnd .*Type="barrier"`: 2,
	}
	for replica := range 2 {
		for n := range 2 {
			want[fmt.Sprintf(`Category="gcl" Message="all-reduce #%d \\"grads\\" on replica %d"`, n+1, replica)] = 1
		}
		want[fmt.Sprintf(`Category="gcl" Message="barrier #3 on replica %d"`, replica)] = 1
	}
	for pattern, n := range want {
		if got := count(pattern); got != n {
			t.Errorf("%d times %s, want %d", got, pattern, n)
		}
	}
	if t.Failed() {
		for line := range strings.Lines(text) {
			if strings.Contains(line, "Region") || strings.Contains(line, "gcl") {
				t.Log(line)
			}
		}
	}
}
