package gcl_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
	"gogcl.dev/tensor"
	"gogcl.dev/topology"
	"gogcl.dev/transport"
	"gogcl.dev/transport/inproc"
)

// rulesOf parses a table.
func rulesOf(t testing.TB, text string) *methods.Rules {
	t.Helper()
	r, err := methods.ParseRules([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// rulesFile writes a table into a file.
func rulesFile(t testing.TB, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestTuningText: a table is given as a file or as itself, and given back as it was.
func TestTuningText(t *testing.T) {
	file := rulesFile(t, "tcp.txt", "# of a machine\nall-reduce 2 0 direct\n")
	for _, text := range []string{file, "\n# of no machine\nall-reduce  2  0  direct\n", "\n"} {
		o, err := gcl.ParseOptions(map[string]string{"tuning": text})
		if err != nil {
			t.Fatal(err)
		}
		roundTrip(t, o)
		if m, err := o.Map(); err != nil || m["tuning"] != text && text != "\n" {
			t.Errorf("%q became %q, %v", text, m["tuning"], err)
		}
	}
	named := gcl.Options{Tuning: rulesOf(t, "all-reduce 2 0 direct").Named("a\nb")}
	if m, err := named.Map(); err != nil || !strings.HasSuffix(m["tuning"], "all-reduce  2  0  direct\n") {
		t.Errorf("a name that would be read as a table: %q, %v", m, err)
	}
	large := rulesFile(t, "large", strings.Repeat("#\n", methods.MaxRulesBytes/2+1))
	for text, want := range map[string]string{
		"":                              "option tuning=: want the name of a file with a table of rules, as gcltune writes it",
		file + "x":                      file + "x: no such file or directory",
		filepath.Dir(file):              " is no file, want one with a table of rules",
		large:                           "has 1048578 bytes, want a table of rules of at most 1048576",
		rulesFile(t, "b", "\nreduce 2"): ": line 2: \"reduce 2\" is no rule: want a collective",
		"reduce 2 0 ring\n":             "option tuning=reduce 2 0 ring...: line 1: no method \"ring\", the closest is ",
	} {
		var option *gcl.OptionError
		_, err := gcl.ParseOptions(map[string]string{"tuning": text})
		if !errors.As(err, &option) || option.Option != "tuning" || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

// TestTuningEnvironment: the file that GCL_OPTIONS names is read once, when the replicas are started.
func TestTuningEnvironment(t *testing.T) {
	file := rulesFile(t, "mine.txt", "all-reduce 2 0 anticlockwise_ring\n")
	text, err := json.Marshal(map[string]string{"tuning": file, "reproducible": "false"})
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GCL_OPTIONS", string(text))
	replicas(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		c = withOptions(c, gcl.Options{Implementation: gcl.Syncless, Reproducible: true})
		e, err := c.Explain(schedule.AllGather, 8, tensor.F32)
		if err != nil {
			return err
		}
		if o := c.Options(); o.Reproducible || o.Tuning.Name() != file || e.Method != methods.Direct {
			return fmt.Errorf("%+v, %v", o, e)
		}
		if e, err = c.Explain(schedule.AllReduce, 8, tensor.F32); err != nil || e.Method != methods.AnticlockwiseRing {
			return fmt.Errorf("%v, %w", e, err)
		}
		return nil
	})
	t.Setenv("GCL_OPTIONS", string(text)) // the file is gone
	err = gcl.Run(t.Context(), 1, func(context.Context, *gcl.Comm) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "in the environment variable GCL_OPTIONS: ") ||
		!strings.Contains(err.Error(), "no such file") {
		t.Error(err)
	}
}

// TestTuningMismatch: replicas with other rules disagree, and the error names the option. Comments are no difference.
func TestTuningMismatch(t *testing.T) {
	const table = "all-reduce 2 0 direct 3 us\n"
	for other, differ := range map[string]bool{
		table: false, "# from another machine\nall-reduce 2 0 direct 4 us": false,
		"all-reduce 2 1 direct": true, "": true, "all-reduce 2 0 clockwise_ring/Syncful": true,
	} {
		errs := failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
			mine := rulesOf(t, table)
			if c.Rank() == 1 {
				mine = rulesOf(t, other)
			}
			c = withOptions(c, gcl.Options{Tuning: mine})
			return gcl.AllReduceInPlace(ctx, c, make([]float32, 1000), gcl.Add)
		})
		for replica, err := range errs {
			if differ != errors.Is(err, gcl.ErrMismatch) || differ && !strings.Contains(err.Error(), "Tuning, ") {
				t.Errorf("%q: replica %d: %v", other, replica, err)
			}
		}
	}
}

// ranBy is what a Trace says of a call.
type ranBy struct {
	method         methods.Method
	implementation gcl.Implementation
}

// goes carries out an all-reduce of some float32 over n replicas, checks it, and says how it went.
func goes(t *testing.T, n, elements int, o gcl.Options, opts ...gcl.CommOption) ranBy {
	t.Helper()
	var mu sync.Mutex // guards out
	out := map[ranBy]int{}
	o.Trace = &gcl.Trace{CollectiveEnd: func(c gcl.TraceCall, err error) {
		mu.Lock()
		defer mu.Unlock()
		out[ranBy{c.Method, c.Implementation}]++
	}}
	replicas(t, n, func(ctx context.Context, c *gcl.Comm) error {
		c = withOptions(c, o)
		for _, many := range []bool{false, true} {
			data := make([]float32, elements)
			for i := range data {
				data[i] = float32(i%7 + c.Rank())
			}
			var err error
			if many {
				b := c.Batch(schedule.AllReduce, gcl.Add, 0)
				gcl.Append(b, data, data)
				err = b.Run(ctx)
			} else {
				err = gcl.AllReduceInPlace(ctx, c, data, gcl.Add)
			}
			if err != nil {
				return err
			}
			for i, v := range data {
				if want := float32(n*(i%7) + n*(n-1)/2); v != want {
					return fmt.Errorf("element %d is %v, want %v", i, v, want)
				}
			}
		}
		return nil
	}, opts...)
	if len(out) != 1 {
		t.Fatalf("calls went in several ways: %v", out)
	}
	for w := range out {
		return w
	}
	return ranBy{}
}

// TestRulesDecide: a call goes by the rule that fits, by its method and implementation, and Explain cites it.
func TestRulesDecide(t *testing.T) {
	one := methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		if r.Size != 3 {
			return nil, fmt.Errorf("it is for 3 ranks: %w", errors.ErrUnsupported)
		}
		return starOf(1).Schedule(r)
	})
	opts := []gcl.CommOption{gcl.WithMethod("for_three", one)}
	own(t, "no_generator_here")
	rules := rulesOf(t, `all-reduce 2-4 0 clockwise_ring/Syncful 5 us
all-reduce 2-4 100 clockwise_ring/Syncless
all-reduce 2-4 200 direct
all-reduce 2-4 300 recursive_doubling
all-reduce 2-4 400 for_three
all-reduce 2-4 500 no_generator_here
all-reduce 2-4 600 direct/Syncless`).Named("/some/inproc.txt")
	three := own(t, "for_three")
	for _, x := range []struct {
		n, bytes int
		o        gcl.Options
		want     ranBy
		why      string
	}{
		{3, 0, gcl.Options{}, ranBy{methods.ClockwiseRing, gcl.Syncful}, "clockwise_ring, by inproc.txt:1: all-reduce 2-4 0 " +
			"clockwise_ring/Syncful 5 us; Syncful, as the rule was measured"},
		{3, 100, gcl.Options{}, ranBy{methods.ClockwiseRing, gcl.Syncless}, "clockwise_ring, by inproc.txt:2: all-reduce 2-4 100 " +
			"clockwise_ring/Syncless; Syncless, as the rule was measured"},
		{3, 200, gcl.Options{}, ranBy{methods.Direct, gcl.Syncful}, "direct, by inproc.txt:3: all-reduce 2-4 200 direct; Syncful, " +
			"since the replicas share memory"},
		{3, 300, gcl.Options{}, ranBy{methods.RecursiveDoubling, gcl.Syncless}, "recursive_doubling, by inproc.txt:4: " +
			"all-reduce 2-4 300 recursive_doubling; Syncless, since Auto steps together for direct only"},
		{3, 300, gcl.Options{Implementation: gcl.Syncful}, ranBy{methods.RecursiveDoubling, gcl.Syncful},
			"recursive_doubling, by inproc.txt:4: all-reduce 2-4 300 recursive_doubling; Syncful, as the options ask"},
		{3, 300, gcl.Options{Reproducible: true}, ranBy{methods.Direct, gcl.Syncful}, "direct, by inproc.txt:3: all-reduce " +
			"2-4 200 direct; not inproc.txt:4, recursive_doubling: in the order of the ranks the method is a chain"},
		{3, 400, gcl.Options{}, ranBy{three, gcl.Syncless}, "for_three, by inproc.txt:5: "},
		{3, 400, gcl.Options{Implementation: gcl.Syncful}, ranBy{three, gcl.Syncful}, "for_three, by inproc.txt:5: "},
		{4, 400, gcl.Options{}, ranBy{methods.RecursiveDoubling, gcl.Syncless}, "recursive_doubling, by inproc.txt:4: " +
			"all-reduce 2-4 300 recursive_doubling; not inproc.txt:5, for_three: "},
		{3, 500, gcl.Options{}, ranBy{three, gcl.Syncless}, "for_three, by inproc.txt:5: all-reduce 2-4 400 for_three; not " +
			"inproc.txt:6, no_generator_here: "},
		{4, 500, gcl.Options{}, ranBy{methods.RecursiveDoubling, gcl.Syncless}, "recursive_doubling, by inproc.txt:4: " +
			"all-reduce 2-4 300 recursive_doubling; not inproc.txt:6, no_generator_here: methods: no_generator_here " +
			"makes no schedule, since it is not registered: unsupported operation; not " +
			"inproc.txt:5, for_three: methods: for_three: all-reduce over 4 ranks: it is for 3 ranks: unsupported"},
		{4, 500, gcl.Options{Reproducible: true}, ranBy{methods.Direct, gcl.Syncful}, "direct, by inproc.txt:3: "},
		{3, 600, gcl.Options{}, ranBy{methods.Direct, gcl.Syncless}, "direct, by inproc.txt:7: "},
		{3, 600, gcl.Options{Implementation: gcl.Syncful}, ranBy{methods.Direct, gcl.Syncful}, "direct, since on peer memory " +
			"it is one pass; not inproc.txt:7, direct/Syncless: it is for Syncless, and the options ask for Syncful"},
		{3, 0, gcl.Options{Implementation: gcl.Syncless}, ranBy{methods.SendToAll, gcl.Syncless}, "broadcast, since group size " +
			"x bytes, 3 x 0, is at or below 8192; not inproc.txt:1, clockwise_ring/Syncful: it is for Syncful, and the"},
		{3, 400, gcl.Options{Method: methods.Direct}, ranBy{methods.Direct, gcl.Syncful}, "direct, as the options ask"},
		{3, 400, gcl.Options{MaxBroadcastSize: 1200}, ranBy{methods.SendToAll, gcl.Syncful}, "broadcast, since group size"},
		{3, 404, gcl.Options{MaxBroadcastSize: 1200}, ranBy{three, gcl.Syncless}, "for_three, by inproc.txt:5: "},
		{4, 400, gcl.Options{Method: three}, ranBy{methods.RecursiveDoubling, gcl.Syncless}, "recursive_doubling, by " +
			"inproc.txt:4: all-reduce 2-4 300 recursive_doubling; not inproc.txt:5, for_three: methods: for_three: " +
			"all-reduce over 4 ranks: it is for 3 ranks"},
		{2, 0, gcl.Options{}, ranBy{methods.ClockwiseRing, gcl.Syncful}, "clockwise_ring, by inproc.txt:1: "},
	} {
		x.o.Tuning = rules
		if got := goes(t, x.n, x.bytes/4, x.o, opts...); got != x.want {
			t.Errorf("%d bytes over %d, %+v: %v, want %v", x.bytes, x.n, x.o, got, x.want)
		}
		replicas(t, x.n, func(_ context.Context, c *gcl.Comm) error {
			e, err := withOptions(c, x.o).Explain(schedule.AllReduce, int64(x.bytes), tensor.F32)
			if err != nil {
				return err
			}
			if !strings.HasPrefix(e.Why, x.why) || (ranBy{e.Method, e.Implementation}) != x.want {
				return fmt.Errorf("%d bytes over %d, %+v: Explain says %v, %v, %s\nwant %s", x.bytes, x.n, x.o,
					e.Method, e.Implementation, e.Why, x.why)
			}
			return nil
		}, opts...)
	}
}

// TestRulesBesideMethod: where one replica asks for the method that a rule gives the other, and so goes over peer
// memory and not by messages, the error says what to look for: all else is alike.
func TestRulesBesideMethod(t *testing.T) {
	rules := rulesOf(t, "all-reduce 2 0 direct/Syncless")
	for replica, err := range failures(t, 2, func(ctx context.Context, c *gcl.Comm) error {
		o := gcl.Options{Tuning: rules}
		if c.Rank() == 0 {
			o.Method = methods.Direct
		}
		return gcl.AllReduceInPlace(ctx, withOptions(c, o), make([]float32, 1000), gcl.Add)
	}) {
		if !errors.Is(err, gcl.ErrMismatch) || !contains(err, "#1: options differ (Method or MaxBroadcastSize): ") {
			t.Errorf("replica %d: %v", replica, err)
		}
	}
}

// TestRulesWithoutMemory: where the transport cannot lay buffers open, a call by a rule for peer memory goes by sizes,
// and a rule for messages goes on.
func TestRulesWithoutMemory(t *testing.T) {
	for table, want := range map[string]methods.Method{
		"all-reduce 2- 0 clockwise_ring/Syncful":                  methods.Direct,
		"all-reduce 2- 0 direct":                                  methods.Direct,
		"all-reduce 2- 0 bidirectional_ring_pair":                 methods.BidirectionalRingPair,
		"all-reduce 2- 0 direct/Syncful\n" + "reduce 2- 0 direct": methods.Direct,
	} {
		ends, err := inproc.New(3)
		if err != nil {
			t.Fatal(err)
		}
		for i := range ends {
			ends[i] = struct{ transport.Endpoint }{ends[i]}
		}
		o := gcl.Options{Tuning: rulesOf(t, table)}
		if got := goes(t, 3, 1<<14, o, gcl.WithEndpoints(ends)); got != (ranBy{want, gcl.Syncless}) {
			t.Errorf("%s: %v, want %v", table, got, want)
		}
	}
}

// TestRulesInPhases: the phases of Hybrid go by rules for their own number of ranks.
func TestRulesInPhases(t *testing.T) {
	machine, err := topology.New(topology.Config{Domains: []int{0, 0, 1, 1}})
	if err != nil {
		t.Fatal(err)
	}
	own(t, "star_of_phases")
	rules := rulesOf(t, `all-reduce 2 0 recursive_doubling/Syncless
reduce-scatter 2 0 anticlockwise_ring/Syncful
all-gather 2 0 direct
all-gather 2 0 star_of_phases`).Named("t.txt")
	g := gcl.WithMethod("star_of_phases", star)
	o := gcl.Options{Tuning: rules, Implementation: gcl.Hybrid}
	if got := goes(t, 4, 1000, o, gcl.WithTopology(machine), g); got.implementation != gcl.Hybrid {
		t.Errorf("%v", got)
	}
	replicas(t, 4, func(_ context.Context, c *gcl.Comm) error {
		e, err := withOptions(c, o).Explain(schedule.AllReduce, 400_000, tensor.F32) // by all members
		const want = "recursive_doubling across 2 link domains, by t.txt:1: all-reduce 2 0 recursive_doubling/Syncless; " +
			"anticlockwise_ring inside"
		if err != nil || !strings.HasPrefix(e.Why, want) {
			return fmt.Errorf("%s, %w", e.Why, err)
		}
		return nil
	}, gcl.WithTopology(machine), g)
}

// TestDefaultTables: without Options.Tuning the rules are those of the transport, by the name in its links, between
// replicas of one host. The group's own number of ranks counts.
func TestDefaultTables(t *testing.T) {
	rules := rulesOf(t, "all-reduce 2 0 anticlockwise_ring/Syncless").Named("some.txt")
	defer gcl.WithTable("inproc", rules)()
	if got := goes(t, 2, 10, gcl.Options{}); got != (ranBy{methods.AnticlockwiseRing, gcl.Syncless}) {
		t.Errorf("inproc: %v", got)
	}
	if got := goes(t, 2, 10, gcl.Options{Tuning: &methods.Rules{}}); got != (ranBy{methods.Direct, gcl.Syncful}) {
		t.Errorf("inproc with an empty table: %v", got)
	}
	if got := goes(t, 3, 10, gcl.Options{}); got != (ranBy{methods.Direct, gcl.Syncful}) {
		t.Errorf("inproc, another number of ranks: %v", got)
	}
	for class, want := range map[transport.LinkClass]methods.Method{
		transport.SocketLink: methods.AnticlockwiseRing, transport.NetworkLink: methods.RecursiveDoubling,
	} {
		for name, want := range map[string]methods.Method{"inproc": want, "": methods.RecursiveDoubling} {
			ends, err := inproc.New(2)
			if err != nil {
				t.Fatal(err)
			}
			for i := range ends {
				ends[i] = &onOneHost{Endpoint: ends[i], link: transport.Link{Class: class, Transport: name},
					look: func(transport.Call) {}}
			}
			if got := goes(t, 2, 10, gcl.Options{}, gcl.WithEndpoints(ends)); got.method != want {
				t.Errorf("%v by the name %q: %v, want %v", class, name, got, want)
			}
		}
	}
}
