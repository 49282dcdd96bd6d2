// Command larger trains a model that is larger than the memory it is given. Its parameters, and what Adam keeps of
// them, are in files, in shards on each replica; in memory is a layer at a time.
//
//	go run ./examples/larger
//	go run ./examples/larger -mib 1024 -dir DIR
//
// It makes a first step and saves a checkpoint; goes on from the files; goes on from the checkpoint, in other files;
// and compares the bits. For each of these it prints the most heap that there was, and all of Go's memory, which -limit
// bounds as the environment variable GOMEMLIMIT does. Files take six times as many bytes as the parameters while it
// runs, in a directory that is removed at the end.
//
// It ends with exit code 1 if the bits differ or the heap was larger than the limit, and with 2 after a mistake in the
// command line.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"gogcl.dev/internal/command"
)

func main() { command.Main("larger", run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	cfg, err := parseFlags(args, stdout)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return command.OK
	case err != nil:
		return command.Mistake("larger", err, stderr)
	}
	if cfg.limit > 0 {
		defer debug.SetMemoryLimit(debug.SetMemoryLimit(int64(cfg.limit) * mebi))
	}
	err = inDirectory(cfg.dir, func(dir string) error { return show(ctx, cfg, dir, stdout) })
	if err != nil {
		return command.Ended(ctx, "larger", err, stderr)
	}
	return command.OK
}

// inDirectory calls f with a new directory in dir, and removes it.
func inDirectory(dir string, f func(dir string) error) (err error) {
	if dir, err = os.MkdirTemp(dir, "gogcl-larger-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}

// config is what the command line says.
type config struct {
	replicas, mib, width, limit int
	dir                         string
}

// parseFlags reads the command line.
func parseFlags(args []string, stdout io.Writer) (config, error) {
	var cfg config
	flags := flag.NewFlagSet("larger", flag.ContinueOnError)
	flags.IntVar(&cfg.replicas, "n", 2, "number of `replicas`, 2 or more")
	flags.IntVar(&cfg.mib, "mib", 256, "`MiB` of parameters; Adam keeps twice as many")
	flags.IntVar(&cfg.width, "width", 1024, "`width` of the layers: each has a matrix of width by width")
	flags.IntVar(&cfg.limit, "limit", 64, "`MiB` of memory that Go may take, as by GOMEMLIMIT; 0: what GOMEMLIMIT says")
	flags.StringVar(&cfg.dir, "dir", "", "`directory` for the files, on a disk; without it that of the system for "+
		"temporary files")
	const does = "Trains a model that is larger than its memory, from files, and resumes it."
	if err := command.Parse(flags, args, stdout, does); err != nil {
		return config{}, err
	}
	switch {
	case cfg.replicas < 2:
		return config{}, fmt.Errorf("-n %d, want 2 or more", cfg.replicas)
	case cfg.mib < 1 || cfg.mib > 1<<20:
		return config{}, fmt.Errorf("-mib %d, want 1 to %d", cfg.mib, 1<<20)
	case cfg.width < 1 || cfg.width > 1<<14:
		return config{}, fmt.Errorf("-width %d, want 1 to %d", cfg.width, 1<<14)
	case cfg.layers() < 2:
		return config{}, fmt.Errorf("-width %d: %d MiB are less than two layers", cfg.width, cfg.mib)
	case cfg.layers() > mostLayers:
		return config{}, fmt.Errorf("-width %d: %d MiB are %d layers, want at most %d: a larger -width",
			cfg.width, cfg.mib, cfg.layers(), mostLayers)
	case cfg.limit < 0:
		return config{}, fmt.Errorf("-limit %d, want 1 or more, or 0", cfg.limit)
	}
	return cfg, nil
}

// mostLayers bounds the program, which takes memory for each layer: some 30 KiB.
const mostLayers = 1 << 16

// layers is how many layers have all parameters between them. Numbers of bytes have 64 bits, where an int has fewer
// too.
func (cfg config) layers() int64 { return int64(cfg.mib) * mebi / cfg.layerBytes() }

func (cfg config) layerBytes() int64 { return 4 * int64(cfg.width) * int64(cfg.width) }
