package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"strings"

	"gogcl.dev/internal/command"
)

// config is what the command line says.
type config struct {
	replicas int
	epochs   int
	batch    int     // words guessed in a step, over all replicas
	dim      int     // numbers that a word is described by
	rate     float64 // of gradient descent on the table
	seed     uint64
	near     []string
	finite   bool
	verify   bool
}

// parseFlags reads the command line; whether the values make sense is for [config.check] to say. After -h it has
// written the usage to stdout and returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("embedding", flag.ContinueOnError)
	flags.IntVar(&cfg.replicas, "n", 4, "number of `replicas`, which the table is split over")
	flags.IntVar(&cfg.epochs, "epochs", 4, "`passes` over the text")
	flags.IntVar(&cfg.batch, "batch", 256, "`words` guessed in a step, over all replicas: a multiple of -n; without "+
		"it, the last one up to 256")
	flags.IntVar(&cfg.dim, "dim", 32, "`numbers` that a word is described by")
	flags.Float64Var(&cfg.rate, "lr", 20, "`rate` of gradient descent on the table")
	flags.Uint64Var(&cfg.seed, "seed", 1, "`number` that the first table and the order of the words follow from")
	near := flags.String("near", "red,glass,rays,two,eye", "`words`, with commas between, whose nearest ones are "+
		"listed at the end")
	flags.BoolVar(&cfg.finite, "finite", false, "look for NaN and infinity in every step, and say where the first "+
		"came from")
	flags.BoolVar(&cfg.verify, "verify", false, "compare with one replica that has the whole table")

	if err := command.Parse(flags, args, stdout, "Learns what the words of a book are like, with a table split over "+
		"replicas."); err != nil {
		return config{}, err
	}
	given := false
	flags.Visit(func(f *flag.Flag) { given = given || f.Name == "batch" })
	if !given && cfg.replicas > 0 && cfg.replicas <= maxReplicas {
		cfg.batch -= cfg.batch % cfg.replicas
	}
	if *near != "" {
		cfg.near = strings.Split(*near, ",")
	}
	return cfg, nil
}

// The most that is allowed: what a machine may yet have memory for.
const (
	maxReplicas = 64
	maxDim      = 1024
)

// check reports the first value that makes no sense with a book.
func (cfg config) check(b *book) error {
	switch {
	case cfg.replicas < 1 || cfg.replicas > maxReplicas:
		return fmt.Errorf("-n %d: there must be 1 to %d replicas", cfg.replicas, maxReplicas)
	case cfg.epochs < 1:
		return fmt.Errorf("-epochs %d: there must be at least 1", cfg.epochs)
	case cfg.batch < 1:
		return fmt.Errorf("-batch %d: there must be at least 1 word in a step", cfg.batch)
	case cfg.batch%cfg.replicas != 0:
		return fmt.Errorf("-batch %d: it must be a multiple of the %d replicas", cfg.batch, cfg.replicas)
	case cfg.batch > b.places():
		return fmt.Errorf("-batch %d: there are only %d words to learn from", cfg.batch, b.places())
	case cfg.dim < 1 || cfg.dim > maxDim:
		return fmt.Errorf("-dim %d: there must be 1 to %d numbers", cfg.dim, maxDim)
	case !(float32(cfg.rate) > 0) || cfg.rate > math.MaxFloat32:
		return fmt.Errorf("-lr %v: the rate must be above 0 and finite in float32", cfg.rate)
	}
	for _, w := range cfg.near {
		if _, ok := b.numbers[w]; !ok {
			return fmt.Errorf("-near %q: the book has no such word (they are in lower case)", w)
		}
	}
	return nil
}
