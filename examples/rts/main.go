// Command rts trains a perceptron on hand-written digits with everything sharded: of the parameters and of Adam's
// states each replica keeps 1/n, in remote buffers of its own.
//
//	             replica 0         replica 1        ...
//	each layer   load shard         load shard
//	             weights ◀────gather────▶ weights       whole for as long as the layer computes
//	             forward            forward             of the replica's share of the batch
//	and back     gather again, backward
//	             gradient ◀─reduce-scatter─▶ gradient   Mean: a shard each of that of the whole batch
//	at the end   norm ◀────all-reduce────▶ norm         of all gradients, which are clipped by it
//	             Adam               Adam                on the shard and its states
//	             store shard        store shard
//
// Usage:
//
//	go run ./examples/rts [-n replicas] [-epochs passes] [-batch images] [-accumulate micro-batches] [-lr rate]
//		[-clip norm] [-seed number] [-method name] [-bucket bytes] [-overlap] [-storage memory|file] [-verify]
//		[-svg file] [-checkpoint directory [-resume]] [-survive [-copy steps] [-die replica:step] [-await replicas:step]]
//		[-pprof directory]
//
// # A batch that the replicas cannot share equally
//
// Graphs have fixed shapes, so the micro-batch of a replica has ceil(batch/n) rows whatever there is to fill them.
// The images of a step, b of them (in the last batch of a pass perhaps fewer than -batch), are cut into n shares that
// differ by one image at most; some may be empty. An image has weight n/b, a row without an image weight 0, and the
// loss of a replica is the sum of its images' weighted cross entropies. Then the mean over the replicas, which is
// what reducing the gradients by Mean makes of them, is the mean over the b images: each counts 1/b, however they are
// shared out. No image is left out or counted twice. With -accumulate k there are n*k such shares, k for each replica,
// which computes one after the other; its loss is their mean, and the gradients are reduced once.
//
// # What -verify compares
//
// The collectives are Reproducible: they fold by rank. So a single replica can have the same bits, if it computes the
// n micro-batches one after the other and folds losses, gradients and squares of norms by rank. With -verify one
// does, by a program of its own that knows nothing of package rts, and makes the step of Adam in plain Go, with its own
// count of steps. After every step, the last one too, it compares the loss and the norm of the gradients on each
// replica, and every shard of the parameters and of Adam's states. The first bit that differs ends the program with
// exit code 1.
//
// What both have in common it cannot see: the order of the images and their shares, the first weights, the layers, and
// the gradients that package ir makes of them. What -resume loads is the same checkpoint, but the replicas load it
// shard by shard and the reference whole.
//
// # Checkpoints
//
// With -checkpoint the parameters, Adam's states and the place in the training are saved after every pass, and after
// the step in progress on Ctrl-C, SIGTERM and SIGHUP. -resume goes on from there, with the same -batch, -clip, -lr and
// -seed: on as many replicas as before, with the losses, to the bit, that an uninterrupted training has; on another
// number, or with another -accumulate, they differ in the last bits, since the images are shared out otherwise. One
// program trains in a directory at a time.
//
// Of a program that is killed (kill -9) the checkpoint of the last pass remains. The files of -storage file lose their
// names as soon as all are open, and go however the program ends; killed before that, or on Windows, it leaves a
// directory gogcl-rts-* in the temporary one.
//
// # Deaths
//
// With -survive the others go on when replicas die. Each keeps its shards and those of another replica in memory, as
// they are after every tenth step, or as -copy says: see rts.Copies. After a death all go back to that step, the shards
// and the images are shared out anew, and a line says
//
//	replica 2 has died: 3 go on from step 40
//
// Where nobody has a shard any more, they go on from -checkpoint, if it has one. By -die a replica fails, and
// one that is a process is killed. A process may come in its place, which loses no step:
//
//	go run ./examples/rts -survive -die 2:45
//	./gclrun -n 4 -survive ./rts -survive
//	./gclrun -n 4 -survive -max-restarts 1 ./rts -survive -die 2:45 -await 4:231
//
// With -await they take it in before a certain step, and wait for it if need be: here three go on to step 230, and four
// from there.
//
// # Processes
//
// The replicas are goroutines. Under a launcher each is a process, and replica 0 prints:
//
//	go build ./cmd/gclrun ./examples/rts
//	./gclrun -n 4 ./rts
//	mpirun -np 4 ./rts
//
// The losses are the same to the bit. A checkpoint of one kind is resumed by the other; its directory has to be shared
// by all hosts. A process that is told to stop tells the others, and all stop after the same step. The resident memory
// of the processes, as the operating system has it, stands below the table, and how many collectives of replica 0 went
// which way: by peer memory where the processes share memory.
//
// One replica (-n 1) has nobody to share with: its parameters and states are plain remote variables.
//
// The exit code is 0 when all went well, 1 when something failed (also the output, as a pipe that nobody reads: that
// ends the training after a pass), 2 for a mistake on the command line, 130 after Ctrl-C, 143 after SIGTERM and
// 129 after SIGHUP. In a job the replicas that the signal has not reached end with 130.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"gogcl.dev/examples/digits/perceptron"
	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
)

func main() {
	var ends []os.Signal
	if !signal.Ignored(syscall.SIGHUP) { // by nohup
		ends = append(ends, syscall.SIGHUP)
	}
	command.Main("rts", run, ends...)
}

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var help strings.Builder
	cfg, mistake := parseFlags(args, &help)
	return member.Run(ctx, "rts", stdout, stderr, func(me *member.Member, own io.Writer) error {
		if mistake != nil {
			_, _ = io.WriteString(own, help.String()) // command.Main says what is lost
			return member.Mistake{Err: mistake}
		}
		return runMember(ctx, me, cfg, own, stdout)
	}, cfg.Options()...)
}

// runMember is the program in a job, or in none. What it prints when replica 0 is gone goes to all.
func runMember(ctx context.Context, me *member.Member, cfg config, stdout, all io.Writer) (err error) {
	cfg.me = me
	cfg.replicas, err = me.Replicas(cfg.replicas, cfg.given)
	if err != nil {
		return member.Mistake{Err: err}
	}
	train, test, err := perceptron.Load()
	if err != nil {
		return err
	}
	if err := cfg.check(train.Len()); err != nil {
		return member.Mistake{Err: err}
	}

	if cfg.pprof != "" {
		end, err := servePprof(cfg.pprof, me.Comm().Replica())
		if err != nil {
			return err
		}
		defer end()
	}
	if cfg.Survive {
		return me.Survive(ctx, cfg.SurvivalFlags, cfg.replicas, all,
			func(ctx context.Context, s *member.Survival, me *member.Member, out *progress.Printer) error {
				cfg := cfg
				cfg.survival, cfg.me, cfg.replicas = s, me, me.Comm().Replicas()
				return trainAll(ctx, cfg, train, test, out)
			})
	}
	out := progress.New(stdout)
	err = trainAll(ctx, cfg, train, test, out)
	out.Close()
	if err == nil && out.Err() != nil {
		return &command.OutputError{Err: out.Err()}
	}
	return err
}

// trainAll trains to the end, and says what there is to say.
func trainAll(ctx context.Context, cfg config, train, test perceptron.Images, out *progress.Printer) (err error) {
	if !cfg.me.First() {
		cfg.picture = ""
	}
	picture, err := openPicture(cfg.picture)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, picture.GiveUp()) }()
	t, err := newTrainer(context.WithoutCancel(ctx), cfg, train, test, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if !cfg.survival.Again() {
		t.introduce()
	}
	if err := t.run(ctx); err != nil {
		return err
	}
	if t.reference != nil {
		out.Line(fmt.Sprintf("verified: %d %s, losses, parameters and Adam's states equal to the last bit",
			t.made, plural(t.made, "step", "steps")))
	}
	out.Line(fmt.Sprintf("test accuracy %.4f", t.at.Passes[len(t.at.Passes)-1].Accuracy))
	table, err := t.memoryTable(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	out.Line(table)
	if cfg.me.InJob() && !cfg.survival.Local() {
		line, err := cfg.me.Resident(context.WithoutCancel(ctx))
		if err != nil {
			return err
		}
		if line != "" {
			out.Line(line)
		}
		out.Line(cfg.me.Ways())
	}
	title := fmt.Sprintf("%d digits, %d replicas, batch %d", train.Len(), cfg.replicas, cfg.batch)
	if err := picture.Draw(figure(title, t.at.Passes)); err != nil {
		return fmt.Errorf("-svg %w", err)
	}
	return nil
}

// introduce says what is to be trained, and how.
func (t *trainer) introduce() {
	t.out.Line(fmt.Sprintf("%d digits to learn, %d held out; replicas: %d, batch: %d, method: %v",
		t.train.Len(), t.test.Len(), t.cfg.replicas, t.cfg.batch, t.cfg.method))
	if t.cfg.replicas == 1 {
		t.out.Line(fmt.Sprintf("%d parameters and Adam's states in plain remote variables: one replica has nobody to "+
			"share with", perceptron.NumParams))
	} else {
		t.out.Line(fmt.Sprintf("%d parameters and Adam's states in remote buffers, 1/%d on each replica",
			perceptron.NumParams, t.cfg.replicas))
		t.out.Line(legend)
	}
	if t.dir != "" {
		t.out.Line("buffers: files in " + t.dir + ", removed at the end")
	} else if t.cfg.storage == inFiles {
		t.out.Line("buffers: files in " + os.TempDir() + ", whose names are removed already")
	}
	if t.cfg.resume {
		t.out.Line(fmt.Sprintf("resumed from %s after %v", t.cfg.checkpoint, t.at))
	}
}
