package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/measure"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/plot"
	"gogcl.dev/internal/progress"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// Of -tokens, which has a row for each number of replicas and a column for each way: goroutines of this process, or
// processes that are connected by a transport.
var (
	tokenReplicas = []int{1, 2, 4}
	tokenWays     = []string{"goroutines", "shm", "unix", "tcp"}
)

// timing is what a run has found.
type timing struct {
	replicas int
	speed    float64 // tokens a second: characters that were made up, one after the other
	digest   uint64  // of the characters and the bits of the last logits
}

// timingForm is how a process tells it.
const timingForm = "replicas: %d, tokens/s: %f, digest of text and logits: %x"

func (t timing) String() string { return fmt.Sprintf(timingForm, t.replicas, t.speed, t.digest) }

// runTokens prints how many tokens a second the layers make when they are split over replicas: over those of the job,
// or of -n, or else a table.
func runTokens(ctx context.Context, cfg config, s size, out *progress.Printer) error {
	if cfg.me.InJob() || cfg.given {
		found, err := cfg.timeTokens(ctx, s)
		if err == nil {
			out.Line(found.String())
		}
		return err
	}
	picture, err := plot.OpenFile(cfg.picture)
	if err != nil {
		return member.Mistake{Err: fmt.Errorf("-svg %w", err)}
	}
	out.Line(fmt.Sprintf("%d parameters, random: %d blocks, width %d, heads: %d, window %d; for each token %d "+
		"all-reduces of %d bytes", s.parameters(), s.depth, s.width, s.heads, s.window, 2*s.depth, 4*s.width))
	table := newTokenTable(s, tokenReplicas, tokenWays, out)
	err = table.fill(cfg.duration(), func(n int, way string) (timing, error) {
		if way != tokenWays[0] {
			return cfg.startTokens(ctx, n, way)
		}
		cfg.replicas = n
		return cfg.timeTokens(ctx, s)
	})
	if err == nil {
		out.Line(table.String())
		if err = picture.Draw(table.figure(s)); err != nil {
			err = fmt.Errorf("-svg %w", err)
		}
	}
	return errors.Join(err, picture.GiveUp())
}

// timeTokens has the replicas of this process make up texts of a window each.
func (cfg config) timeTokens(ctx context.Context, s size) (found timing, err error) {
	v, err := randomValues(s, cfg.seed)
	if err != nil {
		return timing{}, err
	}
	err = cfg.onReplicas(ctx, func(ctx context.Context, c *gcl.Comm) error {
		d, err := newDecoder(c, s, v)
		if err != nil {
			return err
		}
		random := rand.New(rand.NewPCG(cfg.seed, sampleStream))
		begin := make([]int32, 1, s.window+1) // the first character of all: a newline
		var all []int32
		text := func(chars int) error {
			made, err := d.generate(ctx, random, begin, chars, cfg.temperature)
			all = append(all, made...)
			return err
		}
		if err := text(s.window); err != nil { // to warm up
			return err
		}
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		began := time.Now()
		for left := cfg.sample; left > 0; left -= s.window {
			if err := text(min(left, s.window)); err != nil {
				return err
			}
		}
		took := time.Since(began)
		digest := fnv.New64a()
		fmt.Fprint(digest, all)
		for _, v := range d.logits {
			fmt.Fprintf(digest, " %x", math.Float32bits(v))
		}
		if c.Rank() == 0 {
			found = timing{c.Size(), float64(cfg.sample) / took.Seconds(), digest.Sum64()}
		}
		return nil
	})
	return found, err
}

// randomValues are parameters of a model that has learnt nothing, and yet has something to say.
func randomValues(s size, seed uint64) (values, error) {
	random := rand.New(rand.NewPCG(seed, weightStream))
	v, err := newModel(ir.New(1), s, 1, onlyLogits).begin(random)
	if err != nil {
		return nil, err
	}
	output, err := tensor.Of[float32](v[len(v)-1][2]) // zeros, where training begins
	if err != nil {
		return nil, err
	}
	normal(1/math.Sqrt(float64(s.width)))(random, output)
	return v, nil
}

// startTokens starts this program as a job of n processes, and reads what it prints.
func (cfg config) startTokens(ctx context.Context, n int, transport string) (found timing, err error) {
	var printed strings.Builder
	program := &measure.Program{Name: "charlm", Stderr: cfg.stderr}
	code := program.Start(ctx, measure.Job{N: n, Transport: transport, Stdout: &printed, Args: []string{"-tokens",
		"-size", strconv.Itoa(cfg.parameters), "-seed", strconv.FormatUint(cfg.seed, 10),
		"-sample", strconv.Itoa(cfg.sample), "-temperature", fmt.Sprint(cfg.temperature),
		"-method", cfg.method.String()}})
	switch {
	case ctx.Err() != nil:
		return timing{}, ctx.Err()
	case code != command.OK:
		return timing{}, fmt.Errorf("%d processes over %s have failed", n, transport)
	}
	if _, err = fmt.Sscanf(printed.String(), timingForm, &found.replicas, &found.speed, &found.digest); err != nil {
		return timing{}, fmt.Errorf("%d processes over %s have printed %q: %w", n, transport, &printed, err)
	}
	return found, nil
}

// tokenTable is the table of -tokens, and what it is made from.
type tokenTable struct {
	replicas []int
	ways     []string
	rounds   int
	speeds   map[int]map[string][]float64 // by number of replicas and way
	digests  map[int]uint64               // by number of replicas
}

// newTokenTable leaves out numbers of replicas over which the layers cannot be split, and says so.
func newTokenTable(s size, replicas []int, ways []string, out *progress.Printer) *tokenTable {
	t := &tokenTable{speeds: map[int]map[string][]float64{}, digests: map[int]uint64{}, ways: slices.Clone(ways)}
	if runtime.GOOS != "linux" {
		t.ways = slices.DeleteFunc(t.ways, func(way string) bool { return way == "shm" })
		out.Line("shm is left out: processes share memory on Linux only")
	}
	for _, n := range replicas {
		if err := s.splits(n); err != nil {
			out.Line(fmt.Sprintf("%d replicas are left out: %v", n, err))
			continue
		}
		t.replicas = append(t.replicas, n)
		t.speeds[n] = map[string][]float64{}
	}
	return t
}

// fill times all numbers of replicas in all ways, in rounds, so that what else the machine does hits all of them. There
// is one round, and more until the time is over. Runs that have other bits are an error.
func (t *tokenTable) fill(budget time.Duration, run func(n int, way string) (timing, error)) error {
	for began := time.Now(); t.rounds == 0 || time.Since(began) < budget; t.rounds++ {
		for _, n := range t.replicas {
			for _, way := range t.ways {
				found, err := run(n, way)
				if err != nil {
					return err
				}
				if want, known := t.digests[n]; known && found.digest != want {
					return fmt.Errorf("%d replicas, %s: the digest of text and logits is %x, want %x as in other runs of "+
						"as many", n, way, found.digest, want)
				}
				t.digests[n] = found.digest
				t.speeds[n][way] = append(t.speeds[n][way], found.speed)
			}
		}
	}
	return nil
}

func (t *tokenTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "tokens a second, median of %d rounds (least to most)\n", t.rounds)
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "replicas\t%s\n", strings.Join(t.ways, "\t"))
	for _, n := range t.replicas {
		fmt.Fprint(w, n)
		for _, way := range t.ways {
			speeds := t.speeds[n][way]
			fmt.Fprintf(w, "\t%.0f (%.0f-%.0f)", measure.Median(speeds), slices.Min(speeds), slices.Max(speeds))
		}
		fmt.Fprintln(w)
	}
	_ = w.Flush() // writing to memory does not fail
	return b.String() + "All runs of a row have made up the same text, with the same bits. One replica has nobody to talk " +
		"to: its\nrow shows the noise."
}

// figure has tokens a second by replicas, a line for each way.
func (t *tokenTable) figure(s size) *plot.Figure {
	o := measure.NewOrigin("", time.Now())
	panel := plot.Panel{
		Title: fmt.Sprintf("median of %d rounds", t.rounds),
		X:     plot.Axis{Label: "replicas", Base: 2, Tick: plot.Plain},
		Y:     plot.Axis{Label: "tokens a second", Tick: plot.Plain},
	}
	for _, way := range t.ways {
		line := plot.Line{Name: way}
		for _, n := range t.replicas {
			line.Points = append(line.Points, plot.Point{X: float64(n), Y: measure.Median(t.speeds[n][way])})
		}
		panel.Lines = append(panel.Lines, line)
	}
	return &plot.Figure{
		Title: fmt.Sprintf("text by %d parameters, layers split", s.parameters()),
		Rows:  [][]plot.Panel{{panel}},
		Foot:  fmt.Sprintf("charlm -tokens, %s, %s, %d cores", o.Version, o.Machine, o.Cores),
	}
}
