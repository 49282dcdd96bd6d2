package main

import (
	"io"
	"os"
)

// input is replica 0's standard input.
type input struct {
	child, from *os.File
	to          *os.File // what is read from from goes here; nil: the replica reads from itself
}

// newInput hands a file or pipe to replica 0 as it is. Replicas are no part of the terminal's foreground group, and may
// not read from a terminal: gclrun reads it for replica 0, and writes to a pipe.
func newInput(from *os.File) (*input, error) {
	if info, err := from.Stat(); err == nil && info.Mode()&os.ModeCharDevice == 0 {
		return &input{child: from, from: from}, nil
	}
	r, w, err := os.Pipe()
	return &input{child: r, from: from, to: w}, err
}

// feed is called when replica 0 has been started. It closes gclrun's own copy of what the replica reads, so that a
// writer notices when the replica has ended.
//
// The goroutine of feed is not waited for: a read from a terminal ends no sooner than gclrun.
func (in *input) feed() {
	in.child.Close()
	if in.to == nil {
		return
	}
	ignoreTerminalInput()
	go func() {
		_, _ = io.Copy(in.to, in.from) // the end of either is the end of the input
		in.to.Close()
	}()
}
