package bench

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/leaktest"
	"gogcl.dev/methods/schedule"
)

var (
	sizes  = &list[byteSize]{[]byteSize{8, 1 << 10, 32 << 10, 1 << 20, 16 << 20}, parseSize}
	groups = &list[int]{[]int{2, 4, 8}, strconv.Atoi}
	forms  = &list[form]{[]form{toForm}, parseForm}
	every  = false
)

// defaultTime is how long a benchmark runs unless -benchtime says otherwise: there are more than a thousand.
const defaultTime = "100ms"

func TestMain(m *testing.M) {
	flag.Var(sizes, "sizes", "bytes of the larger of a replica's two buffers, with commas")
	flag.Var(groups, "groups", "numbers of replicas, with commas")
	flag.Var(forms, "forms", "To, InPlace or both, with a comma; what has no such form is left out")
	flag.BoolVar(&every, "every", every, "every method over sockets too, by messages")
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.benchtime" })
	if !given {
		if err := flag.Set("test.benchtime", defaultTime); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	leaktest.Main(m)
}

func BenchmarkAllReduce(b *testing.B)     { compare(b, schedule.AllReduce) }
func BenchmarkReduceScatter(b *testing.B) { compare(b, schedule.ReduceScatter) }
func BenchmarkAllGather(b *testing.B)     { compare(b, schedule.AllGather) }
func BenchmarkAllToAll(b *testing.B)      { compare(b, schedule.AllToAll) }
func BenchmarkBroadcast(b *testing.B)     { compare(b, schedule.Broadcast) }
func BenchmarkReduce(b *testing.B)        { compare(b, schedule.Reduce) }
func BenchmarkGather(b *testing.B)        { compare(b, schedule.Gather) }
func BenchmarkScatter(b *testing.B)       { compare(b, schedule.Scatter) }

// compare runs a benchmark for each group size, size and way. Ways come last, so that those of one case run one after
// the other.
func compare(b *testing.B, c schedule.Collective) {
	for _, n := range groups.values {
		for _, size := range sizes.values {
			made := sync.OnceValue(func() *data { return newData(c, n, size) })
			for _, w := range ways(c, forms.values, every) {
				b.Run(w.name(n, wholeBytes(c, n, size)), func(b *testing.B) { measure(b, w, made()) })
			}
		}
	}
}

// measure is one benchmark.
func measure(b *testing.B, w way, d *data) {
	if err := w.skips(d.collective, d.n); err != nil {
		b.Skip(err)
	}
	b.ReportAllocs()
	b.SetBytes(int64(d.bytes))
	if err := run(b, w, d); err != nil {
		b.Fatal(err)
	}
	if s := b.Elapsed().Seconds(); s > 0 {
		b.ReportMetric(float64(d.bytes)*float64(b.N)/s/1e9*busFactor(d.collective, d.n), "busGB/s")
	}
}

// TestBenchmarks runs the body of a benchmark of every name once, on little data, which checks the result; of the first
// way also in other groups and with other sizes. Names that take -every are left out.
func TestBenchmarks(t *testing.T) {
	try := func(t *testing.T, w way, d *data) {
		t.Run(fmt.Sprintf("%v/%s", d.collective, w.name(d.n, d.bytes)), func(t *testing.T) {
			l := times(1)
			if err := run(&l, w, d); err != nil {
				t.Fatal(err)
			}
		})
	}
	for _, c := range schedule.Collectives() {
		d, all := newData(c, 3, 1<<10), ways(c, allForms(), false)
		for _, w := range all {
			try(t, w, d)
		}
		try(t, all[0], newData(c, 1, 8))
		try(t, all[0], newData(c, 2, 1<<20))
		try(t, all[0], newData(c, 8, 36<<10))
	}
}

// TestWays: a benchmark that is named after an implementation or a form is carried out so, and no two have one name.
func TestWays(t *testing.T) {
	for _, c := range schedule.Collectives() {
		names, have := map[string]bool{}, map[gcl.Implementation]int{}
		for _, w := range ways(c, allForms(), true) {
			name := w.name(4, 64)
			if names[name] {
				t.Errorf("%v has %s twice", c, name)
			}
			names[name] = true
			if !w.transport.sockets {
				have[w.options.Implementation]++
			}
			for _, part := range []string{"method=" + w.options.Method.String(),
				"impl=" + w.options.Implementation.String(), "form=" + w.form.String()} {
				if !slices.Contains(strings.Split(name, "/"), part) {
					t.Errorf("%v: %s has no part %s", c, name, part)
				}
			}
			if w.form == inPlaceForm &&
				slices.Contains([]schedule.Collective{schedule.ReduceScatter, schedule.AllGather, schedule.Gather,
					schedule.Scatter}, c) {
				t.Errorf("%v has no form for %s", c, name)
			}
		}
		if have[gcl.Syncless] == 0 || have[gcl.Syncless] != have[gcl.Syncful] {
			t.Errorf("%v: %d ways are Syncless, %d Syncful", c, have[gcl.Syncless], have[gcl.Syncful])
		}
	}
}

func TestForms(t *testing.T) {
	for text, want := range map[string]form{"To": toForm, "InPlace": inPlaceForm} {
		if got, err := parseForm(text); err != nil || got != want || got.String() != text {
			t.Errorf("%q is %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "to", "Many"} {
		if got, err := parseForm(text); err == nil {
			t.Errorf("%q is %v, want an error", text, got)
		}
	}
}

// countMallocs is a looper that goes on n times and notes how much was allocated meanwhile.
type countMallocs struct {
	n, done int
	start   runtime.MemStats
	end     runtime.MemStats
}

func (l *countMallocs) Loop() bool {
	if l.done == 0 {
		runtime.ReadMemStats(&l.start)
	}
	if l.done == l.n {
		runtime.ReadMemStats(&l.end)
		return false
	}
	l.done++
	return true
}

// TestNoAllocation counts as a benchmark does: allocations by all replicas, rounded down per call. Each form has a
// group and a size of its own.
func TestNoAllocation(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	for _, x := range []struct {
		form form
		n    int
		size byteSize
	}{{toForm, 4, 36 << 10}, {inPlaceForm, 2, 8}} {
		for _, c := range schedule.Collectives() {
			d := newData(c, x.n, x.size)
			for _, w := range ways(c, []form{x.form}, false) {
				l := countMallocs{n: 200}
				if err := run(&l, w, d); err != nil {
					t.Fatal(err)
				}
				if got := int(l.end.Mallocs-l.start.Mallocs) / l.n; got != 0 {
					t.Errorf("%v/%s: %d allocations per call", c, w.name(x.n, d.bytes), got)
				}
			}
		}
	}
}

// TestCheck breaks what a call leaves behind, one element at a time.
func TestCheck(t *testing.T) {
	for _, c := range schedule.Collectives() {
		const n = 3
		d := newData(c, n, 96)
		l := times(1)
		if err := run(&l, way{transport: transports[0]}, d); err != nil {
			t.Fatal(err)
		}
		for r := range n {
			if !d.receives(r) {
				continue
			}
			for i := range d.dst[r] {
				d.dst[r][i]++
				if d.check(r) == nil {
					t.Errorf("%v: a wrong element %d at replica %d is not noticed", c, i, r)
				}
				d.dst[r][i]--
			}
		}
	}
}

// TestPace counts the calls of leader and followers.
func TestPace(t *testing.T) {
	for _, size := range []byteSize{8, 1 << 20} {
		for n := range 200 {
			p, l := newPace(size), times(n)
			led, followed := 0, 0
			var wg sync.WaitGroup
			wg.Go(func() {
				if err := p.follow(func() error { followed++; return nil }); err != nil {
					t.Error(err)
				}
			})
			if err := p.lead(&l, func() error { led++; return nil }); err != nil {
				t.Error(err)
			}
			wg.Wait()
			if led != followed || led < n || int64(led) > int64(n)+2*p.ahead {
				t.Fatalf("size %v: asked for %d calls, led %d, followed %d", size, n, led, followed)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]byteSize{"0B": 0, "8B": 8, "1KiB": 1024, "1000B": 1000, "32KiB": 32768,
		"1MiB": 1 << 20, "64MiB": 64 << 20} {
		got, err := parseSize(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%q is %d, %v, and prints as %v; want %d", text, got, err, got, want)
		}
	}
	for _, text := range []string{"", "8", "B", "-1B", "1kB", "1.5KiB", "2048MiB", "99999999999999999999B"} {
		if got, err := parseSize(text); err == nil {
			t.Errorf("%q is %d, want an error", text, got)
		}
	}
	for _, c := range []struct {
		collective schedule.Collective
		n          int
		size, want byteSize
	}{
		{schedule.AllReduce, 8, 8, 8},
		{schedule.ReduceScatter, 8, 8, 8},
		{schedule.Broadcast, 8, 9, 12},
		{schedule.AllGather, 2, 8, 8},
		{schedule.AllToAll, 8, 8, 32},
		{schedule.AllToAll, 8, 33, 64},
		{schedule.Reduce, 8, 8, 8},
		{schedule.Gather, 8, 33, 64},
		{schedule.Scatter, 8, 33, 64},
	} {
		if got := wholeBytes(c.collective, c.n, c.size); got != c.want {
			t.Errorf("%v over %d of %v: %v, want %v", c.collective, c.n, c.size, got, c.want)
		}
	}
}
