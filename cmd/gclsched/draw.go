package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// pictures are what draw draws.
var pictures = []string{"shape", "table", "time"}

// drawVerb draws a schedule.
func drawVerb(f *flag.FlagSet, from *source) work {
	picture := f.String("picture", "shape", "what to draw: shape, who sends to whom in which round; table, which says "+
		"everything; time, every message in space and time")
	svg := f.String("svg", "", "`file` to write the picture to as SVG: shape or time")
	check := func() error {
		switch {
		case !slices.Contains(pictures, *picture):
			return fmt.Errorf("-picture %.100q, want one of %s", *picture, strings.Join(pictures, ", "))
		case *svg != "" && *picture == "table":
			return errors.New("-svg of a table, want -picture shape or time")
		case *svg == "" && *picture == "time":
			return errors.New("-picture time is a drawing as SVG, want -svg FILE")
		}
		return nil
	}
	return work{check, func(_ context.Context, stdout io.Writer) error {
		file, err := from.read()
		if err != nil {
			return err
		}
		s := file.Schedule
		if *svg == "" {
			text := s.Shape()
			if *picture == "table" {
				text = s.String()
			}
			_, err := io.WriteString(stdout, text)
			return err
		}
		var b bytes.Buffer
		write := s.WriteSVG
		if *picture == "time" {
			write = s.WriteSpaceTimeSVG
		}
		if err := write(&b); err != nil {
			return err
		}
		return os.WriteFile(*svg, b.Bytes(), 0o666)
	}}
}
