// Command wordcount counts the words of files. Each replica reads its share of the files, and replica 0 prints the
// words that are found most often in all.
//
//	go run ./examples/wordcount docs/*.md
//
// Replicas are goroutines, or under a launcher processes, which need not run on one host if all see the files:
//
//	go build -o wordcount ./examples/wordcount
//	go run ./cmd/gclrun -n 4 ./wordcount docs/*.md
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"unicode"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/values"
	"gogcl.dev/internal/command"
)

func main() { command.Main("wordcount", run) }

// run reads the command line, counts, and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("wordcount", flag.ContinueOnError)
	top := flags.Int("top", 10, "print this `number` of words")
	err := command.ParseArguments(flags, args, stdout, "[flags] FILE...", "Counts the words of files.")
	switch {
	case err == flag.ErrHelp:
		return command.OK
	case err == nil && flags.NArg() == 0:
		err = fmt.Errorf("no files, want one or more")
	case err == nil && *top < 1:
		err = fmt.Errorf("-top %d, want 1 or more", *top)
	}
	if err != nil {
		return command.Mistake("wordcount", err, stderr)
	}
	err = gcl.RunOrJoin(ctx, 0, func(ctx context.Context, c *gcl.Comm) error {
		return count(ctx, c, flags.Args(), *top, stdout)
	})
	if err != nil {
		return command.Ended(ctx, "wordcount", err, stderr)
	}
	return command.OK
}

// count counts this replica's share of the files, and prints the counts of all replicas at rank 0.
func count(ctx context.Context, c *gcl.Comm, files []string, top int, w io.Writer) error {
	counts := map[string]int{}
	for i := c.Rank(); i < len(files); i += c.Size() {
		text, err := os.ReadFile(files[i])
		if err != nil {
			return err
		}
		for _, word := range strings.FieldsFunc(string(text), func(r rune) bool { return !unicode.IsLetter(r) }) {
			counts[strings.ToLower(word)]++
		}
	}
	counts, err := values.Reduce(ctx, c, counts, 0, func(a, b map[string]int) map[string]int {
		for word, n := range b {
			a[word] += n
		}
		return a
	})
	if err != nil || c.Rank() != 0 {
		return err
	}
	words := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	for _, word := range words[:min(top, len(words))] {
		if _, err := fmt.Fprintf(w, "%7d  %s\n", counts[word], word); err != nil {
			return err
		}
	}
	return nil
}
