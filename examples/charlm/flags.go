package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"time"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/methods"
)

// config is what the command line says.
type config struct {
	minutes    float64
	steps      int // in place of minutes, if above 0
	parameters int // at most
	batch      int // windows in a step, over all replicas
	rate       float64
	seed       uint64
	way
	sample      int // characters
	temperature float64
	split       bool      // the text is made up with the layers split over the replicas
	compare     bool      // in place of training
	tokens      bool      // the same
	table       bool      // a flag is given that is of the table of -tokens
	picture     string    // a file; empty: none
	stderr      io.Writer // of processes that -tokens starts
	checkpoint  string    // a directory; empty: none
	resume      bool
	given       bool // replicas is, by the command line
	member.SurvivalFlags
	survival *member.Survival // nil without -survive
}

// parseFlags reads the command line; whether the values make sense is for [config.check] to say. After -h it has
// written the usage to stdout and returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("charlm", flag.ContinueOnError)
	flags.IntVar(&cfg.replicas, "n", 4, "number of `replicas`; under a launcher as many as it has started")
	flags.Float64Var(&cfg.minutes, "minutes", 2, "`time` to train for, looks at the text held out included; the "+
		"evaluation and the sample at the end come after it")
	flags.IntVar(&cfg.steps, "steps", 0, "`number` of steps to train for, in place of -minutes: the same flags then "+
		"give the same bits")
	flags.IntVar(&cfg.parameters, "size", defaultParameters, "at most so many `parameters`: the largest model of "+
		"good proportions that has no more, up to 5 million")
	flags.IntVar(&cfg.batch, "batch", 16, "`windows` of text in a step, over all replicas")
	flags.Float64Var(&cfg.rate, "lr", 0, "highest learning `rate` of Adam; 0: by the model's width")
	flags.Uint64Var(&cfg.seed, "seed", 1, "`number` that the first parameters, the batches and the sample follow from")
	flags.TextVar(&cfg.method, "method", methods.Auto,
		"`name` of the method of the collectives, such as clockwise_ring")
	flags.BoolVar(&cfg.whole, "whole", false, "every replica has all parameters whole, and nothing is sharded")
	flags.BoolVar(&cfg.overlap, "overlap", false, "gather and reduce on a second goroutine of each replica while "+
		"layers compute")
	flags.IntVar(&cfg.bucket, "bucket", 0, "`bytes` of parameters that are gathered in one set of messages; 0: those "+
		"of a block")
	flags.BoolVar(&cfg.finite, "finite", false, "look for NaN and infinity in every step, and say where the first "+
		"came from")
	flags.Float64Var(&cfg.clip, "clip", 0, "`norm` that the gradients of all parameters are scaled down to; 0 leaves "+
		"them as they are")
	flags.IntVar(&cfg.sample, "sample", 400, "`characters` of text to make up at the end")
	flags.Float64Var(&cfg.temperature, "temperature", 0.7, "`degree` of that text: 0 is the likeliest, 1 as likely "+
		"as in the model")
	flags.StringVar(&cfg.checkpoint, "checkpoint", "", "`directory` to save to with each report, at the end, and on "+
		"Ctrl-C")
	flags.BoolVar(&cfg.resume, "resume", false, "go on from what -checkpoint has, with the same flags, on any number "+
		"of replicas")
	flags.BoolVar(&cfg.split, "split", false, "make up the text with the layers split over the replicas, an "+
		"all-reduce for each half of a block")
	cfg.Add(flags)
	flags.BoolVar(&cfg.compare, "compare", false, "in place of training: a table of memory and speed for 1, 2, 4 and "+
		"8 replicas, sharded and not; takes as long as -minutes says")
	flags.BoolVar(&cfg.tokens, "tokens", false, "in place of training: how many characters a second a random model of "+
		"-size, or of 5 million, makes up with its layers split; over goroutines with -n, over its processes in a job, "+
		"and else a table of both for 1, 2 and 4 replicas, for which processes are started; -minutes is then for how "+
		"long new rounds begin, and -sample the characters of a run")
	flags.StringVar(&cfg.picture, "svg", "", "`file` for a picture of the table of -tokens")

	const does = "Trains a transformer on the characters of a book, its parameters and optimiser sharded over the " +
		"replicas."
	if err := command.Parse(flags, args, stdout, does); err != nil {
		return config{}, err
	}
	given := map[string]bool{}
	flags.Visit(func(f *flag.Flag) { given[f.Name] = true })
	cfg.given = given["n"]
	switch {
	case cfg.compare:
		if err := without(given, "compare", "n", "steps", "lr", "seed", "whole", "overlap", "sample", "temperature",
			"checkpoint", "resume", "survive", "copy", "die", "await", "split", "tokens"); err != nil {
			return config{}, err
		}
		cfg.replicas = 1 // which any batch is good for; those of the table are its own
	case cfg.tokens:
		if err := without(given, "tokens", "steps", "batch", "lr", "whole", "overlap", "bucket", "finite", "clip",
			"checkpoint", "resume", "survive", "copy", "die", "await", "split"); err != nil {
			return config{}, err
		}
		if !given["size"] {
			cfg.parameters = maxParameters
		}
		cfg.table = given["minutes"] || given["svg"]
	case cfg.replicas == 1:
		for _, name := range []string{"method", "whole", "overlap"} {
			if given[name] {
				return config{}, fmt.Errorf("-n 1 and -%s: one replica has nobody to share with, want 2 or more", name)
			}
		}
	}
	switch {
	case given["svg"] && !cfg.tokens:
		return config{}, errors.New("-svg: it is a picture of the table of -tokens, which is not given")
	case given["svg"] && cfg.picture == "":
		return config{}, errors.New("-svg: the name is empty")
	case cfg.split && cfg.Survive:
		return config{}, errors.New("-split and -survive: want one of them, since those who are left may not share the " +
			"heads equally")
	case cfg.sample == 0 && (cfg.split || cfg.tokens):
		return config{}, errors.New("-sample 0: there is no text to make up, want 1 or more with -split and -tokens")
	}
	if given["temperature"] && cfg.sample == 0 {
		return config{}, errors.New("-temperature and -sample 0: there is no text that it would apply to")
	}
	if given["minutes"] && given["steps"] {
		return config{}, errors.New("-minutes and -steps: want one of them")
	}
	if given["steps"] && cfg.steps < 1 {
		return config{}, fmt.Errorf("-steps %d: there must be at least 1", cfg.steps)
	}
	switch {
	case given["checkpoint"] && cfg.checkpoint == "":
		return config{}, errors.New("-checkpoint: the name is empty")
	case cfg.resume && cfg.checkpoint == "":
		return config{}, errors.New("-resume: there is no -checkpoint to go on from")
	}
	return cfg, nil
}

// without is an error if the command line has one of the flags that do not go with another one.
func without(given map[string]bool, flag string, others ...string) error {
	for _, name := range others {
		if given[name] {
			return fmt.Errorf("-%s and -%s: want one of them", flag, name)
		}
	}
	return nil
}

// defaultParameters is above the 204,211 that a model of three blocks of width 72 has.
const defaultParameters = 205_000

// maxMinutes is a week, far from what a time.Duration can hold.
const maxMinutes = 7 * 24 * 60

// check reports the first value that makes no sense.
func (cfg config) check() error {
	switch {
	case cfg.compare && cfg.me.InJob():
		return errors.New("-compare: the replicas of its table are goroutines, so it is started by hand")
	case cfg.table && (cfg.me.InJob() || cfg.given):
		return errors.New("-minutes and -svg are of the table of -tokens, which has replicas of its own: leave -n out, and " +
			"start it by hand")
	case cfg.replicas < 1:
		return fmt.Errorf("-n %d: there must be at least 1 replica", cfg.replicas)
	case !(cfg.minutes > 0) || cfg.minutes > maxMinutes:
		return fmt.Errorf("-minutes %v: want more than 0, up to %d", cfg.minutes, maxMinutes)
	case cfg.steps > math.MaxInt32:
		return fmt.Errorf("-steps %d: want up to %d", cfg.steps, math.MaxInt32)
	case cfg.parameters < minParameters || cfg.parameters > maxParameters:
		return fmt.Errorf("-size %d: want %d to %d parameters", cfg.parameters, minParameters, maxParameters)
	case cfg.batch < 1 || cfg.batch > maxBatch:
		return fmt.Errorf("-batch %d: want 1 to %d windows", cfg.batch, maxBatch)
	case !cfg.tokens && (cfg.batch%cfg.replicas != 0 && !cfg.Survive || cfg.batch < cfg.replicas):
		return fmt.Errorf("-batch %d: the %d replicas cannot share it equally", cfg.batch, cfg.replicas)
	case !(float32(cfg.rate) > 0 || cfg.rate == 0) || cfg.rate > math.MaxFloat32:
		return fmt.Errorf("-lr %v: the rate must be above 0 and finite in float32, or 0 for one by the model's width",
			cfg.rate)
	case cfg.bucket < 0:
		return fmt.Errorf("-bucket %d: want 0 bytes or more", cfg.bucket)
	case !(float32(cfg.clip) > 0 || cfg.clip == 0) || cfg.clip > math.MaxFloat32:
		return fmt.Errorf("-clip %v: the norm must be above 0 and finite in float32, or 0 for no clipping", cfg.clip)
	case cfg.sample < 0:
		return fmt.Errorf("-sample %d: want 0 characters or more", cfg.sample)
	case !(cfg.temperature >= 0) || math.IsInf(cfg.temperature, 0):
		return fmt.Errorf("-temperature %v: want 0 or more, and finite", cfg.temperature)
	}
	return cfg.SurvivalFlags.Check()
}

// maxBatch is far more than a step has use for.
const maxBatch = 4096

// peak is the highest learning rate.
func (cfg config) peak(s size) float64 {
	if cfg.rate == 0 {
		return s.rate()
	}
	return cfg.rate
}

// duration is how long training takes, if it is not counted in steps.
func (cfg config) duration() time.Duration {
	return time.Duration(cfg.minutes * float64(time.Minute))
}

// part is how much of the training is done after so many steps, and so much time: 1 is all of it.
func (cfg config) part(step int, took time.Duration) float64 {
	if cfg.steps > 0 {
		return float64(step) / float64(cfg.steps)
	}
	return min(1, float64(took)/float64(cfg.duration()))
}
