package main

import (
	"flag"
	"fmt"
	"io"
	"math"

	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
)

// config is what the command line says.
type config struct {
	replicas int
	given    bool // replicas is, by the command line
	epochs   int
	batch    int     // images in a step, over all replicas
	rate     float64 // Adam's step size
	seed     uint64
	method   methods.Method
}

// parseFlags reads the command line; whether the values make sense is for [config.check] to say. After -h it has
// written the usage to stdout and returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("digits", flag.ContinueOnError)
	flags.IntVar(&cfg.replicas, "n", 4, "number of `replicas`; under a launcher as many as it has started")
	flags.IntVar(&cfg.epochs, "epochs", 30, "`passes` over the training images")
	flags.IntVar(&cfg.batch, "batch", 64, "`images` in a step, over all replicas")
	flags.Float64Var(&cfg.rate, "lr", 0.003, "learning `rate` of Adam")
	flags.Uint64Var(&cfg.seed, "seed", 1, "`number` that the first weights and the order of the images follow from")
	flags.TextVar(&cfg.method, "method", methods.Auto,
		"`name` of the method of the collectives, such as clockwise_ring")

	if err := command.Parse(flags, args, stdout,
		"Trains a perceptron on hand-written digits, data parallel."); err != nil {
		return config{}, err
	}
	flags.Visit(func(f *flag.Flag) { cfg.given = cfg.given || f.Name == "n" })
	return cfg, nil
}

// check reports the first value that makes no sense, given the number of training images.
func (cfg config) check(available int) error {
	switch {
	case cfg.replicas < 1:
		return fmt.Errorf("-n %d: there must be at least 1 replica", cfg.replicas)
	case cfg.epochs < 1:
		return fmt.Errorf("-epochs %d: there must be at least 1", cfg.epochs)
	case cfg.batch < 1:
		return fmt.Errorf("-batch %d: there must be at least 1 image in a batch", cfg.batch)
	case cfg.batch > available:
		return fmt.Errorf("-batch %d: there are only %d training images", cfg.batch, available)
	case cfg.replicas > cfg.batch:
		return fmt.Errorf("-n %d: more replicas than the %d images of a batch", cfg.replicas, cfg.batch)
	case !(cfg.rate > 0) || math.IsInf(cfg.rate, 0):
		return fmt.Errorf("-lr %v: the rate must be above 0 and finite", cfg.rate)
	}
	return nil
}
