package main

import (
	"context"
	"fmt"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// evaluator is a session of a program of one replica that computes what a model loses on each character of a text. More
// replicas would each need all parameters, which training has sharded.
type evaluator struct {
	forward
	losses  []float32 // of out: of each character of each window
	targets []int32   // of in
}

// evaluationWindows is how many windows a run has. With the default size the largest matrix of
// activations, within the mlp, has 590 KB, part of a second-level cache of 1 MiB.
const evaluationWindows = 16

// newEvaluator builds the program, with these values of the parameters, and enters a session of it.
func newEvaluator(s size, v values) (*evaluator, error) {
	p := ir.New(1)
	m := newModel(p, s, evaluationWindows, eachLoss)
	targets := p.HostToDevice("targets", ir.Spec{DType: tensor.I32, Shape: tensor.Shape{evaluationWindows, s.window}})
	losses := p.DeviceToHost("losses", ir.Spec{DType: tensor.F32, Shape: tensor.Shape{evaluationWindows, s.window}})
	e := &evaluator{}
	err := e.build(p, m, v, targets, losses)
	if err != nil {
		return nil, err
	}
	if e.targets, err = tensor.Of[int32](e.in[targets]); err == nil {
		e.losses, err = tensor.Of[float32](e.out[losses])
	}
	if err != nil {
		e.close()
		return nil, err
	}
	return e, nil
}

// loss is the mean loss of the characters of a text, but for the first, in nats. Windows overlap by half, and of each
// but the first only the second half counts: each character is predicted from half a window of others before it, or
// more, or from the text's beginning on.
func (e *evaluator) loss(ctx context.Context, text []int32) (float64, error) {
	window := e.size.window
	half := window / 2
	if len(text) < 2 {
		return 0, fmt.Errorf("a text of %d characters, want 2 or more", len(text))
	}
	targets := len(text) - 1
	sum, counted := 0.0, 0
	for from := 0; counted < targets; {
		var begins []int
		for i := range evaluationWindows {
			at := max(0, min(from, targets-window)) // the last windows end with the text, and may be the same
			begins = append(begins, at)
			n := min(window, targets-at)
			for _, part := range []struct{ to, of []int32 }{{e.chars, text[at:]}, {e.targets, text[at+1:]}} {
				clear(part.to[i*window:][:window]) // what a short text leaves over does not count
				copy(part.to[i*window:][:window], part.of[:n])
			}
			from += window - half
		}
		if err := e.run(ctx); err != nil {
			return 0, err
		}
		for i, at := range begins {
			for ; counted < min(at+window, targets); counted++ {
				sum += float64(e.losses[i*window+counted-at])
			}
		}
	}
	return sum / float64(targets), nil
}
