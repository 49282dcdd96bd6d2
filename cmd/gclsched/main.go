package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"

	"gogcl.dev/internal/closest"
	"gogcl.dev/internal/command"
)

func main() { command.Main(program, run) }

const program = "gclsched"

// verb is a command of gclsched.
type verb struct {
	name string
	does string
	// flags declares the flags of the command's own and returns what it does with them, and with where the schedule
	// comes from.
	flags func(f *flag.FlagSet, from *source) work

	alone bool // there is no schedule to come from anywhere
}

// work is what a command does: check looks at its flags, before anything is read, and do carries it out.
type work struct {
	check func() error
	do    func(ctx context.Context, stdout io.Writer) error
}

var verbs = []verb{
	{name: "check", does: "Proves a schedule, or says what is wrong with it.", flags: checkVerb},
	{name: "draw", does: "Draws a schedule.", flags: drawVerb},
	{name: "price", does: "Says what a schedule costs on a network.", flags: priceVerb},
	{name: "auto", does: "Says which methods auto takes on a network, and which are best.", flags: autoVerb,
		alone: true},
	{name: "bench", does: "Runs a schedule among goroutines, beside what auto takes.", flags: benchVerb},
	{name: "convert", does: "Writes a schedule as text or as XML of msccl-tools.", flags: convertVerb},
}

// mistake is an error of the command line.
type mistake struct{ error }

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	v, rest, code := pick(args, stdout, stderr)
	if v == nil {
		return code
	}
	flags := flag.NewFlagSet(program+" "+v.name, flag.ContinueOnError)
	arguments, does := "[flags] [FILE]", v.does+" A FILE is the text that String of a schedule draws, or XML of "+
		"msccl-tools; -method makes one."
	var from *source
	if v.alone {
		arguments, does = "[flags]", v.does
	} else {
		from = newSource(flags)
	}
	w := v.flags(flags, from)
	err := command.ParseArguments(flags, rest, stdout, arguments, does)
	if errors.Is(err, flag.ErrHelp) {
		return command.OK
	}
	switch {
	case err != nil:
	case !v.alone:
		err = from.check(v.name)
	case flags.NArg() > 0:
		err = fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if err == nil {
		err = w.check()
	}
	if err != nil {
		return command.Mistake(program, err, stderr)
	}
	// A proof may take long and looks at no context. The end of the program is the end of it.
	done := make(chan error, 1)
	go func() {
		var err error
		if from != nil {
			err = from.connect()
		}
		if err == nil {
			err = w.do(ctx, stdout)
		}
		done <- err
	}()
	select {
	case err = <-done:
	case <-ctx.Done():
		return command.Ended(ctx, program, ctx.Err(), stderr)
	}
	var wrong mistake
	switch {
	case errors.As(err, &wrong):
		return command.Mistake(program, err, stderr)
	case err != nil:
		return command.Ended(ctx, program, err, stderr)
	}
	return command.OK
}

// pick finds the command, or the exit code of a program without one.
func pick(args []string, stdout, stderr io.Writer) (*verb, []string, int) {
	var names []string
	for i := range verbs {
		if len(args) > 0 && verbs[i].name == args[0] {
			return &verbs[i], args[1:], 0
		}
		names = append(names, verbs[i].name)
	}
	commands := strings.Join(names, "|")
	flags := flag.NewFlagSet(program, flag.ContinueOnError)
	var does strings.Builder
	does.WriteString("Proves, draws, prices, runs and converts schedules: \"go doc gogcl.dev/cmd/gclsched\".\n")
	for _, v := range verbs {
		fmt.Fprintf(&does, "\n  %-8s %s", v.name, v.does)
	}
	does.WriteString("\n\nEach lists its flags: gclsched check -h.")
	err := command.ParseArguments(flags, args, stdout, commands+" [flags] [FILE]", does.String())
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, nil, command.OK
	case err != nil:
	case len(args) == 0:
		err = fmt.Errorf("no command, want %s", commands)
	default:
		err = fmt.Errorf("unknown command %.100q, want %s", args[0], commands)
		if near := closest.Near(args[0], names); near != "" {
			err = fmt.Errorf("unknown command %.100q (did you mean %s?), want %s", args[0], near, commands)
		}
	}
	return nil, nil, command.Mistake(program, err, stderr)
}
