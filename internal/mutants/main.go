package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"gogcl.dev/internal/command"
)

//go:embed mutants.txt
var table string

func main() { command.Main("mutants", run) }

// run is the program: it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	match := flags.String("run", "", "only mutants whose name matches this `regexp`")
	workers := flags.Int("j", 1, "how many to try at a time, each in a copy of the tree")
	dir := flags.String("dir", ".", "the module to put them into")
	trust := flags.Bool("trust", false, "do not first run the tests on the tree as it is")
	look := flags.Bool("n", false, "only say whether the mutants still apply")
	if code, ok := command.Flags(flags, args, stdout, stderr, "Puts a mistake at a time into the module, and looks "+
		"whether tests notice."); !ok {
		return code
	}
	if err := work(ctx, stdout, table, *match, *workers, *dir, *trust, *look); err != nil {
		return command.Ended(ctx, "mutants", err, stderr)
	}
	return command.OK
}

// work tries the mutants of a table whose names match, and prints what came of each. With look it only says whether
// they still apply. The error says that some survived or are invalid, or why they were not all tried.
func work(ctx context.Context, w io.Writer, table, match string, workers int, dir string, trust, look bool) error {
	matches, err := regexp.Compile(match)
	if err != nil {
		return err
	}
	mutants, err := parse(table)
	if err != nil {
		return err
	}
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool { return !matches.MatchString(m.name) })
	if len(mutants) == 0 || workers < 1 {
		return fmt.Errorf("%d mutants match %q, for %d workers; want at least one of each",
			len(mutants), match, workers)
	}
	began, count := time.Now(), map[string]int{}
	all := len(mutants)
	mutants = slices.DeleteFunc(mutants, func(m mutant) bool {
		_, _, err := tree(dir).read(&m)
		if err != nil {
			count[invalid]++
			fmt.Fprintf(w, "%7s  %-8s  %-36s  %s\n", "", invalid, m.name, err)
		}
		return err != nil
	})
	fmt.Fprintf(w, "%d of %d mutants apply\n", len(mutants), all)
	if look {
		return verdict(count)
	}
	var trees []tree // a copy for each worker
	for range workers {
		t, err := copyTree(dir)
		defer os.RemoveAll(string(t))
		if err != nil {
			return err
		}
		trees = append(trees, t)
	}
	if !trust {
		var plain []mutant // the tree as it is, for each list of tests
		for _, m := range mutants {
			if !slices.ContainsFunc(plain, func(p mutant) bool { return slices.Equal(p.tests, m.tests) }) {
				plain = append(plain, mutant{name: strings.Join(m.tests, " "), tests: m.tests})
			}
		}
		fmt.Fprintf(w, "%d lists of tests on the tree as it is\n", len(plain))
		err = each(ctx, plain, trees, func(r result) {
			if r.verdict != survived {
				count[invalid]++
				fmt.Fprintf(w, "%6.1fs  %-8s  %s: without a mutant: %s\n", r.took.Seconds(), invalid, r.name, r.by)
			}
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%6.1fs\n", time.Since(began).Seconds())
	}
	err = each(ctx, mutants, trees, func(r result) {
		count[r.verdict]++
		fmt.Fprintf(w, "%6.1fs  %-8s  %-36s  %s\n", r.took.Seconds(), r.verdict, r.name, r.by)
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%d mutants: %d killed, %d by the timeout, %d survived; %d invalid; %.0f s\n",
		all, count[killed], count[timeout], count[survived], count[invalid], time.Since(began).Seconds())
	return verdict(count)
}

// verdict is an error if some mutants survived or are invalid.
func verdict(count map[string]int) error {
	if bad := count[survived] + count[invalid]; bad > 0 {
		return fmt.Errorf("%d survived or are invalid", bad)
	}
	return nil
}

// each tries mutants, one at a time in each tree, and calls done with each result, one at a time.
func each(ctx context.Context, mutants []mutant, trees []tree, done func(result)) error {
	queue := make(chan mutant, len(mutants))
	for _, m := range mutants {
		queue <- m
	}
	close(queue)
	var mu sync.Mutex // guards calls of done
	var busy sync.WaitGroup
	for _, t := range trees {
		busy.Go(func() {
			for m := range queue {
				r := t.try(ctx, m)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				done(r)
				mu.Unlock()
			}
		})
	}
	busy.Wait()
	return ctx.Err()
}
