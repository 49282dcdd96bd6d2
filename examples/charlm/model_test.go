package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"gogcl.dev/internal/golden"
	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// tiny is a model for tests of what it computes.
var tiny = size{depth: 2, width: 16, heads: 2, window: 8, vocabulary: 5}

// tinyValues are parameters of tiny.
func tinyValues(t *testing.T) values {
	t.Helper()
	return differentValues(t, tiny)
}

// differentValues are parameters that are all different, of biases and of the output too, which begin as zeros.
func differentValues(t *testing.T, s size) values {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	m := newModel(ir.New(1), s, 1, onlyLogits)
	v, err := m.begin(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range v {
		for _, param := range layer {
			data, err := tensor.Of[float32](param)
			if err != nil {
				t.Fatal(err)
			}
			for i := range data {
				data[i] += float32(0.2 * r.NormFloat64())
			}
		}
	}
	return v
}

// TestCausal: what is predicted after a character does not depend on those that follow, and does on all before.
func TestCausal(t *testing.T) {
	g, err := newGenerator(tiny, tinyValues(t))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	logits := func(chars []int32) []float32 {
		copy(g.chars, chars)
		if err := g.run(t.Context()); err != nil {
			t.Fatal(err)
		}
		return slices.Clone(g.logits)
	}
	text := []int32{0, 1, 2, 3, 4, 3, 2, 1}
	before := logits(text)
	for changed := range text {
		other := slices.Clone(text)
		other[changed] = (other[changed] + 1) % 5
		after := logits(other)
		for place := range text {
			same := slices.Equal(before[place*5:][:5], after[place*5:][:5])
			if same != (place < changed) {
				t.Errorf("character %d changed: the prediction after %d is the same: %v", changed, place, same)
			}
		}
	}
}

// TestFirstLoss: the output begins as zeros, so that every character is as likely as any other.
func TestFirstLoss(t *testing.T) {
	tr, err := newTrainer(way{replicas: 2}, tiny, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	loss, err := tr.run(t.Context(), 1, 0.01)
	if want := math.Log(5); err != nil || math.Abs(loss-want) > 1e-6 {
		t.Errorf("loss %v, error %v, want %v", loss, err, want)
	}
}

// TestWaiting: a training with two replicas has some.
func TestWaiting(t *testing.T) {
	tr, err := newTrainer(way{replicas: 2}, tiny, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer tr.close()
	if err := tr.session.SetProfiling(true); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.run(t.Context(), 1, 0.01); err != nil {
		t.Fatal(err)
	}
	if got := tr.waiting(); got <= 0 || got >= 1 {
		t.Errorf("%v, want more than 0 and less than 1", got)
	}
}

// TestReplicasAgree: one replica and four with the same batches come to the same parameters, but for rounding, and to
// the losses that they came to before.
func TestReplicasAgree(t *testing.T) {
	train := func(w way) (losses []float64, v values) {
		tr, err := newTrainer(w, tiny, 8/w.replicas, 1)
		if err != nil {
			t.Fatal(err)
		}
		defer tr.close()
		r := rand.New(rand.NewPCG(3, 4))
		for step := 1; step <= 10; step++ {
			for i := range tr.chars {
				tr.chars[i], tr.targets[i] = r.Int32N(5), r.Int32N(5)
			}
			loss, err := tr.run(t.Context(), step, 0.01)
			if err != nil {
				t.Fatal(err)
			}
			losses = append(losses, loss)
		}
		if v, err = tr.values(); err != nil {
			t.Fatal(err)
		}
		return losses, v
	}
	one, v1 := train(way{replicas: 1})
	four, v4 := train(way{replicas: 4})
	if runtime.GOARCH == "amd64" { // elsewhere products may be added without being rounded
		golden.Hashes(t, "losses.txt",
			map[string]string{"one": fmt.Sprintf("%x", one), "four": fmt.Sprintf("%x", four)})
	}
	for i := range one {
		if math.Abs(one[i]-four[i]) > 1e-4 {
			t.Errorf("step %d: loss %v on one replica, %v on four", i+1, one[i], four[i])
		}
	}
	if one[9] == one[0] {
		t.Error("the loss has not changed")
	}
	for i := range v1 {
		for k := range v1[i] {
			a, err1 := tensor.Of[float32](v1[i][k])
			b, err4 := tensor.Of[float32](v4[i][k])
			if err1 != nil || err4 != nil {
				t.Fatal(err1, err4)
			}
			for j := range a {
				if math.Abs(float64(a[j]-b[j])) > 0.01 {
					t.Fatalf("layer %d, parameter %d: element %d is %v on one replica, %v on four", i, k, j, a[j], b[j])
				}
			}
		}
	}
}

// TestEvaluator compares with the predictions of the generator, character by character, on texts of all lengths around
// those of windows.
func TestEvaluator(t *testing.T) {
	v := tinyValues(t)
	e, err := newEvaluator(tiny, v)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	g, err := newGenerator(tiny, v)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{2, 3, 8, 9, 10, 12, 13, 14, 17, 150, 400} {
		text := make([]int32, n)
		for i := range text {
			text[i] = r.Int32N(5)
		}
		// The window that a character counts in: the first, then each that begins four later, and the last at the end.
		want, targets := 0.0, n-1
		for next := 1; next < n; next++ {
			begin := 0
			if next > 8 {
				begin = min((next-8+3)/4*4, targets-8)
			}
			clear(g.chars[copy(g.chars, text[begin:next]):])
			if err := g.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			want -= logProbability(g.logits[(next-begin-1)*5:][:5], text[next])
		}
		want /= float64(targets)
		if got, err := e.loss(t.Context(), text); err != nil || math.Abs(got-want) > 1e-5 {
			t.Errorf("%d characters: loss %v, error %v, want %v", n, got, err, want)
		}
	}
	if _, err := e.loss(t.Context(), []int32{1}); err == nil ||
		err.Error() != "a text of 1 characters, want 2 or more" {
		t.Errorf("error %v", err)
	}
}

// TestGenerate: each character that is likeliest is the one that the evaluator's model finds likeliest after the last
// characters, as many as a window has, or fewer at the beginning.
func TestGenerate(t *testing.T) {
	v := tinyValues(t)
	e, err := newEvaluator(tiny, v)
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	g, err := newGenerator(tiny, v)
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for _, begin := range [][]int32{{2}, {0, 4}, {3, 0, 2, 1, 4, 2, 3}, {1, 1, 0, 4, 2, 3, 3, 1},
		{4, 0, 3, 2, 1, 1, 0, 3, 2, 4, 0}} {
		text, err := g.generate(t.Context(), rand.New(rand.NewPCG(1, 1)), slices.Clone(begin), 12, 0)
		if err != nil || len(text) != len(begin)+12 || !slices.Equal(text[:len(begin)], begin) {
			t.Fatalf("%v goes on as %v, error %v", begin, text, err)
		}
		for at := len(begin); at < len(text); at++ {
			recent := text[max(0, at-tiny.window):at]
			last := len(recent) - 1
			losses := make([]float32, tiny.vocabulary)
			for next := range losses { // each in a window of its own
				row := next * tiny.window
				clear(e.chars[row:][:tiny.window])
				copy(e.chars[row:], recent)
				e.targets[row+last] = int32(next)
			}
			if err := e.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			for next := range losses {
				losses[next] = e.losses[next*tiny.window+last]
			}
			if losses[text[at]] != slices.Min(losses) {
				t.Errorf("after %v comes %d, which the evaluator's model loses %v on, of %v",
					recent, text[at], losses[text[at]], losses)
			}
		}
	}
}

func logProbability(logits []float32, of int32) float64 {
	sum := 0.0
	for _, v := range logits {
		sum += math.Exp(float64(v))
	}
	return float64(logits[of]) - math.Log(sum)
}

// TestDraw: how often each is drawn, at several temperatures.
func TestDraw(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	logits := []float32{0, float32(math.Log(3)), float32(math.Inf(-1)), 0}
	for _, tt := range []struct {
		temperature float64
		want        []float64
	}{
		{0, []float64{0, 1, 0, 0}}, {1, []float64{0.2, 0.6, 0, 0.2}}, {0.5, []float64{1. / 11, 9. / 11, 0, 1. / 11}},
	} {
		const draws = 20000
		counts := make([]float64, 4)
		for range draws {
			counts[draw(r, logits, tt.temperature)]++
		}
		for i, n := range counts {
			if math.Abs(n/draws-tt.want[i]) > 0.02 {
				t.Errorf("temperature %v: %d is drawn %v times in one, want %v", tt.temperature, i, n/draws, tt.want[i])
			}
		}
	}
}
