package metrics_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport/inproc"
	"gogcl.dev/transport/tcp"
)

// family is a metric of a scrape.
type family struct {
	kind    string
	samples map[string]float64 // by the name of the sample and its labels, as they stand there
}

// scrape is what is served, by the names of metrics.
type scrape map[string]*family

var (
	aName   = regexp.MustCompile(`^gcl_[a-z0-9_]+$`)
	aSample = regexp.MustCompile(`^([a-z0-9_]+)(?:\{((?:[a-z0-9_]+="(?:[^"\\\n]|\\["\\n])*",?)+)\})? (\S+)$`)
	anEdge  = regexp.MustCompile(`,?le="([^"]+)"$`)
)

// parse reads a scrape strictly: each metric has its help, its type and then all its samples, none of them twice; the
// buckets of a histogram ascend, and the last one is its count.
func parse(t *testing.T, text string) scrape {
	t.Helper()
	all := scrape{}
	var name, help string
	var edge, below float64 // of the bucket before
	lines := strings.SplitAfter(text, "\n")
	if last := lines[len(lines)-1]; last != "" {
		t.Errorf("the last line has no end: %q", last)
	}
	for i, line := range lines[:len(lines)-1] {
		line = strings.TrimSuffix(line, "\n")
		bad := func(what string) { t.Errorf("line %d, %s: %s", i+1, what, line) }
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			help, _, _ = strings.Cut(rest, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			var kind string
			name, kind, _ = strings.Cut(rest, " ")
			if help != name || !aName.MatchString(name) || all[name] != nil {
				bad("no help, no name, or a second time")
			}
			all[name] = &family{kind, map[string]float64{}}
			continue
		}
		m := aSample.FindStringSubmatch(line)
		if m == nil || all[name] == nil || strings.HasSuffix(m[2], ",") {
			bad("no sample")
			continue
		}
		value, err := strconv.ParseFloat(m[3], 64)
		if err != nil || value < 0 {
			bad("no value")
		}
		f, suffix := all[name], strings.TrimPrefix(m[1], name)
		switch {
		case f.kind != "histogram":
			if suffix != "" {
				bad("of another metric")
			}
		case suffix == "_bucket":
			e := anEdge.FindStringSubmatch(m[2])
			if e == nil {
				bad("a bucket without an edge")
				continue
			}
			at, err := strconv.ParseFloat(e[1], 64)
			if err != nil || edge > 0 && (at <= edge || value < below) {
				bad("a bucket out of order")
			}
			edge, below = at, value
			if e[1] == "+Inf" {
				edge = 0
			}
		case suffix == "_count":
			if value != below {
				bad("not the last bucket")
			}
		case suffix != "_sum":
			bad("of another metric")
		}
		sample := m[1] + "{" + m[2] + "}"
		if _, twice := f.samples[sample]; twice {
			bad("a second time")
		}
		f.samples[sample] = value
	}
	return all
}

// get is an answer over HTTP.
func get(m *metrics.Metrics, path string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
	return w
}

// scraped is what a Metrics serves.
func scraped(t *testing.T, m *metrics.Metrics) scrape {
	t.Helper()
	w := get(m, "/metrics")
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "text/plain; version=0.0.4; charset=utf-8" {
		t.Fatalf("%d, %v", w.Code, w.Header())
	}
	return parse(t, w.Body.String())
}

// value is the sum of samples that have a name and all labels.
func (s scrape) value(sample string, labels ...string) (sum float64) {
	for _, f := range s {
		for name, v := range f.samples {
			if strings.HasPrefix(name, sample+"{") &&
				!slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(name, l) }) {
				sum += v
			}
		}
	}
	return sum
}

// on makes a Comm count.
func on(c *gcl.Comm, m *metrics.Metrics, o gcl.Options) *gcl.Comm {
	o.Trace = m.Trace()
	c, err := c.With(o)
	if err != nil {
		panic(err)
	}
	return c
}

// run runs a body on n replicas whose calls are counted.
func run(t *testing.T, m *metrics.Metrics, n int, body func(context.Context, *gcl.Comm) error, opts ...gcl.CommOption) {
	t.Helper()
	leaktest.Check(t)
	opts = append(opts, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
	if err := gcl.Run(t.Context(), n, body, opts...); err != nil {
		t.Fatal(err)
	}
}

// TestCalls: calls are counted with their labels, their bytes and the bus factor, at each replica, on all connections
// and communicators.
func TestCalls(t *testing.T) {
	m := metrics.New(nil)
	for range 2 { // two communicators
		run(t, m, 4, func(ctx context.Context, c *gcl.Comm) error {
			ring := on(c, m, gcl.Options{Method: methods.ClockwiseRing, Implementation: gcl.Syncless}).Named("grads")
			other, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			data := make([]float32, 1000)
			for range 3 {
				if err := gcl.AllReduceInPlace(ctx, ring, data, gcl.Add); err != nil {
					return err
				}
			}
			if err := gcl.AllReduceInPlace(ctx, other, data[:10], gcl.Add); err != nil {
				return err
			}
			next, previous := (c.Rank()+1)%4, (c.Rank()+3)%4
			if err := gcl.SendRecv(ctx, c, data, next, make([]float32, 1000), previous); err != nil {
				return err
			}
			if _, err := gcl.AllReduceWithinReplica(ctx, c, [][]float32{data[:8], data[:8]}, gcl.Add); err != nil {
				return err
			}
			return c.Barrier(ctx)
		})
	}
	s := scraped(t, m)
	ring := []string{`collective="all-reduce"`, `comm_name="grads"`, `message_size="2KiB-4KiB"`, `nranks="4"`,
		`method="clockwise_ring"`, `path="messages"`, `transport="inproc"`, `replica="2"`}
	unnamed := []string{`collective="all-reduce"`, `comm_name="unknown"`, `message_size="32B-64B"`}
	sent := []string{`p2p_operation="send and receive"`, `message_size="2KiB-4KiB"`, `method="none"`, `replica="0"`}
	within := []string{`collective="all-reduce within the replica"`, `nranks="2"`, `transport="none"`, `replica="0"`}
	for _, x := range []struct {
		name   string
		labels []string
		want   float64
	}{
		{"gcl_collective_exec_time_seconds_count", ring, 6},
		{"gcl_collective_bytes_total", ring, 6 * 4000},
		{"gcl_collective_bus_bytes_total", ring, 6 * 4000 * 1.5},
		{"gcl_collective_exec_time_seconds_count", ring[:1], 4 * 2 * 4},
		{"gcl_collective_exec_time_seconds_count", unnamed, 4 * 2},
		{"gcl_p2p_exec_time_seconds_count", sent, 2},
		{"gcl_p2p_bus_bytes_total", sent, 2 * 4000},
		{"gcl_collective_exec_time_seconds_count", within, 2},
		{"gcl_collective_exec_time_seconds_count", []string{`collective="barrier"`, `message_size="0"`}, 4 * 2},
		{"gcl_collective_bus_bytes_total", []string{`collective="barrier"`}, 0},
		{"gcl_collective_price_seconds", []string{`collective="barrier"`}, 0},
		{"gcl_stalled_calls", nil, 0},
		{"gcl_aborted_communicators", nil, 0},
	} {
		if got := s.value(x.name, x.labels...); got != x.want {
			t.Errorf("%s of %v: %v, want %v", x.name, x.labels, got, x.want)
		}
	}
	for _, name := range []string{"gcl_collective_exec_time_seconds_sum", "gcl_bus_bandwidth_bytes_per_second"} {
		if s.value(name, ring...) <= 0 {
			t.Errorf("no %s", name)
		}
	}
	if got := s.value("gcl_p2p_bus_bandwidth_bytes_per_second", sent...); got <= 0 {
		t.Error("no bandwidth of messages")
	}
	if a, b := get(m, "/metrics").Body.String(), get(m, "/metrics").Body.String(); a != b {
		t.Errorf("two scrapes differ:\n%s\n%s", a, b)
	}
}

// TestPrice: the price is what Explain says of the way that the call goes, by Hybrid too.
func TestPrice(t *testing.T) {
	for name, o := range map[string]gcl.Options{
		"messages": {Method: methods.ClockwiseRing, Implementation: gcl.Syncless},
		"in step":  {Method: methods.ClockwiseRing, Implementation: gcl.Syncful},
		"hybrid":   {Implementation: gcl.Hybrid},
		"auto":     {},
	} {
		t.Run(name, func(t *testing.T) {
			m, want := metrics.New(nil), 0.0
			place, err := topology.New(topology.Config{Replicas: []int{2, 2}})
			if err != nil {
				t.Fatal(err)
			}
			run(t, m, 4, func(ctx context.Context, c *gcl.Comm) error {
				c = on(c, m, o)
				if c.Rank() == 0 {
					e, err := c.Explain(schedule.AllReduce, 1<<16, tensor.F32)
					if err != nil {
						return err
					}
					for _, way := range e.Candidates {
						if way.Chosen {
							want = way.Estimate.Seconds()
						}
					}
				}
				return gcl.AllReduceInPlace(ctx, c, make([]float32, 1<<14), gcl.Add)
			}, gcl.WithTopology(place))
			if got := scraped(t, m).value("gcl_collective_price_seconds", `replica="0"`); got != want || want == 0 {
				t.Errorf("%v s, want %v", got, want)
			}
			hybrid := scraped(t, m).value("gcl_collective_exec_time_seconds_count", `method="hybrid"`)
			if (hybrid > 0) != (name == "hybrid") {
				t.Errorf("%v calls by Hybrid", hybrid)
			}
		})
	}
}

// TestSockets: calls over sockets have their transport, and a price.
func TestSockets(t *testing.T) {
	endpoints, err := tcp.New(2, tcp.TCP)
	if err != nil {
		t.Fatal(err)
	}
	m := metrics.New(nil)
	run(t, m, 2, func(ctx context.Context, c *gcl.Comm) error {
		for range 10 {
			if err := gcl.AllReduceInPlace(ctx, c, make([]float64, 100), gcl.Add); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithEndpoints(endpoints))
	s := scraped(t, m)
	if got := s.value("gcl_collective_exec_time_seconds_count", `transport="tcp"`, `path="messages"`); got != 20 {
		t.Errorf("%v calls over TCP, want 20", got)
	}
	if s.value("gcl_collective_price_seconds", `transport="tcp"`) <= 0 {
		t.Error("no price")
	}
}

// TestErrors: calls that fail are counted by the kind of the cause, and in nothing else.
func TestErrors(t *testing.T) {
	sum := func(ctx context.Context, c *gcl.Comm, n int) error {
		return gcl.AllReduceInPlace(ctx, c, make([]float32, n), gcl.Add)
	}
	for _, x := range []struct {
		kind   string
		labels string
		body   func(ctx context.Context, c *gcl.Comm) error
		count  float64
	}{
		{"refused", `collective="reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.ReduceInPlace(ctx, c, []float32{1}, gcl.Add, 9)
		}, 2},
		{"refused", `p2p_operation="message"`, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.Send(ctx, c, []float32{1}, 9)
		}, 2},
		{"mismatch", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			return sum(ctx, c, 1+c.Rank())
		}, 2},
		{"canceled", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			return sum(ctx, c, 1)
		}, 2},
		{"deadline", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			ctx, cancel := context.WithTimeout(ctx, 0)
			defer cancel()
			return sum(ctx, c, 1)
		}, 2},
		{"aborted", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			c.Abort(errors.New("the program's own reason"))
			return sum(ctx, c, 1)
		}, 2},
		{"closed", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			if err := c.Close(); err != nil {
				return err
			}
			return sum(ctx, c, 1)
		}, 2},
		{"peer", `collective="all-reduce"`, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				return c.Close()
			}
			return sum(ctx, c, 1)
		}, 1},
	} {
		t.Run(x.kind+" "+x.labels, func(t *testing.T) {
			leaktest.Check(t)
			m := metrics.New(nil)
			ends, err := inproc.New(2)
			if err != nil {
				t.Fatal(err)
			}
			var all errgroup.Group
			for _, e := range ends {
				c, err := gcl.New(e, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
				if err != nil {
					t.Fatal(err)
				}
				all.Go(func() error { x.body(t.Context(), c); return nil })
				defer c.Close()
			}
			all.Wait()
			s := scraped(t, m)
			name := "gcl_collective_errors_total"
			if strings.HasPrefix(x.labels, "p2p") {
				name = "gcl_p2p_errors_total"
			}
			if got := s.value(name, x.labels, `kind="`+x.kind+`"`); got != x.count {
				t.Errorf("%v calls, want %v: %v", got, x.count, s[name])
			}
			if s["gcl_collective_exec_time_seconds"] != nil || s["gcl_p2p_exec_time_seconds"] != nil {
				t.Error("counted as a call that went well")
			}
		})
	}
}

// TestNext: the program's own Trace hears of all.
func TestNext(t *testing.T) {
	heard := make(chan string, 1000)
	m := metrics.New(&gcl.Trace{
		CollectiveStart: func(gcl.TraceCall) { heard <- "start" },
		RoundStart:      func(gcl.TraceCall, int) { heard <- "round" },
		CollectiveEnd:   func(_ gcl.TraceCall, err error) { heard <- fmt.Sprint("end ", err) },
	})
	run(t, m, 1, func(ctx context.Context, c *gcl.Comm) error { return c.Barrier(ctx) })
	if a, b := <-heard, <-heard; a != "start" || b != "end <nil>" || len(heard) > 0 {
		t.Errorf("%q, %q and %d more", a, b, len(heard))
	}
	if got := scraped(t, m).value("gcl_collective_exec_time_seconds_count"); got != 1 {
		t.Errorf("%v calls", got)
	}
}

// TestBounds: there are at most 100 names and 1,000 series, and two that all others share, whatever a program does. No
// call is lost.
func TestBounds(t *testing.T) {
	m := metrics.New(nil)
	end := m.Trace().CollectiveEnd
	for i := range 150 {
		for range 2 {
			end(gcl.TraceCall{Name: fmt.Sprint("name", i), Size: 2}, nil)
		}
	}
	s := scraped(t, m)
	const count = "gcl_collective_exec_time_seconds_count"
	if got := s.value(count, `comm_name="other"`); got != 100 {
		t.Errorf("%v calls of other names, want 100", got)
	}
	if got := s.value(count, `comm_name="name99"`); got != 2 {
		t.Errorf("%v calls of the last name that has room, want 2", got)
	}
	for i := range 2000 {
		end(gcl.TraceCall{Name: "name0", Size: 3 + i}, nil)
		end(gcl.TraceCall{Message: true, Size: 3 + i}, nil)
	}
	s = scraped(t, m)
	if got := s.value(count) + s.value("gcl_p2p_exec_time_seconds_count"); got != 300+4000 {
		t.Errorf("%v calls, want 4300", got)
	}
	series := 0
	for _, name := range []string{"gcl_collective_bytes_total", "gcl_p2p_bytes_total"} {
		series += len(s[name].samples)
	}
	if series != 1002 {
		t.Errorf("%d series, want 1002", series)
	}
	if s.value(count, `nranks="other"`) == 0 || s.value("gcl_p2p_exec_time_seconds_count", `nranks="other"`) == 0 {
		t.Error("nothing is shared")
	}
}

// TestEscapes: values of labels are those of the program, whatever is in them.
func TestEscapes(t *testing.T) {
	m := metrics.New(nil)
	m.Trace().CollectiveEnd(gcl.TraceCall{Name: "a\"b\\c\nd\xff,e{}"}, nil)
	if got := scraped(t, m).value("gcl_collective_bytes_total", `comm_name="a\"b\\c\nd`+"\uFFFD"+`,e{}"`); got != 0 {
		t.Error(got)
	}
	if text := get(m, "/metrics").Body.String(); !strings.Contains(text, `comm_name="a\"b\\c\nd`+"\uFFFD"+`,e{}"`) {
		t.Error(text)
	}
}

// until polls /healthz until it answers with a code, and returns the text.
func until(t *testing.T, m *metrics.Metrics, code int) string {
	t.Helper()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		w := get(m, "/healthz")
		if w.Code == code {
			return w.Body.String()
		}
		if time.Now().After(limit) {
			t.Fatalf("%d for a minute, want %d: %s", w.Code, code, w.Body)
		}
	}
}

// TestHealth: a process is ill while a call waits for a replica that does not come, and well before and after.
func TestHealth(t *testing.T) {
	m := metrics.New(nil)
	if got := until(t, m, http.StatusOK); got != "ok\n" {
		t.Errorf("%q", got)
	}
	free, done := make(chan struct{}), make(chan error)
	go func() {
		done <- gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
			if c.Rank() == 1 {
				<-free
			}
			return c.Named("step").Barrier(ctx)
		}, gcl.WithStallAfter(20*time.Millisecond))
	}()
	text := until(t, m, http.StatusServiceUnavailable)
	if !strings.HasPrefix(text, `barrier #1 "step" of group {0, 1} has waited for `) ||
		!strings.Contains(text, "waiting for replica 1, which has made no call") {
		t.Errorf("%q", text)
	}
	if got := scraped(t, m).value("gcl_stalled_calls"); got != 1 {
		t.Errorf("%v stalled calls, want 1", got)
	}
	close(free)
	if err := <-done; err != nil {
		t.Error(err)
	}
	until(t, m, http.StatusOK)
}

// TestHealthOfAborted: a communicator that is aborted is an illness until it is closed, whatever becomes of its Dups.
func TestHealthOfAborted(t *testing.T) {
	m := metrics.New(nil)
	ends, err := inproc.New(2)
	if err != nil {
		t.Fatal(err)
	}
	var comms []*gcl.Comm
	for _, e := range ends {
		c, err := gcl.New(e)
		if err != nil {
			t.Fatal(err)
		}
		comms = append(comms, c)
		if _, err := c.Dup(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	until(t, m, http.StatusOK)
	var both errgroup.Group
	for i, c := range comms {
		both.Go(func() error { return gcl.AllReduceInPlace(t.Context(), c.Named("w"), make([]float32, 1+i), gcl.Add) })
	}
	if err := both.Wait(); !errors.Is(err, gcl.ErrMismatch) {
		t.Error(err)
	}
	text := until(t, m, http.StatusServiceUnavailable)
	if !strings.HasPrefix(text, "gcl: aborted by replica ") || !strings.Contains(text, `all-reduce #1 "w"`) ||
		!strings.Contains(text, "lengths differ") || strings.Count(text, "\n") != 1 {
		t.Errorf("%q", text)
	}
	if got := scraped(t, m).value("gcl_aborted_communicators"); got != 1 {
		t.Errorf("%v aborted communicators, want 1", got)
	}
	for _, c := range comms {
		c.Close()
	}
	if w := get(m, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}

// TestHTTP: other paths and methods are refused, with what is wanted.
func TestHTTP(t *testing.T) {
	m := metrics.New(nil)
	if w := get(m, "/"); w.Code != http.StatusNotFound || w.Body.String() != "want /metrics or /healthz\n" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/metrics", nil))
	if w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

// TestScrapesWhileRunning: scrapes and calls go on at the same time, and in the end all calls are counted.
func TestScrapesWhileRunning(t *testing.T) {
	m := metrics.New(nil)
	const calls = 200
	stop := make(chan struct{})
	var scrapers errgroup.Group
	for range 2 {
		scrapers.Go(func() error {
			for {
				select {
				case <-stop:
					return nil
				default:
					scraped(t, m)
					get(m, "/healthz")
				}
			}
		})
	}
	run(t, m, 3, func(ctx context.Context, c *gcl.Comm) error {
		for i := range calls {
			named, data := c.Named(fmt.Sprint("layer", i%7)), make([]float32, 1<<(i%12))
			if err := gcl.AllReduceInPlace(ctx, named, data, gcl.Add); err != nil {
				return err
			}
		}
		return nil
	})
	close(stop)
	scrapers.Wait()
	if got := scraped(t, m).value("gcl_collective_exec_time_seconds_count"); got != 3*calls {
		t.Errorf("%v calls, want %d", got, 3*calls)
	}
}
