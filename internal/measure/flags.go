package measure

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"

	"gogcl.dev/internal/closest"
)

// otherWords are words of nccl-tests, MPI and other libraries, in lower case, which share too few letters with ours.
var otherWords = map[string]string{
	"and": "LOGICAL_AND", "or": "LOGICAL_OR", // operators
	"minbytes": "min", "maxbytes": "max", "stepfactor": "factor", "warmup_iters": "w", "check": "c",
	"stepbytes": "step", "datatype": "dtype", "ngpus": "n", "nthreads": "n", "g": "n", "output_file": "out", // flags
}

// sameWords are words of nccl-tests for values of ours, in lower case.
var sameWords = map[string]string{
	"sum": "ADD", "prod": "MUL", "avg": "MEAN", // operators
	"float": "float32", "double": "float64", "half": "float16", // element types
}

// refusedWords are values and flags of nccl-tests for which there is nothing here, with what comes nearest.
var refusedWords = map[string]string{
	"mulsum": "multiplies by a factor of each rank before it adds, which no operator here does: want sum",
	"f8e4m3": "is a float of 8 bits, which is no element type here: want half or bfloat16",
	"f8e5m2": "is a float of 8 bits, which is no element type here: want half or bfloat16",
	"-t":     "threads of nccl-tests: want -n, the number of replicas",
	"-m":     "calls in one group of nccl-tests: calls are made one by one here, and -batch has each made by a gcl.Batch",
	"-N":     "cycles of nccl-tests, each of which makes communicators anew: want -iters for more calls",
	"-p":     "threads of nccl-tests that make communicators: there is nothing to choose here",
	"-z":     "calls of nccl-tests that wait: all wait here",
	"-y":     "CUDA streams of nccl-tests: there are none here",
	"-G":     "CUDA graphs of nccl-tests: want -batch, which has each call made by a gcl.Batch",
	"-a":     "nccl-tests' mean over ranks: the slowest replica counts here",
	"-C":     "nccl-tests' time on the processor: all time is that here",
	"-R":     "nccl-tests' registered buffers: gclperf's are of gcl.Alloc already",
	"-T":     "nccl-tests' limit of time: want timeout of the shell",
	"-J":     "nccl-tests' file of JSON: want -out, or -json",
}

// wordOf is our word for one of nccl-tests, else the word itself.
func wordOf(word string) string { return cmp.Or(sameWords[strings.ToLower(word)], word) }

// Unknown is the error for a value of a flag that there is not.
func Unknown(flag, value string, known []string) error {
	if why := refusedWords[strings.ToLower(value)]; why != "" {
		return fmt.Errorf("%s %s %s", flag, value, why)
	}
	return fmt.Errorf("%s %.100q does not exist%s; there is %s", flag, value, didYouMean("", value, known),
		strings.Join(known, ", "))
}

// didYouMean asks for the known word that somebody may have meant, with a prefix before it. It is empty where there is
// none like it.
func didYouMean(prefix, word string, known []string) string {
	meant := otherWords[strings.ToLower(word)]
	if !slices.Contains(known, meant) {
		if meant = closest.Near(word, known); meant == "" {
			return ""
		}
	}
	return fmt.Sprintf(" (did you mean %s%s?)", prefix, meant)
}

// shortFlags are nccl-tests' letters for flags of ours.
var shortFlags = map[string]string{"b": "min", "e": "max", "i": "step", "f": "factor", "d": "dtype", "o": "op",
	"r": "root", "g": "n"}

// Shorten declares nccl-tests' letters for the flags that are declared. A program calls it last.
func Shorten(f *flag.FlagSet) {
	for short, long := range shortFlags {
		if of := f.Lookup(long); of != nil && f.Lookup(short) == nil {
			f.Var(of.Value, short, "short for -"+long)
		}
	}
}

// both is the error for a flag that is given by both its names, of which one would have no effect.
func both(short, long string) error {
	err := fmt.Errorf("-%s and -%s are one flag: want one of them", short, long)
	if long == "n" {
		err = fmt.Errorf("%w; the -n of nccl-tests, the number of calls, is -iters here", err)
	}
	return err
}

// Given are the flags on a command line, by their long names. The value is the name as it was given.
type Given map[string]string

// Has reports whether a flag was given.
func (g Given) Has(name string) bool { return g[name] != "" }

// As is a flag as it was given, for errors: -b where that was given for -min.
func (g Given) As(name string) string { return "-" + cmp.Or(g[name], name) }

// Read reads a command line. The error is flag.ErrHelp for -h.
func Read(f *flag.FlagSet, args []string) (Given, error) {
	f.Usage = func() {}
	f.SetOutput(io.Discard) // the error says it again
	given := Given{}
	err := f.Parse(args)
	switch {
	case err != nil:
		err = explain(f, args, err)
	case f.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	f.Visit(func(f *flag.Flag) {
		long, short := f.Name, ""
		if of, is := shortFlags[f.Name]; is {
			long, short = of, f.Name
		}
		if had := given[long]; had != "" && err == nil {
			err = both(cmp.Or(short, had), long)
		}
		given[long] = cmp.Or(short, given[long], long)
	})
	return given, err
}

// explain adds to the error of parsing args, where the flag at which it stopped is unknown, which may have been meant.
func explain(f *flag.FlagSet, args []string, err error) error {
	at := len(args) - f.NArg() - 1
	if at < 0 || !strings.HasPrefix(args[at], "-") {
		return err
	}
	name, _, _ := strings.Cut(strings.TrimLeft(args[at], "-"), "=")
	if f.Lookup(name) != nil || errors.Is(err, flag.ErrHelp) {
		return err
	}
	if why := refusedWords["-"+name]; why != "" {
		return fmt.Errorf("%w: it is for %s", err, why)
	}
	var known []string
	f.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return fmt.Errorf("%w%s", err, didYouMean("-", name, known))
}
