package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"

	"gogcl.dev/internal/command"
	"gogcl.dev/internal/member"
	"gogcl.dev/methods"
)

// config is what the command line says.
type config struct {
	me         *member.Member // nil: in no job
	replicas   int
	given      bool // replicas is, by the command line
	epochs     int
	batch      int     // images in a step, over all replicas
	micro      int     // micro-batches of a replica in a step
	rate       float64 // Adam's step size
	clip       float64 // the norm that gradients are scaled down to; 0: none
	seed       uint64
	method     methods.Method
	bucket     int // bytes of parameters gathered together
	overlap    bool
	finite     bool
	storage    string // memory or file
	verify     bool
	picture    string // a file; empty: none
	checkpoint string // a directory; empty: none
	resume     bool
	pprof      string // a directory; empty: nobody is answered
	member.SurvivalFlags
	survival *member.Survival // nil without -survive
}

// What -storage may be.
const (
	inMemory = "memory"
	inFiles  = "file"
)

// parseFlags reads the command line; whether the values make sense is for [config.check] to say. After -h it has
// written the usage to stdout and returns flag.ErrHelp; any other error is a mistake in args, in one line.
func parseFlags(args []string, stdout io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("rts", flag.ContinueOnError)
	flags.IntVar(&cfg.replicas, "n", 4, "number of `replicas`; under a launcher as many as it has started")
	flags.IntVar(&cfg.epochs, "epochs", 30, "`passes` over the training images, with those before -resume")
	flags.IntVar(&cfg.batch, "batch", 64, "`images` in a step, over all replicas")
	flags.IntVar(&cfg.micro, "accumulate", 1, "`micro-batches` of each replica in a step, whose gradients are added up "+
		"and reduced once")
	flags.Float64Var(&cfg.rate, "lr", 0.003, "learning `rate` of Adam")
	flags.Float64Var(&cfg.clip, "clip", 1, "`norm` that the gradients of all parameters are scaled down to; 0 leaves "+
		"them as they are")
	flags.Uint64Var(&cfg.seed, "seed", 1, "`number` that the first weights and the order of the images follow from")
	flags.TextVar(&cfg.method, "method", methods.Auto,
		"`name` of the method of the collectives, such as clockwise_ring")
	flags.IntVar(&cfg.bucket, "bucket", layerBytes, "`bytes` of parameters that are gathered in one set of messages; "+
		"the larger layer's unless said otherwise, so that each layer goes by itself")
	flags.BoolVar(&cfg.overlap, "overlap", false, "gather and reduce on a second goroutine of each replica while "+
		"layers compute")
	flags.BoolVar(&cfg.finite, "finite", false, "look for NaN and infinity in every step, and say where the first "+
		"came from")
	flags.StringVar(&cfg.storage, "storage", inMemory, "`where` the shards are: memory, or file for memory-mapped "+
		"files in a temporary directory")
	flags.BoolVar(&cfg.verify, "verify", false, "compare losses, parameters and Adam's states after every step with "+
		"those of one replica that does the same without sharding")
	flags.StringVar(&cfg.picture, "svg", "", "`file` for a picture of loss and accuracy")
	flags.StringVar(&cfg.checkpoint, "checkpoint", "", "`directory` to save to after each pass, and on Ctrl-C, "+
		"SIGTERM and SIGHUP")
	flags.BoolVar(&cfg.resume, "resume", false, "go on from what -checkpoint has, with the same -batch, -clip, -lr "+
		"and -seed, on any number of replicas")

	cfg.Add(flags)
	flags.StringVar(&cfg.pprof, "pprof", "", "`directory` for a unix socket of each process, named by its rank, that "+
		"answers as net/http/pprof")

	if err := command.Parse(flags, args, stdout, "Trains a perceptron on hand-written digits, its parameters and "+
		"optimiser sharded over the replicas."); err != nil {
		return config{}, err
	}
	var err error
	flags.Visit(func(f *flag.Flag) {
		cfg.given = cfg.given || f.Name == "n"
		if err == nil && f.Value.String() == "" && f.Name != "die" {
			err = fmt.Errorf("-%s: the name is empty", f.Name)
		}
	})
	return cfg, err
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
	case cfg.micro < 1:
		return fmt.Errorf("-accumulate %d: there must be at least 1 micro-batch", cfg.micro)
	case cfg.micro > cfg.batch/cfg.replicas:
		return fmt.Errorf("-accumulate %d: more micro-batches than the %d images of a replica", cfg.micro,
			cfg.batch/cfg.replicas)
	case cfg.steps(available) > math.MaxInt32/cfg.epochs:
		return fmt.Errorf("-epochs %d: more than %d steps in all", cfg.epochs, math.MaxInt32)
	case !(float32(cfg.rate) > 0) || cfg.rate > math.MaxFloat32:
		return fmt.Errorf("-lr %v: the rate must be above 0 and finite in float32", cfg.rate)
	case !(float32(cfg.clip) > 0 || cfg.clip == 0) || cfg.clip > math.MaxFloat32:
		return fmt.Errorf("-clip %v: the norm must be above 0 and finite in float32, or 0 for no clipping", cfg.clip)
	case cfg.bucket < 1:
		return fmt.Errorf("-bucket %d: there must be at least 1 byte in a bucket", cfg.bucket)
	case cfg.storage != inMemory && cfg.storage != inFiles:
		return fmt.Errorf("-storage %q: want %s or %s", cfg.storage, inMemory, inFiles)
	case cfg.resume && cfg.checkpoint == "":
		return errors.New("-resume: there is no -checkpoint to go on from")
	case cfg.Survive && cfg.verify:
		return errors.New("-verify: with -survive the number of replicas changes, and the reference's does not")
	}
	return cfg.SurvivalFlags.Check()
}

// steps is how many there are in a pass over so many images.
func (cfg config) steps(images int) int { return (images + cfg.batch - 1) / cfg.batch }
