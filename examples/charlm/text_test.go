package main

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestText(t *testing.T) {
	book, err := loadText()
	if err != nil {
		t.Fatal(err)
	}
	if got := len(book.train) + len(book.heldOut); got != 567038 || len(book.heldOut) != 56703 ||
		len(book.vocabulary) != 91 {
		t.Errorf("%d characters, %d held out, %d different ones; want 567038, 56703 and 91",
			got, len(book.heldOut), len(book.vocabulary))
	}
	if got, want := book.decode(book.train[:26]), "Produced by Suzanne Lybarg"; got != want {
		t.Errorf("the text begins with %q, want %q", got, want)
	}
	if got, want := book.decode(book.heldOut[len(book.heldOut)-11:]), "themselves."; got != want {
		t.Errorf("the text ends with %q, want %q", got, want)
	}
}

// TestEntropies has the figures that say what a model has learnt: below the first it knows which characters are
// frequent, below the second it knows more than which of them follow each other. Both are of all characters of the
// text, those that are held out too, counted and not estimated: that of a character, and that of a character given the
// one before, which is the entropy of neighbours less that of the first of them.
func TestEntropies(t *testing.T) {
	book, err := loadText()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name      string
		got, want float64
	}{
		{"unigram", unigramEntropy(book.all()), 3.16},
		{"bigram", bigramEntropy(book.all()), 2.39},
	} {
		t.Logf("%s: %.4f", tt.name, tt.got)
		if math.Abs(tt.got-tt.want) > 0.005 {
			t.Errorf("%s entropy %.4f, want %.2f", tt.name, tt.got, tt.want)
		}
	}
	// In abababab... a character says which is next, and alone is worth a bit.
	flip := []int32{0, 1, 0, 1, 0, 1, 0, 1}
	if u, b := unigramEntropy(flip), bigramEntropy(flip); math.Abs(u-math.Ln2) > 1e-12 || math.Abs(b) > 1e-12 {
		t.Errorf("entropies %v and %v, want ln 2 and 0", u, b)
	}
}

func TestNewText(t *testing.T) {
	book, err := newText([]byte("éa, b, b, baa"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(book.vocabulary), " ,abé"; got != want {
		t.Errorf("vocabulary %q, want %q", got, want)
	}
	if got := book.decode(book.train) + "|" + book.decode(book.heldOut); got != "éa, b, b, ba|a" {
		t.Errorf("parts %q", got)
	}
	for _, tt := range []struct{ text, want string }{
		{"123456789", "9 characters, want 10 or more"},
		{"0123456789\xff", "not UTF-8"},
	} {
		if _, err := newText([]byte(tt.text)); err == nil || err.Error() != tt.want {
			t.Errorf("%q: error %v, want %s", tt.text, err, tt.want)
		}
	}
	if _, err := book.encode([]rune("aX")); err == nil ||
		err.Error() != `the character 'X', which the text does not have` {
		t.Errorf("error %v", err)
	}
}

func TestExcerpt(t *testing.T) {
	book := &text{heldOut: []int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}}
	for _, tt := range []struct {
		pieces, chars int
		want          []int32
	}{
		{2, 3, []int32{0, 1, 2, 5, 6, 7}}, {3, 2, []int32{0, 1, 3, 4, 6, 7}}, {3, 100, book.heldOut}, {20, 1, book.heldOut},
	} {
		if got := book.excerpt(tt.pieces, tt.chars); !slices.Equal(got, tt.want) {
			t.Errorf("%d pieces of %d: %v, want %v", tt.pieces, tt.chars, got, tt.want)
		}
	}
}

func TestDrawBatch(t *testing.T) {
	book, err := newText([]byte("abcdefghijklmnopqrstuvwxyz0123"))
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed uint64) (chars, targets []int32) {
		chars, targets = make([]int32, 400), make([]int32, 400)
		book.drawBatch(rand.New(rand.NewPCG(seed, 0)), chars, targets, 4)
		return chars, targets
	}
	chars, targets := draw(1)
	next := map[int32]int32{}
	for i, n := range book.train[1:] {
		next[book.train[i]] = n
	}
	begin := map[int32]bool{}
	for i, n := range chars {
		if targets[i] != next[n] || i%4 != 3 && chars[i+1] != targets[i] {
			t.Fatalf("place %d: %d, then %d", i, n, targets[i])
		}
		if i%4 == 0 {
			begin[n] = true
		}
	}
	// The last window has the last character of the training text as its last target: 27 less 4 places to begin at.
	if len(begin) != 23 {
		t.Errorf("windows begin at %d places, want 23", len(begin))
	}
	if again, _ := draw(1); !slices.Equal(again, chars) {
		t.Error("one seed, two batches")
	}
	if other, _ := draw(2); slices.Equal(other, chars) {
		t.Error("two seeds, one batch")
	}
}
