package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"gogcl.dev/tensor"
)

// heldOutLoss is the mean loss of guessing the words held out, in nats.
func heldOutLoss(ctx context.Context, s *start, b *book, dim int) (float64, error) {
	var places []int
	for at := reach; at < len(b.heldOut)-reach; at++ {
		places = append(places, at)
	}
	return hostLoss(ctx, s, b.heldOut, places, dim)
}

// hostLoss is the mean loss of guessing the words at some places of a text. It is computed here on the host, by loops
// that are no part of the program that learns.
func hostLoss(ctx context.Context, s *start, text []int32, places []int, dim int) (float64, error) {
	var layers [4][]float32
	for i, x := range s.layers {
		var err error
		if layers[i], err = tensor.Of[float32](x); err != nil {
			return 0, err
		}
	}
	hidden, logits := make([]float32, dim), make([]float32, classes)
	var words []int32
	loss := 0.0
	for _, at := range places {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		words = wordsAround(words[:0], text, at)
		copy(hidden, layers[1])
		for k, w := range words {
			for i, v := range s.table[int(w)*dim : int(w+1)*dim] {
				axpy(hidden, v, layers[0][(k*dim+i)*dim:])
			}
		}
		copy(logits, layers[3])
		for i, h := range hidden {
			axpy(logits, float32(math.Tanh(float64(h))), layers[2][i*classes:])
		}
		most, sum := slices.Max(logits), 0.0
		for _, l := range logits {
			sum += math.Exp(float64(l - most))
		}
		loss += math.Log(sum) + float64(most-logits[classOf(text[at])])
	}
	return loss / float64(len(places)), nil
}

// axpy adds factor times x to dst.
func axpy(dst []float32, factor float32, x []float32) {
	x = x[:len(dst)]
	for i, v := range x {
		dst[i] += factor * v
	}
}

// seldom is how many words are frequent enough that something is known of them.
const seldom = 600

// nearest are the words whose rows of the table point most nearly where that of word does, with the cosines.
func (b *book) nearest(table []float32, dim int, word string, count int) []string {
	row := func(w int) []float32 { return table[w*dim : (w+1)*dim] }
	dot := func(x, y []float32) (sum float64) {
		for i, v := range x {
			sum += float64(v) * float64(y[i])
		}
		return sum
	}
	type near struct {
		word   string
		cosine float64
	}
	var all []near
	of := row(b.numbers[word])
	for w := 1; w < min(seldom, len(b.words)); w++ {
		if b.words[w] != word {
			x := row(w)
			all = append(all, near{b.words[w], dot(of, x) / math.Sqrt(dot(of, of)*dot(x, x))})
		}
	}
	slices.SortFunc(all, func(x, y near) int { return cmp.Compare(y.cosine, x.cosine) })
	var out []string
	for _, x := range all[:min(count, len(all))] {
		out = append(out, fmt.Sprintf("%s %.2f", x.word, x.cosine))
	}
	return out
}
