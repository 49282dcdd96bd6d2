// Command charlm trains a transformer to foretell the characters of a book, with its parameters and Adam's states
// sharded over the replicas, and then has it make up some text.
//
//	text        | the first nine tenths: to train on          | the last tenth: held out |
//	each step   replica 0               replica 1            ...
//	            some windows            some windows
//	forward     embedding, blocks, head: each gathered from all replicas, and given up after use
//	back        the same from the last to the first; gradients are reduced straight into shards
//	            Adam on a shard         Adam on a shard
//	at the end  what each character of the text held out has cost, in nats
//
// That, and the text made up, is computed by programs of one replica, which has all parameters whole.
//
// A model that knows how frequent each character is loses 3.16 nats a character on this text, and one that knows which
// follow each other 2.39.
//
// With -split the text is made up on all replicas, with the matrices of the blocks split over them (tensor parallel):
// an all-reduce makes each half of a block whole. With -tokens the program prints instead how many characters a second
// a model makes up in this way, over goroutines and over processes connected by shared memory, unix sockets and TCP.
//
// With -compare it prints instead what training takes of memory on 1, 2, 4 and 8 replicas, sharded and with all on each
// of them, and how fast it is, with overlap and without.
//
// Usage:
//
//	go run ./examples/charlm [-n replicas] [-minutes time | -steps number] [-size parameters] [-batch windows] [-lr rate]
//		[-clip norm] [-seed number] [-method name] [-whole] [-overlap] [-bucket bytes]
//		[-sample characters] [-temperature degree] [-split] [-checkpoint directory [-resume]]
//		[-survive [-copy steps] [-die replica:step] [-await replicas:step]]
//	go run ./examples/charlm -compare [-minutes time] [-size parameters] [-batch windows] [-clip norm] [-method name]
//		[-bucket bytes]
//	go run ./examples/charlm -tokens [-n replicas | [-minutes time] [-svg file]] [-size parameters] [-seed number]
//		[-method name] [-sample characters] [-temperature degree]
//
// What is evaluated while the model is trained is part of -minutes, and the evaluation and the sample at the end come
// after it.
//
// With -checkpoint the parameters, Adam's states and the place in the training are saved with each report and after the
// step in progress on Ctrl-C. -resume goes on from there, with the same flags: on as many replicas as before, with the
// losses, to the bit, that an uninterrupted training of so many -steps has.
//
// With -survive the others go on when replicas die, from the last copy of all shards in the memory of others: see
// rts.Copies. A process that comes in the place of one, as by gclrun -max-restarts, gets its share of the others. With
// -await it is taken in before a certain step, for which the others wait. Where a batch can then not be shared equally,
// each replica has as many windows as there are for all.
//
// The replicas are goroutines. Under a launcher each is a process, and replica 0 prints, evaluates and makes up the
// text:
//
//	go build ./cmd/gclrun ./examples/charlm
//	./gclrun -n 4 ./charlm
//	mpirun -np 4 ./charlm
//
// The losses are the same to the bit, and a checkpoint of one kind is resumed by the other. A process that is told to
// stop tells the others, and all stop after the same step. A line says which way collectives went: by peer memory where
// the processes share memory.
//
// The exit code is 0 at the end, 1 when something failed, 2 for a mistake on the command line, 130 after
// Ctrl-C and 143 after SIGTERM.
package main

import (
	"context"
	"io"
	"strings"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/internal/progress"
)

func main() {
	command.Main("charlm", func(ctx context.Context, args []string, stdout, stderr io.Writer) int {
		return run(ctx, args, loadText, stdout, stderr)
	})
}

// run is the program on the text that load gives: it returns the exit code.
func run(ctx context.Context, args []string, load func() (*text, error), stdout, stderr io.Writer) int {
	var help strings.Builder
	cfg, mistake := parseFlags(args, &help)
	cfg.stderr = stderr
	return member.Run(ctx, "charlm", stdout, stderr, func(me *member.Member, own io.Writer) error {
		if mistake != nil {
			_, _ = io.WriteString(own, help.String()) // command.Main says what is lost
			return member.Mistake{Err: mistake}
		}
		return runMember(ctx, me, cfg, load, own, stdout)
	}, cfg.Options()...)
}

// runMember is the program in a job, or in none. What it prints when replica 0 is gone goes to all.
func runMember(ctx context.Context, me *member.Member, cfg config, load func() (*text, error), stdout,
	all io.Writer) (err error) {
	cfg.me = me
	cfg.replicas, err = me.Replicas(cfg.replicas, cfg.given)
	if err == nil {
		err = cfg.check()
	}
	if err != nil {
		return member.Mistake{Err: err}
	}
	book, err := load()
	if err != nil {
		return err
	}
	if cfg.split || cfg.tokens && (me.InJob() || cfg.given) {
		if err := sizeFor(cfg.parameters, len(book.vocabulary)).splits(cfg.replicas); err != nil {
			return member.Mistake{Err: err}
		}
	}
	if cfg.Survive {
		return me.Survive(ctx, cfg.SurvivalFlags, cfg.replicas, all,
			func(ctx context.Context, s *member.Survival, me *member.Member, out *progress.Printer) error {
				cfg := cfg
				cfg.survival, cfg.me, cfg.replicas = s, me, me.Comm().Replicas()
				return runAll(ctx, cfg, book, out)
			})
	}
	out := progress.New(stdout)
	err = runAll(ctx, cfg, book, out)
	out.Close()
	if err == nil && out.Err() != nil {
		return &command.OutputError{Err: out.Err()}
	}
	return err
}
