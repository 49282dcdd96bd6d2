package main

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

const (
	// heldOutPart is the part of the book that is not learnt from: its last tenth.
	heldOutPart = 10

	// classes is how many answers there are to which word it is: the most frequent ones, and one for all others.
	classes = 1000
	others  = classes - 1

	// unknown is the number of all words that the part learnt from does not have.
	unknown = 0
)

// around are the places of the words that a word is guessed by, seen from it.
var around = [...]int{-2, -1, 1, 2}

const reach = 2

// book is a text as the numbers of its words. Numbers go by how often a word is in the part learnt from, the most
// frequent first, from 1 on.
type book struct {
	words   []string // by number
	numbers map[string]int
	train   []int32
	heldOut []int32
}

// newBook splits a text into words: runs of letters, in lower case.
func newBook(text []byte) (*book, error) {
	all := strings.FieldsFunc(strings.ToLower(string(text)), func(r rune) bool { return !unicode.IsLetter(r) })
	if least := heldOutPart * (2*reach + 1); len(all) < least {
		return nil, fmt.Errorf("%d words, want %d or more", len(all), least)
	}
	split := len(all) - len(all)/heldOutPart
	counts := map[string]int{}
	for _, w := range all[:split] {
		counts[w]++
	}
	words := slices.SortedFunc(maps.Keys(counts), func(v, w string) int {
		return cmp.Or(counts[w]-counts[v], strings.Compare(v, w))
	})
	b := &book{words: append([]string{""}, words...), numbers: map[string]int{}}
	for i, w := range b.words[1:] {
		b.numbers[w] = i + 1
	}
	for i, w := range all {
		if n := int32(b.numbers[w]); i < split {
			b.train = append(b.train, n)
		} else {
			b.heldOut = append(b.heldOut, n)
		}
	}
	return b, nil
}

// places is how many words can be learnt from: those with enough words around them.
func (b *book) places() int { return len(b.train) - 2*reach }

// classOf is the answer that stands for a word.
func classOf(word int32) int32 {
	if word == unknown || word > others {
		return others
	}
	return word - 1
}

// frequencies are how frequent each answer is in words, each counted once more than it is there.
func frequencies(words []int32) []float64 {
	f := make([]float64, classes)
	for i := range f {
		f[i] = 1
	}
	for _, w := range words {
		f[classOf(w)]++
	}
	for i := range f {
		f[i] /= float64(len(words) + classes)
	}
	return f
}

// baseline is what who knows how frequent words are in the part learnt from loses on a word held out, in nats.
func (b *book) baseline() float64 {
	f, loss := frequencies(b.train), 0.0
	held := b.heldOut[reach : len(b.heldOut)-reach]
	for _, w := range held {
		loss -= math.Log(f[classOf(w)])
	}
	return loss / float64(len(held))
}
