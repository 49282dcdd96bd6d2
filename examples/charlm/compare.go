package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"gogcl.dev/internal/progress"
	"gogcl.dev/rts"
)

// comparedReplicas are the numbers of replicas of the tables, of which those count that can share the batch.
var comparedReplicas = []int{1, 2, 4, 8}

// compared is a way of training, with what it takes.
type compared struct {
	name   string
	way    way
	memory rts.Memory
	steps  int
	took   time.Duration
}

// ways are those that are compared for a number of replicas.
func (cfg config) ways(replicas int) []*compared {
	make := func(name string, whole, overlap bool) *compared {
		w := cfg.way
		w.replicas, w.whole, w.overlap = replicas, whole, overlap
		return &compared{name: name, way: w}
	}
	all := []*compared{make("whole", true, false)}
	if replicas > 1 {
		all = append(all, make("sharded", false, false), make("overlap", false, true))
	}
	return all
}

// compare prints what training takes of memory, and how fast it is, on several numbers of replicas: with everything
// whole on each of them, sharded, and sharded with overlap. Of each number the ways are measured in turns, so that what
// else the machine does hits all of them. All of it takes as long as cfg says.
func compare(ctx context.Context, cfg config, book *text, s size, out *progress.Printer) error {
	var numbers []int
	for _, n := range comparedReplicas {
		if cfg.batch%n == 0 {
			numbers = append(numbers, n)
		} else {
			out.Line(fmt.Sprintf("%d replicas are left out: they cannot share a batch of %d equally", n, cfg.batch))
		}
	}
	out.Line(fmt.Sprintf("%-9s %-8s %11s %13s %9s %10s %9s %10s %13s",
		"replicas", "", "parameters", "Adam's states", "gathered",
		"gradients", "others", "peak of all", "characters/s"))
	for _, n := range numbers {
		all := cfg.ways(n)
		if err := cfg.measure(ctx, book, s, all, cfg.duration()/time.Duration(len(numbers))); err != nil {
			return err
		}
		for _, c := range all {
			m := c.memory
			speed := float64(c.steps*cfg.batch*s.window) / c.took.Seconds()
			out.Line(fmt.Sprintf("%-9d %-8s %11d %13d %9d %10d %9d %10d %13.0f",
				n, c.name, m.Parameters, m.States, m.Gathered, m.Gradients,
				m.Others, m.Peak, speed))
		}
	}
	return nil
}

// turn is how many steps each way makes at a time.
const turn = 20

// measure trains in several ways for some time in all.
func (cfg config) measure(ctx context.Context, book *text, s size, all []*compared, budget time.Duration) (err error) {
	trainers := make([]*trainer, len(all))
	defer func() {
		for _, t := range trainers {
			if t != nil {
				err = errors.Join(err, t.close())
			}
		}
	}()
	for i, c := range all {
		if trainers[i], err = newTrainer(c.way, s, cfg.batch/c.way.replicas, cfg.seed); err != nil {
			return err
		}
		if c.memory, err = trainers[i].memory(); err != nil {
			return err
		}
	}
	random := rand.New(rand.NewPCG(cfg.seed, batchStream))
	for spent := time.Duration(0); spent < budget; {
		for i, c := range all {
			t := trainers[i]
			for range turn {
				book.drawBatch(random, t.chars, t.targets, s.window)
				began := time.Now()
				if _, err := t.run(ctx, 1+c.steps, rateAt(cfg.peak(s), 1+c.steps, 0)); err != nil {
					return err
				}
				c.took += time.Since(began)
				c.steps++
			}
		}
		spent = 0
		for _, c := range all {
			spent += c.took
		}
	}
	return nil
}
