package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"gogcl.dev/methods/schedule/msccl"
)

// convertVerb writes a schedule in one of the two forms.
func convertVerb(f *flag.FlagSet, from *source) work {
	to := f.String("to", "", "`form` to write: text or xml; unless given the ending of -o says it: .txt or .xml")
	out := f.String("o", "", "`file` to write; standard output unless given")
	check := func() error {
		if *to == "" {
			switch filepath.Ext(*out) {
			case ".txt":
				*to = "text"
			case ".xml":
				*to = "xml"
			default:
				return errors.New("which form? want -to text or -to xml, or an -o that ends in .txt or .xml")
			}
		}
		if *to != "text" && *to != "xml" {
			return fmt.Errorf("-to %.100q, want text or xml", *to)
		}
		return nil
	}
	return work{check, func(_ context.Context, stdout io.Writer) error {
		file, err := from.read()
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if *to == "text" {
			b.WriteString(file.Schedule.String())
		} else if err := msccl.Write(&b, file); err != nil {
			return from.of(err)
		}
		if *out == "" {
			_, err = stdout.Write(b.Bytes())
			return err
		}
		return os.WriteFile(*out, b.Bytes(), 0o666)
	}}
}
