package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/methods"
	"gogcl.dev/tensor"
)

// small is a run on a few pages.
func small(t *testing.T, replicas int) (config, *book, *start) {
	t.Helper()
	text, err := pages()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBook(text)
	if err != nil {
		t.Fatal(err)
	}
	cfg := config{replicas: replicas, epochs: 1, batch: 24 * replicas, dim: 5, rate: 2, seed: 3}
	from, err := newStart(cfg, b)
	if err != nil {
		t.Fatal(err)
	}
	return cfg, b, from
}

func TestBook(t *testing.T) {
	b, err := newBook([]byte(strings.Repeat("The ray's red, the RED ray. ", 9) + "a new ray and a red one"))
	if err != nil {
		t.Fatal(err)
	}
	// 9 times 7 words (the s of a ray's counts) and 7 more: the last seventh is held out.
	if got := strings.Join(b.words, " "); got != " ray red the s" {
		t.Errorf("words %q", got)
	}
	if len(b.train) != 63 || !slices.Equal(b.train[:7], []int32{3, 1, 4, 2, 3, 2, 1}) {
		t.Errorf("%d words to learn from, %v...", len(b.train), b.train[:7])
	}
	if !slices.Equal(b.heldOut, []int32{0, 0, 1, 0, 0, 2, 0}) {
		t.Errorf("held out %v", b.heldOut)
	}
	for word, class := range map[int32]int32{unknown: others, 1: 0, others: others - 1, others + 1: others} {
		if got := classOf(word); got != class {
			t.Errorf("word %d is answer %d, want %d", word, got, class)
		}
	}
	// Held out with two words on either side: ray, unknown, unknown. Of 63 + 1000 counts, ray has 19 and all others 1.
	if want := -(math.Log(19.0/1063) + 2*math.Log(1.0/1063)) / 3; math.Abs(b.baseline()-want) > 1e-12 {
		t.Errorf("baseline %v, want %v", b.baseline(), want)
	}
}

// TestRoutes: every word is found where its owner puts the row it was asked for, and no row is asked for twice.
func TestRoutes(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		cfg, b, _ := small(t, n)
		r := newRouter(len(b.words), n)
		r.capacity = cfg.capacity(b)
		fullest := 0
		for _, batch := range newBatches(cfg.seed, b, cfg.batch).list {
			for ; len(batch) > 0; batch = batch[cfg.part():] {
				var words []int32
				for _, at := range batch[:cfg.part()] {
					words = wordsAround(words, b.train, at)
				}
				const none = math.MaxUint32
				want, places := slices.Repeat([]uint32{none}, n*r.capacity), make([]uint32, len(words))
				if err := r.ask(words, want, places); err != nil {
					t.Fatal(err)
				}
				asked := map[int]bool{}
				for place, row := range want {
					if row == none {
						continue
					}
					word := int(row)*n + place/r.capacity
					if asked[word] || !slices.Contains(words, int32(word)) {
						t.Fatalf("n=%d: row of word %d twice, or of nobody's", n, word)
					}
					asked[word] = true
					fullest = max(fullest, place%r.capacity+1)
				}
				for i, w := range words {
					if place := int(places[i]); want[place] != uint32(w)/uint32(n) || place/r.capacity != int(w)%n {
						t.Fatalf("n=%d: word %d is looked for at %d", n, w, place)
					}
				}
			}
		}
		if fullest != r.capacity {
			t.Errorf("n=%d: capacity %d, of which %d are used", n, r.capacity, fullest)
		}
	}
	for words, rows := range map[int]int{1: 1, 3: 1, 4: 2, 6: 2} {
		if got := shardRows(words, 3); got != rows {
			t.Errorf("%d words on 3 replicas: %d rows each, want %d", words, got, rows)
		}
	}
}

// TestBatches: each pass has the same batches, in another order, and no word twice.
func TestBatches(t *testing.T) {
	cfg, b, _ := small(t, 2)
	all := newBatches(cfg.seed, b, cfg.batch)
	first := slices.Clone(all.next())
	second := slices.Clone(all.next())
	if slices.EqualFunc(first, second, slices.Equal[[]int]) {
		t.Error("two passes in one order")
	}
	seen := map[int]bool{}
	for _, batch := range first {
		for _, at := range batch {
			if seen[at] || at < reach || at >= len(b.train)-reach {
				t.Fatalf("place %d twice or without words around it", at)
			}
			seen[at] = true
		}
		if !slices.ContainsFunc(second, func(other []int) bool { return slices.Equal(batch, other) }) {
			t.Error("a batch that the second pass does not have")
		}
	}
	if len(seen) != b.places()/cfg.batch*cfg.batch {
		t.Errorf("%d places of %d", len(seen), b.places())
	}
}

// TestBeginning: before anything is learnt the loss is that of frequencies, as the last layer has it.
func TestBeginning(t *testing.T) {
	cfg, b, from := small(t, 1)
	got, err := heldOutLoss(t.Context(), from, b, cfg.dim)
	if err != nil || math.Abs(got-b.baseline()) > 1e-5 {
		t.Errorf("loss %v, error %v, want %v", got, err, b.baseline())
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := heldOutLoss(ctx, from, b, cfg.dim); err == nil {
		t.Error("no error after an interrupt")
	}
}

// begun is a step with its feed, of a table and layers where nothing is zero.
func begun(t *testing.T, replicas int) (config, *book, *start, *step, *feed) {
	t.Helper()
	cfg, b, from := small(t, replicas)
	last, err := tensor.Of[float32](from.layers[2]) // zeros would hide the rest
	if err != nil {
		t.Fatal(err)
	}
	for i := range last {
		last[i] = float32(i%7-3) / 4
	}
	s, err := newStep(cfg, cfg.capacity(b), from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.session.Close() })
	f, err := s.newFeed(cfg, b, cfg.capacity(b))
	if err != nil {
		t.Fatal(err)
	}
	return cfg, b, from, s, f
}

// TestStep: the loss of a step is what the host computes, rows asked for change, and no others.
func TestStep(t *testing.T) {
	cfg, b, from, s, f := begun(t, 3)
	batch := newBatches(cfg.seed, b, cfg.batch).next()[0]
	if err := f.fill(batch); err != nil {
		t.Fatal(err)
	}
	if err := s.session.RunTo(t.Context(), f.out, f.in); err != nil {
		t.Fatal(err)
	}
	want, err := hostLoss(t.Context(), from, b.train, batch, cfg.dim)
	if err != nil || math.Abs(float64(f.loss[0])-want) > 1e-5*want {
		t.Errorf("loss %v, want %v, error %v", f.loss[0], want, err)
	}
	learnt, err := s.read(cfg, len(b.words))
	if err != nil {
		t.Fatal(err)
	}
	touched := map[int]bool{}
	for _, at := range batch {
		for _, w := range wordsAround(nil, b.train, at) {
			touched[int(w)] = true
		}
	}
	for w := range b.words {
		row := func(s *start) []float32 { return s.table[w*cfg.dim : (w+1)*cfg.dim] }
		if same := slices.Equal(row(from), row(learnt)); same == touched[w] {
			t.Errorf("row %d unchanged %v, wanted %v", w, same, touched[w])
		}
	}
}

// TestFinite: with -finite a row of the table that is NaN is an error of the step that looks it up, and without it not.
func TestFinite(t *testing.T) {
	for _, finite := range []bool{false, true} {
		cfg, b, from := small(t, 3)
		cfg.finite = finite
		for i := range from.table {
			from.table[i] = float32(math.NaN())
		}
		s, err := newStep(cfg, cfg.capacity(b), from)
		if err != nil {
			t.Fatal(err)
		}
		defer s.session.Close()
		f, err := s.newFeed(cfg, b, cfg.capacity(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.fill(newBatches(cfg.seed, b, cfg.batch).next()[0]); err != nil {
			t.Fatal(err)
		}
		if err := s.session.RunTo(t.Context(), f.out, f.in); errors.Is(err, ir.ErrNotFinite) != finite ||
			!finite && err != nil {
			t.Errorf("finite %t: error %v", finite, err)
		}
	}
}

// TestReference: one step is that of the reference, to the bit, and is not once what it is fed with is wrong.
func TestReference(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(f *feed)
	}{
		{"", func(*feed) {}},
		{"all words are the first", func(f *feed) {
			for _, p := range f.places {
				for i := range p {
					p[i] = p[0]
				}
			}
		}},
		{"answers of another word", func(f *feed) { copy(f.answers[0], f.answers[0][1:]) }},
		{"a row of another", func(f *feed) { f.want[1][0]++ }},
		{"a place too few", func(f *feed) { f.want[2][f.router.capacity] = f.want[2][f.router.capacity-1] }},
	} {
		cfg, b, from, s, f := begun(t, 3)
		batch := newBatches(cfg.seed, b, cfg.batch).next()[0]
		if err := f.fill(batch); err != nil {
			t.Fatal(err)
		}
		c.spoil(f)
		if err := s.session.RunTo(t.Context(), f.out, f.in); err != nil {
			t.Fatal(err)
		}
		learnt, err := s.read(cfg, len(b.words))
		if err != nil {
			t.Fatal(err)
		}
		r, err := newReference(cfg, b, from)
		if err != nil {
			t.Fatal(err)
		}
		defer r.session.Close()
		loss, err := r.step(t.Context(), batch)
		if err != nil {
			t.Fatal(err)
		}
		whole, err := r.read()
		if err != nil {
			t.Fatal(err)
		}
		err = compare(learnt, whole, []float64{float64(f.loss[0])}, []float64{float64(loss)}, cfg.dim)
		if (err != nil) != (c.name != "") {
			t.Errorf("%q: error %v", c.name, err)
		}
	}
	if near(1, 1.001) || !near(3, 3.0001) || near(1, math.NaN()) || !near(math.NaN(), 1) {
		t.Error("losses that are alike are not what they should be")
	}
}

// TestCompare sees a difference of one bit in each of what is compared.
func TestCompare(t *testing.T) {
	cfg, _, from := small(t, 1)
	other := &start{table: slices.Clone(from.table)}
	for _, l := range from.layers {
		other.layers = append(other.layers, l.Clone())
	}
	check := func(losses []float64, want string) {
		t.Helper()
		if err := compare(from, other, []float64{1, 2}, losses, cfg.dim); want == "" && err != nil ||
			want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	check([]float64{1, 2}, "")
	check([]float64{1, 3}, "the loss of epoch 2 is 2, and 3 on one replica")
	check([]float64{1, math.NaN()}, "the loss of epoch 2 is 2, and NaN on one replica")
	nan := []float64{math.NaN()}
	if err := compare(from, other, nan, slices.Clone(nan), cfg.dim); err != nil {
		t.Errorf("error %v of losses that are NaN both", err)
	}
	other.layers[2].Bytes()[7] ^= 1
	check([]float64{1, 2}, "weights 2 are not the same")
	other.table[11] = -other.table[11]
	check([]float64{1, 2}, "number 1 of row 2 of the table is ")
}

// TestFull: more rows than there are places are an error, and nothing is asked for past them.
func TestFull(t *testing.T) {
	r := newRouter(10, 2)
	r.capacity = 2
	want, places := make([]uint32, 4), make([]uint32, 4)
	if err := r.ask([]int32{1, 2, 3, 1}, want, places); err != nil || !slices.Equal(places, []uint32{2, 0, 3, 2}) {
		t.Errorf("places %v, error %v", places, err)
	}
	if err := r.ask([]int32{1, 2, 3, 5}, want, places); err == nil || err.Error() != "replica 1 is asked for more "+
		"rows than its capacity of 2" {
		t.Errorf("error %v", err)
	}
	cfg, b, from := small(t, 3)
	less := cfg.capacity(b) - 1
	fail := func(int, *start, float64, float64) error { return nil }
	if _, _, err := train(t.Context(), cfg, b, less, from, fail); err == nil ||
		!strings.Contains(err.Error(), "than its capacity of ") {
		t.Errorf("error %v with a place less", err)
	}
}

// TestContexts has the words around some places, counted by hand.
func TestContexts(t *testing.T) {
	text := []int32{10, 11, 12, 13, 14, 15, 16}
	for at, want := range map[int][]int32{2: {10, 11, 13, 14}, 3: {11, 12, 14, 15}, 4: {12, 13, 15, 16}} {
		if got := wordsAround(nil, text, at); !slices.Equal(got, want) {
			t.Errorf("around place %d: %v, want %v", at, got, want)
		}
		if got := neighbours(text, at); !slices.Equal(got[:], want) {
			t.Errorf("neighbours of place %d: %v, want %v", at, got, want)
		}
	}
}

// TestMethods: sums have the order of the replicas by any method, which without Reproducible they have not.
func TestMethods(t *testing.T) {
	onNumbers(t)
	options := all.Options
	defer func() { all.Options = options }()
	for _, m := range []methods.Method{methods.ClockwiseRing, methods.RecursiveDoubling, methods.Direct} {
		all.Options.Method = m
		output(t, page, "-n 4 -batch 48 -epochs 1 -dim 7 -near the -verify")
	}
}
