package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
)

// The exit codes.
const (
	exitOK          = 0
	exitWrong       = 1 // a wrong value, or a collective that failed
	exitUsage       = 2
	exitInterrupted = 130 // as a shell has it for SIGINT
)

// run is the program. It returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	return runTampered(ctx, args, stdout, stderr, nil)
}

// runTampered is run with a result that somebody may change between a collective and its check: nil, but for tests.
func runTampered(ctx context.Context, args []string, stdout, stderr io.Writer,
	tamper func(replica int, result []byte)) int {
	s, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(stdout)
		return exitOK
	}
	if err == nil {
		err = s.probe(ctx)
	}
	if err == nil {
		bytes, source, known := available()
		err = s.checkMemory(ctx, bytes, source, known)
	}
	if err != nil {
		fmt.Fprintf(stderr, "gclperf: %v\n", err)
		return exitUsage
	}
	out := newOutput(s, stdout)
	b := &bench{settings: s, out: out, log: &complaints{to: stderr}, tamper: tamper}
	err = b.run(ctx)
	if end := out.end(); err == nil {
		err = end
	}
	if err == nil && s.svg != "" {
		err = writeSVG(s, b.seen)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		fmt.Fprintln(stderr, "gclperf: interrupted")
		return exitInterrupted
	case err != nil:
		fmt.Fprintf(stderr, "gclperf: %v\n", err)
		return exitWrong
	case b.wrong() > 0:
		fmt.Fprintf(stderr, "gclperf: %d wrong values\n", b.wrong())
		return exitWrong
	}
	return exitOK
}

// writeSVG draws what was measured.
func writeSVG(s *settings, seen []measurement) error {
	var b bytes.Buffer
	if err := picture(s, seen).Write(&b); err != nil {
		return err
	}
	return os.WriteFile(s.svg, b.Bytes(), 0o644)
}
