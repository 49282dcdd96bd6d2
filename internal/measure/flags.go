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
	"sum": "ADD", "prod": "MUL", "avg": "MEAN", "and": "LOGICAL_AND", "or": "LOGICAL_OR", // operators
	"float": "float32", "double": "float64", "half": "float16", // element types
	"minbytes": "min", "maxbytes": "max", "stepfactor": "factor", "warmup_iters": "w", "check": "c",
	"ngpus": "n", "nthreads": "n", "g": "n", "t": "n", "output_file": "out", // flags
}

// Unknown is the error for a value of a flag that there is not.
func Unknown(flag, value string, known []string) error {
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
var shortFlags = map[string]string{"b": "min", "e": "max", "f": "factor", "d": "dtype", "o": "op", "r": "root"}

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
		if long, short := shortFlags[f.Name]; short {
			given[long] = f.Name
		} else if !given.Has(f.Name) {
			given[f.Name] = f.Name
		}
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
	var known []string
	f.VisitAll(func(f *flag.Flag) { known = append(known, f.Name) })
	return fmt.Errorf("%w%s", err, didYouMean("-", name, known))
}
