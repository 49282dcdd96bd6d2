package main

import (
	"errors"
	"flag"
	"fmt"
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

// unknown is the error for a value of a flag that there is not.
func unknown(flag, value string, known []string) error {
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
