package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gogcl.dev/internal/measure"
)

// endings are those of the names that -out takes.
var endings = map[string]format{".txt": asTable, ".csv": asCSV, ".jsonl": asJSONLines}

// checkFiles finds out whether -svg and -out can be written, rather than minutes later.
func (s *settings) checkFiles() error {
	if s.svg != "" {
		if err := measure.CheckWritable("-svg", s.svg); err != nil {
			return err
		}
	}
	if s.out == "" {
		return nil
	}
	as, known := endings[filepath.Ext(s.out)]
	if !known {
		return fmt.Errorf("-out %s: want a name that ends in .csv, .jsonl (an object on each line) or .txt (the table)",
			s.out)
	}
	if err := measure.CheckWritable("-out", s.out); err != nil {
		return err
	}
	text, err := readRegular(s.out)
	switch header := strings.Join(fieldNames(), ",") + "\n"; {
	case err != nil:
		return fmt.Errorf("-out: %w", err)
	case len(text) == 0:
	case text[len(text)-1] != '\n':
		return fmt.Errorf("-out %s ends in the middle of a line: something else has written it, want another file", s.out)
	case as == asCSV && !bytes.HasPrefix(text, []byte(header)):
		return fmt.Errorf("-out %s begins with other columns than those of this gclperf: want another file", s.out)
	}
	return nil
}

// readRegular reads a file. What does not exist or is no regular file has nothing in it.
func readRegular(name string) ([]byte, error) {
	file, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !file.Mode().IsRegular() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

// appended is an output at the end of a file.
type appended struct {
	output
	file *os.File
}

// openAppended opens the file of -out, and makes it where there is none.
func openAppended(s *settings) (output, error) {
	text, err := readRegular(s.out)
	if err != nil {
		return nil, fmt.Errorf("-out: %w", err)
	}
	file, err := os.OpenFile(s.out, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("-out: %w", err)
	}
	as := endings[filepath.Ext(s.out)]
	return &appended{newOutput(s, as, file, len(text) > 0), file}, nil
}

func (a *appended) end() error { return errors.Join(a.output.end(), a.file.Close()) }

// several are outputs of the same measurements.
type several []output

func (s several) add(m measurement) error {
	var errs []error
	for _, o := range s {
		errs = append(errs, o.add(m))
	}
	return errors.Join(errs...)
}

func (s several) end() error {
	var errs []error
	for _, o := range s {
		errs = append(errs, o.end())
	}
	return errors.Join(errs...)
}
