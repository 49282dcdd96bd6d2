package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/internal/jobtest"
)

// splitSize has heads for 1, 2 and 4 replicas.
var splitSize = size{depth: 2, width: 32, heads: 4, window: 16, vocabulary: 9}

// onDecoders has the body run on n replicas, each with a decoder of splitSize.
func onDecoders(t *testing.T, n int, body func(context.Context, *decoder) error) {
	t.Helper()
	v := differentValues(t, splitSize)
	cfg := config{way: way{replicas: n}}
	err := cfg.onReplicas(t.Context(), func(ctx context.Context, c *gcl.Comm) error {
		d, err := newDecoder(c, splitSize, v)
		if err != nil {
			return err
		}
		return body(ctx, d)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestDecoder has the logits of the program of one replica, but for rounding, and all replicas have the same bits.
func TestDecoder(t *testing.T) {
	g, err := newGenerator(splitSize, differentValues(t, splitSize))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	for i := range g.chars {
		g.chars[i] = int32(i*i+3*i) % int32(splitSize.vocabulary)
	}
	if err := g.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2, 4} {
		all := make([][]float32, n) // logits after each character, by replica
		onDecoders(t, n, func(ctx context.Context, d *decoder) error {
			if got, want := d.parameters(), 2*12*32*32/n; got != want {
				t.Errorf("%d replicas: %d parameters, want %d", n, got, want)
			}
			for _, char := range g.chars {
				if err := d.read(ctx, char); err != nil {
					return err
				}
				all[d.comm.Rank()] = append(all[d.comm.Rank()], d.logits...)
			}
			return nil
		})
		for i, want := range g.logits {
			if got := all[0][i]; !(math.Abs(float64(got-want)) < 1e-4) {
				t.Fatalf("%d replicas: logit %d is %v, want %v", n, i, got, want)
			}
		}
		for r := range all {
			if !slices.Equal(all[r], all[0]) {
				t.Errorf("%d replicas: replica %d has other logits than replica 0", n, r)
			}
		}
	}
}

// TestGenerateSplit goes beyond the window, and compares each character with what the program of one replica takes
// from the characters that the decoder has then read.
func TestGenerateSplit(t *testing.T) {
	g, err := newGenerator(splitSize, differentValues(t, splitSize))
	if err != nil {
		t.Fatal(err)
	}
	defer g.close()
	const chars = 45
	window := splitSize.window
	for _, first := range [][]int32{{3}, slices.Repeat([]int32{1, 4, 2}, 9)} {
		texts := make([][]int32, 2)
		onDecoders(t, 2, func(ctx context.Context, d *decoder) (err error) {
			texts[d.comm.Rank()], err = d.generate(ctx, nil, slices.Clone(first), chars, 0)
			return err
		})
		text := texts[0]
		if len(text) != len(first)+chars || !slices.Equal(text, texts[1]) {
			t.Fatalf("texts %d, want the same %d characters twice", texts, len(first)+chars)
		}
		from := max(0, len(first)-window)
		for i := len(first); i < len(text); i++ {
			if i-from > window {
				from = i - window/2
			}
			want, err := g.generate(t.Context(), nil, slices.Clone(text[from:i]), 1, 0)
			if err != nil {
				t.Fatal(err)
			}
			if text[i] != want[i-from] {
				t.Errorf("after %d: %d, want %d", text[from:i], text[i], want[i-from])
			}
		}
	}
}

func TestSplits(t *testing.T) {
	s := size{heads: 6}
	for n, want := range map[int]string{1: "", 2: "", 3: "", 6: "",
		4: "over 4 replicas, each with as many of the 6 heads: want a number of replicas among [1 2 3 6], or another -size",
		7: "over 7 replicas, each with as many of the 6 heads: want a number of replicas among [1 2 3 6]"} {
		if err := s.splits(n); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d replicas: error %v, want %q", n, err, want)
		}
	}
	err := gcl.Run(t.Context(), 3, func(_ context.Context, c *gcl.Comm) error {
		_, err := newDecoder(c, splitSize, nil)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "3 replicas, each with as many of the 4 heads") {
		t.Errorf("error %v", err)
	}
}

// TestSplitJob: processes make up the text of goroutines, with what they have learnt.
func TestSplitJob(t *testing.T) {
	onNumbers(t)
	const flags = "-split -size 67000 -steps 3 -batch 4 -sample 60"
	for _, n := range []int{1, 2} {
		alone := output(t, fmt.Sprintf("%s -n %d", flags, n), loadText)
		split := fmt.Sprintf("\nthe sample has the matrices of blocks split: parameters %d on each replica\n", 4*2*12*48*48/n)
		before, text, found := strings.Cut(alone, split)
		if !found || len([]rune(text)) != 62 || !strings.Contains(before, "evaluation has a program of one replica") {
			t.Errorf("no %q and 60 characters in\n%s", split, alone)
		}
	}
	alone := output(t, flags+" -n 2", loadText)
	job := jobtest.Start(t, 2, strings.Fields(flags)...).Printed(t)
	if made := alone[len(alone)-62:]; losses(job) != losses(alone) || !strings.HasSuffix(job, made) {
		t.Errorf("a job prints\n%s\nwant\n%s", job, alone)
	}
}
