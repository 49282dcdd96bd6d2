package main

import (
	"context"
	"math"
	"math/rand/v2"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// generator is a session of a program of one replica that predicts the next character of a text.
type generator struct {
	forward
	logits []float32 // of out: after each character of the window
}

// newGenerator builds the program, with these values of the parameters, and enters a session of it.
func newGenerator(s size, v values) (*generator, error) {
	p := ir.New(1)
	logits := p.DeviceToHost("logits", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{1, s.window, s.vocabulary}})
	g := &generator{}
	if err := g.build(p, newModel(p, s, 1, onlyLogits), v, nil, logits); err != nil {
		return nil, err
	}
	var err error
	if g.logits, err = tensor.Of[float32](g.out[logits]); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// generate appends so many characters to a text of one or more, each drawn with the probability that the model gives
// it. At a temperature below 1 what is likely becomes likelier; at 0 the likeliest is taken.
func (g *generator) generate(ctx context.Context, random *rand.Rand, text []int32, chars int,
	temperature float64) ([]int32, error) {
	for range chars {
		recent := text[max(0, len(text)-g.size.window):]
		clear(g.chars[copy(g.chars, recent):]) // no character sees those after it
		if err := g.run(ctx); err != nil {
			return nil, err
		}
		after := g.logits[(len(recent)-1)*g.size.vocabulary:][:g.size.vocabulary]
		text = append(text, int32(draw(random, after, temperature)))
	}
	return text, nil
}

// draw returns the number of one of the logits, drawn with the probabilities softmax(logits / temperature).
func draw(random *rand.Rand, logits []float32, temperature float64) int {
	best := 0
	for i, v := range logits {
		if v > logits[best] {
			best = i
		}
	}
	if temperature == 0 {
		return best
	}
	weight := func(i int) float64 { return math.Exp(float64(logits[i]-logits[best]) / temperature) }
	sum := 0.0
	for i := range logits {
		sum += weight(i)
	}
	at := random.Float64() * sum
	for i := range logits {
		if at -= weight(i); at < 0 {
			return i
		}
	}
	return best // at was rounded
}
