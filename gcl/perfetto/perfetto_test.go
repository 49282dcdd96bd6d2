package perfetto_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/gcl/perfetto"
	"gogcl.dev/internal/fulldisk"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods"
	"gogcl.dev/topology"
)

// entry is an event of a file.
type entry struct {
	Name, Cat, Ph, ID, BP, S string
	TS                       *float64
	Dur                      float64
	PID, TID                 *int
	Args                     map[string]any
}

// row is a thread of a file.
type row struct{ pid, tid int }

// content is a file as a viewer sees it.
type content struct {
	entries      []entry
	replicas     map[int]string // names by process id
	rows         map[row]string
	slices       map[row][]entry
	starts, ends map[string]entry // of arrows, by id
	marks        []entry
}

// read parses a file and checks that slices nest, that every process and thread has a name of its own, and that no
// arrow's id comes twice.
func read(t *testing.T, file []byte) *content {
	t.Helper()
	var all struct{ TraceEvents []entry }
	if err := json.Unmarshal(file, &all); err != nil {
		t.Fatalf("%v in\n%s", err, file)
	}
	c := &content{entries: all.TraceEvents, replicas: map[int]string{}, rows: map[row]string{},
		slices: map[row][]entry{}, starts: map[string]entry{}, ends: map[string]entry{}}
	for i, e := range c.entries {
		if e.TS == nil || e.PID == nil || e.TID == nil || e.Name == "" {
			t.Fatalf("event %d lacks a field: %+v", i, e)
		}
		at := row{*e.PID, *e.TID}
		switch e.Ph + " " + e.Name {
		case "M process_name":
			if c.replicas[at.pid] != "" {
				t.Errorf("process %d has two names", at.pid)
			}
			c.replicas[at.pid] = fmt.Sprint(e.Args["name"])
			continue
		case "M thread_name":
			if c.rows[at] != "" {
				t.Errorf("row %v has two names", at)
			}
			c.rows[at] = fmt.Sprint(e.Args["name"])
			continue
		}
		if e.Ph != "M" && (c.replicas[at.pid] == "" || c.rows[at] == "") {
			t.Errorf("event %d is of %v, which has no name", i, at)
		}
		switch e.Ph {
		case "M":
		case "X":
			for _, other := range c.slices[at] {
				if apart := *e.TS >= end(other); !apart && (*e.TS < *other.TS || end(e) > end(other)) {
					t.Errorf("%q %v is neither inside %q %v nor after it", e.Name, *e.TS, other.Name, *other.TS)
				}
			}
			c.slices[at] = append(c.slices[at], e)
		case "s", "f":
			ends := c.starts
			if e.Ph == "f" {
				ends = c.ends
				if e.BP != "e" {
					t.Errorf("event %d: the arrow ends at the next slice", i)
				}
			}
			if _, twice := ends[e.ID]; twice || e.ID == "" {
				t.Errorf("event %d: %s id %q twice, or none", i, e.Ph, e.ID)
			}
			ends[e.ID] = e
		case "i":
			c.marks = append(c.marks, e)
		default:
			t.Errorf("event %d: phase %q", i, e.Ph)
		}
	}
	return c
}

// end is rounded to nanoseconds, as the two numbers of the file are: their sum is not exact.
func end(e entry) float64 { return math.Round((*e.TS+e.Dur)*1000) / 1000 }

// around is the names of the slices around an event.
func (c *content) around(e entry) string {
	var names []string
	for _, s := range c.slices[row{*e.PID, *e.TID}] {
		if *s.TS < *e.TS && *e.TS < end(s) {
			names = append(names, s.Name)
		}
	}
	return strings.Join(names, ": ")
}

// ends reports whether an arrow may lead between slices, by their names: they have one, but the two sides of a message
// are other calls, of which that at the end of the arrow names the replica at the start.
func ends(from, to string, replica int) bool {
	call, round, _ := strings.Cut(to, ": ")
	if !strings.Contains(call, "receive #") {
		return from == to
	}
	return strings.HasSuffix(from, ": "+round) && strings.Contains(call, fmt.Sprintf(" from replica %d", replica))
}

// checkArrows checks that arrows join rounds of the same name and call on two replicas, one to one.
func (c *content) checkArrows(t *testing.T) {
	t.Helper()
	for id, from := range c.starts {
		to, ok := c.ends[id]
		switch {
		case !ok:
			t.Errorf("a message of replica %d in %s is received by nobody", *from.PID, c.around(from))
		case *from.PID == *to.PID || from.Name != to.Name || from.Cat != to.Cat ||
			!ends(c.around(from), c.around(to), *from.PID) || !strings.Contains(c.around(from), "round "):
			t.Errorf("arrow from %q of replica %d to %q of replica %d",
				c.around(from), *from.PID, c.around(to), *to.PID)
		case *to.TS <= *from.TS:
			t.Errorf("%s: received at %v, sent at %v", c.around(from), *to.TS, *from.TS)
		}
	}
	for id, to := range c.ends {
		if _, ok := c.starts[id]; !ok {
			t.Errorf("replica %d receives in %s what nobody sends", *to.PID, c.around(to))
		}
	}
}

// file is what a Timeline writes.
func file(t *testing.T, timeline *perfetto.Timeline) []byte {
	t.Helper()
	var b bytes.Buffer
	if n, err := timeline.WriteTo(&b); err != nil || n != int64(b.Len()) {
		t.Fatalf("%d of %d bytes, error %v", n, b.Len(), err)
	}
	return b.Bytes()
}

// ways are calls on four replicas.
func ways() map[string]func(context.Context, *gcl.Comm) error {
	reduce := func(elements int, o gcl.Options) func(context.Context, *gcl.Comm) error {
		return func(ctx context.Context, c *gcl.Comm) error {
			o := o
			o.Trace = c.Options().Trace
			c, err := c.With(o)
			if err != nil {
				return err
			}
			for range 3 {
				if err := gcl.AllReduceInPlace(ctx, c, make([]float32, elements), gcl.Add); err != nil {
					return err
				}
			}
			return nil
		}
	}
	by := func(m methods.Method) gcl.Options { return gcl.Options{Method: m, Implementation: gcl.Syncless} }
	windows := by(methods.ClockwiseRing)
	windows.MaxBytesPerTile = 1 // segments of 32 bytes, of which 64 make a window
	reproducible := by(methods.ClockwiseRing)
	reproducible.Reproducible = true
	return map[string]func(context.Context, *gcl.Comm) error{
		"ring":         reduce(1000, by(methods.ClockwiseRing)),
		"two rings":    reduce(1000, by(methods.QuadDirectionalRing)),
		"direct":       reduce(1000, by(methods.Direct)),
		"doubling":     reduce(10, by(methods.RecursiveDoubling)),
		"windows":      reduce(5000, windows),
		"reproducible": reduce(1000, reproducible),
		"hybrid":       reduce(1000, gcl.Options{Implementation: gcl.Hybrid}),
		"barrier": func(ctx context.Context, c *gcl.Comm) error {
			return c.Barrier(ctx)
		},
		"messages": func(ctx context.Context, c *gcl.Comm) error {
			next, previous := (c.Rank()+1)%4, (c.Rank()+3)%4
			in := make([]float32, 100)
			if c.Rank() == 0 { // so that a replica's numbers of what it sends and of what it receives differ
				if err := gcl.Send(ctx, c, in, 1); err != nil {
					return err
				}
			}
			if c.Rank() == 1 {
				if err := gcl.Recv(ctx, c, in, 0); err != nil {
					return err
				}
			}
			for range 3 {
				if err := gcl.SendRecv(ctx, c, make([]float32, 100), next, in, previous); err != nil {
					return err
				}
			}
			return nil
		},
		"tensors": func(ctx context.Context, c *gcl.Comm) error {
			o := by(methods.ClockwiseRing)
			o.Trace, o.MaxBytesPerTile = c.Options().Trace, 1
			c, err := c.With(o)
			if err != nil {
				return err
			}
			bufs := [][]int32{make([]int32, 100), make([]int32, 3), make([]int32, 1000)}
			return gcl.AllReduceManyInPlace(ctx, c, bufs, gcl.Add)
		},
		// Replicas 0 and 1 are together in two groups, each of which counts its calls.
		"groups": func(ctx context.Context, c *gcl.Comm) error {
			if err := reduce(1000, by(methods.Direct))(ctx, c); err != nil {
				return err
			}
			g, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
			if err != nil {
				return err
			}
			return reduce(1000, by(methods.Direct))(ctx, g)
		},
		// Even replicas open the last two in another order, so that they have other numbers.
		"dups": func(ctx context.Context, c *gcl.Comm) error {
			o := by(methods.Direct)
			o.Trace = c.Options().Trace
			c, err := c.With(o)
			if err != nil {
				return err
			}
			a, err := c.Dup(ctx)
			if err != nil {
				return err
			}
			defer a.Close()
			from := []*gcl.Comm{a, c}
			names := []string{"of a", "of c"}
			opened := map[string]*gcl.Comm{}
			for i := range 2 {
				k := (i + c.Rank()) % 2
				d, err := from[k].Dup(ctx)
				if err != nil {
					return err
				}
				defer d.Close()
				opened[names[k]] = d.Named(names[k])
			}
			for _, name := range names {
				if err := gcl.AllReduceInPlace(ctx, opened[name], make([]int32, 10), gcl.Add); err != nil {
					return err
				}
			}
			return c.Barrier(ctx) // nobody closes before all are through
		},
	}
}

// TestArrows: in one process and in files of several that are joined, every message has an arrow.
func TestArrows(t *testing.T) {
	leaktest.Check(t)
	const n = 4
	ladder, err := topology.New(topology.Config{Shape: topology.JoinedLadder, Replicas: []int{2, 2}})
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range ways() {
		t.Run("how=goroutines/"+name, func(t *testing.T) {
			var timeline perfetto.Timeline
			o := gcl.WithOptions(gcl.Options{Trace: timeline.Trace()})
			if err := gcl.Run(t.Context(), n, body, o, gcl.WithTopology(ladder)); err != nil {
				t.Fatal(err)
			}
			c := read(t, file(t, &timeline))
			c.checkArrows(t)
			if len(c.replicas) != n || len(c.starts) == 0 && name != "barrier" {
				t.Errorf("replicas %v, %d arrows", c.replicas, len(c.starts))
			}
		})
		t.Run("how=processes/"+name, func(t *testing.T) {
			timelines := processes(t, n, body, gcl.WithTopology(ladder))
			var files []io.Reader
			for rank, timeline := range timelines {
				text := file(t, timeline)
				files = append(files, bytes.NewReader(text))
				if c := read(t, text); len(c.replicas) != 1 ||
					!strings.HasPrefix(c.replicas[rank], fmt.Sprintf("replica %d on ", rank)) {
					t.Errorf("the file of replica %d has %v", rank, c.replicas)
				}
			}
			var joined bytes.Buffer
			if err := perfetto.Join(&joined, files...); err != nil {
				t.Fatal(err)
			}
			c := read(t, joined.Bytes())
			c.checkArrows(t)
			if len(c.replicas) != n || len(c.starts) == 0 && name != "barrier" {
				t.Errorf("replicas %v, %d arrows", c.replicas, len(c.starts))
			}
			slices := 0
			for _, timeline := range timelines {
				slices += timeline.Slices()
			}
			for _, row := range c.slices {
				slices -= len(row)
			}
			if slices != 0 {
				t.Errorf("%d slices are lost", slices)
			}
		})
	}
}

// processes runs body on replicas of this process that meet as processes do, and returns what each has told.
func processes(t *testing.T, n int, body func(context.Context, *gcl.Comm) error,
	opts ...gcl.CommOption) []*perfetto.Timeline {
	t.Helper()
	where := "dir:" + t.TempDir()
	if runtime.GOOS == "linux" {
		where = fmt.Sprintf("unix:@perfetto-test-%d-%s", os.Getpid(), strings.ReplaceAll(t.Name(), "/", "-"))
	}
	timelines := make([]*perfetto.Timeline, n)
	var all errgroup.Group
	for rank := range n {
		timelines[rank] = new(perfetto.Timeline)
		all.Go(func() error {
			cfg := gcl.JoinConfig{Rank: rank, Size: n, Job: "test", Rendezvous: where, Timeout: time.Minute,
				Secret: []byte("a secret of this test")}
			o := gcl.WithOptions(gcl.Options{Trace: timelines[rank].Trace()})
			return gcl.RunProcess(t.Context(), cfg, body, append([]gcl.CommOption{o}, opts...)...)
		})
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	return timelines
}

// TestMarks: a call that is refused, or that never got its turn, is a mark with its error. The other calls of its row
// are as if there were none.
func TestMarks(t *testing.T) {
	var timeline perfetto.Timeline
	err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		if err := gcl.BroadcastInPlace(ctx, c.Named("bad root"), make([]int32, 1), 4); err == nil {
			return errors.New("no error")
		}
		return gcl.AllReduceInPlace(ctx, c, make([]int32, 1), gcl.Add)
	}, gcl.WithOptions(gcl.Options{Trace: timeline.Trace()}))
	if err != nil {
		t.Fatal(err)
	}
	c := read(t, file(t, &timeline))
	if len(c.marks) != 1 || c.marks[0].Name != `broadcast #1 "bad root"` ||
		!strings.Contains(fmt.Sprint(c.marks[0].Args["error"]), "root 4") {
		t.Errorf("marks %v", c.marks)
	}
	if s := c.slices[row{0, 0}]; len(s) != 1 || s[0].Name != "all-reduce #2" {
		t.Errorf("slices %v", s)
	}
}

// TestWhileRunning writes while a call is going on: it is unfinished, and so is its round.
func TestWhileRunning(t *testing.T) {
	var timeline perfetto.Timeline
	began, written := make(chan struct{}), make(chan struct{})
	trace := *timeline.Trace()
	begin := trace.RoundStart
	trace.RoundStart = func(c gcl.TraceCall, round int) {
		begin(c, round)
		if c.Replica == 0 && round == 0 {
			close(began)
			<-written
		}
	}
	done := make(chan error)
	go func() {
		done <- gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
			return gcl.AllReduceInPlace(ctx, c, make([]int32, 10), gcl.Add)
		}, gcl.WithOptions(gcl.Options{Trace: &trace, Method: methods.ClockwiseRing, Implementation: gcl.Syncless}))
	}()
	<-began
	for _, s := range read(t, file(t, &timeline)).slices[row{0, 0}] {
		if s.Args["unfinished"] != true {
			t.Errorf("%s: %v, want it unfinished", s.Name, s.Args)
		}
	}
	close(written)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	c := read(t, file(t, &timeline))
	c.checkArrows(t)
	for _, s := range c.slices[row{0, 0}] {
		if s.Args["unfinished"] != nil {
			t.Errorf("%s: %v, want it finished", s.Name, s.Args)
		}
	}
}

// TestWriteAlways writes again and again while replicas are at work.
func TestWriteAlways(t *testing.T) {
	timeline := &perfetto.Timeline{Limit: 2000}
	done := make(chan error)
	go func() {
		done <- gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
			for range 200 {
				if err := gcl.AllReduceInPlace(ctx, c, make([]int32, 100), gcl.Add); err != nil {
					return err
				}
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Trace: timeline.Trace(), Method: methods.ClockwiseRing,
			Implementation: gcl.Syncless}))
	}()
	for going := true; going; {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			going = false
		default:
		}
		if !json.Valid(file(t, timeline)) {
			t.Fatal("a file is no JSON")
		}
	}
	read(t, file(t, timeline))
}

// TestLimit: no more than Limit events are kept, and the others are counted.
func TestLimit(t *testing.T) {
	timeline := &perfetto.Timeline{Limit: 100}
	told := 0 // events of the one replica
	trace := *timeline.Trace()
	segment := trace.Segment
	trace.Segment = func(c gcl.TraceCall, round int, s gcl.TraceSegment) {
		segment(c, round, s)
		if c.Replica == 0 {
			told++
		}
	}
	err := gcl.Run(t.Context(), 2, func(ctx context.Context, c *gcl.Comm) error {
		for range 100 {
			if err := gcl.AllReduceInPlace(ctx, c, make([]int32, 10), gcl.Add); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithOptions(gcl.Options{Trace: &trace, Method: methods.ClockwiseRing, Implementation: gcl.Syncless}))
	if err != nil {
		t.Fatal(err)
	}
	c := read(t, file(t, timeline))
	kept := 0
	for _, e := range c.entries {
		if e.Ph != "M" {
			kept++
		}
	}
	// Each call is one event with two rounds, of one send and one receive each: 7 events on each of two replicas.
	if all := kept + timeline.Dropped(); kept > 100 || kept < 95 || all > 1400 || told != 400 {
		t.Errorf("%d events kept and %d not, want 100 of 1400; %d segments", kept, timeline.Dropped(), told)
	}
	if got := c.entries[0].Args["dropped"]; got != float64(timeline.Dropped()) || got == 0. {
		t.Errorf("the file says %v, want %d", got, timeline.Dropped())
	}
}

// TestEmpty: a Timeline that was told nothing writes a good file, which can be joined.
func TestEmpty(t *testing.T) {
	var timeline perfetto.Timeline
	text := file(t, &timeline)
	if c := read(t, text); len(c.entries) != 1 || len(timeline.Replicas()) != 0 || timeline.Slices() != 0 {
		t.Errorf("file %s", text)
	}
	var out bytes.Buffer
	if err := perfetto.Join(&out, bytes.NewReader(text), bytes.NewReader(text)); err != nil {
		t.Error(err)
	}
	read(t, out.Bytes())
}

// of is a file of a replica with one slice at 1.5 us.
func of(replica int, epoch int64) string {
	return fmt.Sprintf(`{"traceEvents":[
{"name":"gogcl timeline","ph":"M","ts":0,"pid":%d,"tid":0,"args":{"epoch":"%d","replicas":[%[1]d],"dropped":2}},
{"name":"process_name","ph":"M","ts":0,"pid":%[1]d,"tid":0,"args":{"name":"replica %[1]d"}},
{"name":"thread_name","ph":"M","ts":0,"pid":%[1]d,"tid":0,"args":{"name":"connection 0"}},
{"name":"call","ph":"X","ts":1.5,"dur":2,"pid":%[1]d,"tid":0,"args":{"bytes":9007199254740993}}
]}
`, replica, epoch)
}

// TestJoin: times count from the earliest epoch, to the nanosecond, and what Join does not know it leaves as it is.
func TestJoin(t *testing.T) {
	const epoch = int64(1_795_366_826_359_572_459)
	dir := t.TempDir()
	var names []string
	for r, at := range []int64{epoch + 1_000_001, epoch, epoch + 3600e9} {
		names = append(names, filepath.Join(dir, perfetto.FileName("trace.json", r)))
		if err := os.WriteFile(names[r], []byte(of(r, at)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(dir, "trace.json")
	if err := perfetto.JoinFiles(out, names[2], names[0]); err != nil {
		t.Fatal(err)
	}
	both, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	// A joined file can be joined.
	again := filepath.Join(dir, "again.json")
	if err := perfetto.JoinFiles(again, out, names[1]); err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile(again)
	if err != nil {
		t.Fatal(err)
	}
	c := read(t, all)
	for r, want := range []float64{1001.501, 1.5, 3600e6 + 1.5} {
		if s := c.slices[row{r, 0}]; len(s) != 1 || *s[0].TS != want || s[0].Dur != 2 {
			t.Errorf("replica %d: %+v, want one at %v", r, s, want)
		}
	}
	if head := c.entries[0]; fmt.Sprint(head.Args["replicas"], head.Args["dropped"]) != "[0 1 2] 6" {
		t.Errorf("first event %v", head)
	}
	if n := bytes.Count(all, []byte("9007199254740993")); n != 3 {
		t.Errorf("%d of 3 numbers are as they were", n)
	}
	for want, err := range map[string]error{
		"no files to join":                       perfetto.JoinFiles(out),
		"into itself":                            perfetto.JoinFiles(out, names[0], out),
		"again.json and " + names[0]:             perfetto.JoinFiles(filepath.Join(dir, "x"), again, names[0]),
		"no such file":                           perfetto.JoinFiles(filepath.Join(dir, "x"), filepath.Join(dir, "none")),
		"is a directory":                         perfetto.JoinFiles(dir, names[0]),
		"both have replica 3":                    perfetto.Join(io.Discard, strings.NewReader(of(3, 0)), strings.NewReader(of(3, 1))),
		"disk full":                              perfetto.Join(&fulldisk.Writer{}, strings.NewReader(of(3, 0))),
		"file 1: unexpected EOF":                 perfetto.Join(io.Discard, strings.NewReader(of(3, 0)), strings.NewReader(strings.TrimSuffix(of(4, 1), "\n]}\n"))),
		"file 0 is no file of a Timeline: EOF":   perfetto.Join(io.Discard, strings.NewReader("")),
		"file 1 is nil":                          perfetto.Join(io.Discard, strings.NewReader(of(3, 0)), nil),
		"Join needs a writer":                    perfetto.Join(nil, strings.NewReader(of(3, 0))),
		"it has [, want {":                       perfetto.Join(io.Discard, strings.NewReader("[]")),
		`its first event is "x", want "gogcl ti`: perfetto.Join(io.Discard, strings.NewReader(`{"traceEvents":[{"name":"x"}]}`)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "perfetto: ") {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if now, err := os.ReadFile(out); err != nil || !bytes.Equal(now, both) {
		t.Errorf("joining into itself has changed the file, error %v", err)
	}
}

// TestWriteErrors: what cannot be written is an error.
func TestWriteErrors(t *testing.T) {
	var timeline perfetto.Timeline
	err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		for range 1000 { // a file of several pieces
			if err := c.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	}, gcl.WithOptions(gcl.Options{Trace: timeline.Trace()}))
	if err != nil {
		t.Fatal(err)
	}
	if err := timeline.WriteFile(filepath.Join(t.TempDir(), "none", "trace.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want that there is no directory", err)
	}
	for room := range 3 {
		if _, err := timeline.WriteTo(&fulldisk.Writer{Room: room}); !errors.Is(err, fulldisk.Err) {
			t.Errorf("room for %d writes: error %v", room, err)
		}
	}
}

func TestFileName(t *testing.T) {
	for in, want := range map[string]string{
		"trace.json": "trace-3.json", "trace": "trace-3", "a.b/t.x.json": "a.b/t.x-3.json", "": "-3",
	} {
		if got := perfetto.FileName(in, 3); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// FuzzJoin: any input is joined into JSON, or is an error.
func FuzzJoin(f *testing.F) {
	f.Add(of(1, 5))
	f.Add(of(2, -1<<63))
	f.Add(`{"traceEvents":[{"name":"gogcl timeline","args":{"epoch":"0"}},{"ts":1e300,"args":null}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var out bytes.Buffer
		if err := perfetto.Join(&out, strings.NewReader(of(1000, 7)), strings.NewReader(text)); err == nil {
			if !json.Valid(out.Bytes()) {
				t.Errorf("%s", out.Bytes())
			}
		}
	})
}

func ExampleTimeline() {
	var timeline perfetto.Timeline
	err := gcl.Run(context.Background(), 2, func(ctx context.Context, c *gcl.Comm) error {
		return gcl.AllReduceInPlace(ctx, c.Named("grads"), make([]float32, 1000), gcl.Mean)
	}, gcl.WithOptions(gcl.Options{Trace: timeline.Trace()}))
	if err != nil {
		fmt.Println(err)
	}
	if _, err := timeline.WriteTo(io.Discard); err != nil { // or WriteFile("trace.json")
		fmt.Println(err)
	}
	fmt.Println(timeline.Slices(), "slices of replicas", timeline.Replicas())
	// Output: 4 slices of replicas [0 1]
}
