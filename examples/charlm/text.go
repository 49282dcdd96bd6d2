package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"unicode/utf8"

	"gogcl.dev/examples/charlm/opticks"
)

// heldOutPart is the part of the text that is not trained on: its last tenth.
const heldOutPart = 10

// text is a text as the numbers of its characters.
type text struct {
	vocabulary []rune  // every character that occurs, in order; a character's number is its place
	train      []int32 // what comes first
	heldOut    []int32 // and what comes last
}

// loadText unpacks the book.
func loadText() (*text, error) {
	all, err := opticks.Text()
	if err != nil {
		return nil, err
	}
	t, err := newText(all)
	if err != nil {
		return nil, fmt.Errorf("the book: %w", err)
	}
	return t, nil
}

// newText splits a text, which is UTF-8 and has ten characters or more.
func newText(all []byte) (*text, error) {
	if !utf8.Valid(all) {
		return nil, fmt.Errorf("not UTF-8")
	}
	runes := []rune(string(all))
	if len(runes) < heldOutPart {
		return nil, fmt.Errorf("%d characters, want %d or more", len(runes), heldOutPart)
	}
	t := &text{vocabulary: slices.Compact(slices.Sorted(slices.Values(runes)))}
	numbers, err := t.encode(runes)
	if err != nil {
		return nil, err
	}
	split := len(numbers) - len(numbers)/heldOutPart
	t.train, t.heldOut = numbers[:split:split], numbers[split:]
	return t, nil
}

// encode returns the numbers of characters. One that the text does not have is an error.
func (t *text) encode(runes []rune) ([]int32, error) {
	numbers := make([]int32, len(runes))
	for i, r := range runes {
		n, ok := slices.BinarySearch(t.vocabulary, r)
		if !ok {
			return nil, fmt.Errorf("the character %q, which the text does not have", r)
		}
		numbers[i] = int32(n)
	}
	return numbers, nil
}

// decode returns the characters of numbers.
func (t *text) decode(numbers []int32) string {
	var b strings.Builder
	for _, n := range numbers {
		b.WriteRune(t.vocabulary[n])
	}
	return b.String()
}

// all is the whole text again.
func (t *text) all() []int32 { return slices.Concat(t.train, t.heldOut) }

// drawBatch fills windows of so many characters, drawn from the text that is trained on, and for each character the one
// that follows it. Windows may overlap; the text must be longer than one.
func (t *text) drawBatch(random *rand.Rand, chars, targets []int32, window int) {
	for at := 0; at < len(chars); at += window {
		from := random.IntN(len(t.train) - window)
		copy(chars[at:at+window], t.train[from:])
		copy(targets[at:at+window], t.train[from+1:])
	}
}

// excerpt is so many pieces of the text held out, evenly spread, one after the other; all of it, if it has fewer
// characters.
func (t *text) excerpt(pieces, chars int) []int32 {
	var all []int32
	for i := range pieces {
		at, next := i*len(t.heldOut)/pieces, (i+1)*len(t.heldOut)/pieces
		all = append(all, t.heldOut[at:min(at+chars, next)]...)
	}
	return all
}

// unigramEntropy is the entropy of one character, in nats: what predicting by frequency alone would lose on the very
// text that was counted.
func unigramEntropy(numbers []int32) float64 {
	counts := map[int32]int{}
	for _, n := range numbers {
		counts[n]++
	}
	return entropy(counts, len(numbers))
}

// bigramEntropy is the entropy of a character given the one before it, in nats: that of pairs of neighbours less that
// of what may be the first of a pair.
func bigramEntropy(numbers []int32) float64 {
	pairs := map[[2]int32]int{}
	for i := range numbers[1:] {
		pairs[[2]int32(numbers[i:i+2])]++
	}
	return entropy(pairs, len(numbers)-1) - unigramEntropy(numbers[:len(numbers)-1])
}

// entropy is that of what has been counted, total times in all.
func entropy[K comparable](counts map[K]int, total int) float64 {
	// Sums of floats depend on their order, and that of a map differs from run to run.
	ordered := make([]int, 0, len(counts))
	for _, n := range counts {
		ordered = append(ordered, n)
	}
	slices.Sort(ordered)
	sum := 0.0
	for _, n := range ordered {
		p := float64(n) / float64(total)
		sum -= p * math.Log(p)
	}
	return sum
}
