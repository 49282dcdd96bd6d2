package command

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// Parse reads a command line of flags only. After -h it has written the usage and what the program does to stdout, and
// returns flag.ErrHelp; any other error is a mistake in args, in one line.
func Parse(flags *flag.FlagSet, args []string, stdout io.Writer, does string) error {
	synopsis := "[flags]"
	if !hasFlags(flags) {
		synopsis = ""
	}
	err := ParseArguments(flags, args, stdout, synopsis, does)
	if err == nil && flags.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	return err
}

// ParseArguments is Parse for a program with arguments after the flags, which flags then has. The synopsis is what the
// usage has after the name, such as "[flags] file".
func ParseArguments(flags *flag.FlagSet, args []string, stdout io.Writer, synopsis, does string) error {
	flags.Init(flags.Name(), flag.ContinueOnError)
	flags.SetOutput(io.Discard) // the package's own messages take many lines
	err := flags.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprintf(stdout, "usage: %s\n\n", strings.TrimSpace(flags.Name()+" "+synopsis))
		for line := range strings.SplitSeq(does, "\n") {
			if len(line) > Columns {
				line = wrap(line, Columns)
			}
			fmt.Fprintln(stdout, line)
		}
		PrintFlags(flags, stdout)
	}
	return err
}

// Columns is how wide the lines of -h may be.
const Columns = 120

// PrintFlags writes the flags of a program to w, each with its usage broken into lines and its default. It changes the
// usages.
func PrintFlags(flags *flag.FlagSet, w io.Writer) {
	flags.VisitAll(func(f *flag.Flag) {
		// Four blanks and a tab begin a line, and the default ends the last one.
		f.Usage = wrap(f.Usage, Columns-len(fmt.Sprintf("%8s (default %q)", "", f.DefValue)))
	})
	flags.SetOutput(w)
	flags.PrintDefaults()
}

// wrap breaks text between words, into lines of so many columns at most.
func wrap(text string, columns int) string {
	var b strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case at+1+len(word) > columns:
			b.WriteByte('\n')
			at = 0
		default:
			b.WriteByte(' ')
			at++
		}
		b.WriteString(word)
		at += len(word)
	}
	return b.String()
}

// Flags is Parse, with what is to be done about its errors: ok is false when the program is over, with the exit code.
func Flags(flags *flag.FlagSet, args []string, stdout, stderr io.Writer, does string) (code int, ok bool) {
	switch err := Parse(flags, args, stdout, does); {
	case errors.Is(err, flag.ErrHelp):
		return OK, false
	case err != nil && !hasFlags(flags):
		fmt.Fprintf(stderr, "%s: %v\n", flags.Name(), err)
		return Usage, false
	case err != nil:
		return Mistake(flags.Name(), err, stderr), false
	}
	return OK, true
}

// hasFlags reports whether a program has flags.
func hasFlags(flags *flag.FlagSet) bool {
	found := false
	flags.VisitAll(func(*flag.Flag) { found = true })
	return found
}

// Mistake says on stderr which mistake there is on the command line of the program of that name, and returns Usage.
func Mistake(name string, err error, stderr io.Writer) int {
	fmt.Fprintf(stderr, "%s: %v (-h lists the flags)\n", name, err)
	return Usage
}
