package perfetto

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
)

// Join writes one file to w that has the events of all files, which Timelines have written: one of each process of a
// job. Times are laid side by side by the wall clocks of their hosts. It holds one event at a time in memory.
//
// Errors name a file by its place, from 0 on. Join fails if a file is not one of a Timeline or is cut off, if two files
// have the same replica, and if w fails. After an error the output is no good file.
func Join(w io.Writer, files ...io.Reader) error {
	if w == nil {
		return errors.New("perfetto: Join needs a writer")
	}
	parts := make([]*part, len(files))
	for i, f := range files {
		if f == nil {
			return fmt.Errorf("perfetto: file %d is nil", i)
		}
		parts[i] = &part{name: fmt.Sprintf("file %d", i), json: json.NewDecoder(f)}
	}
	return join(w, parts)
}

// JoinFiles is Join of files by name, into a file called out, which must be none of them. Errors have the names.
func JoinFiles(out string, names ...string) (err error) {
	known, _ := os.Stat(out) // if there is none, it is no file of names
	var parts []*part
	for _, n := range names {
		f, err := os.Open(n)
		if err != nil {
			return fmt.Errorf("perfetto: %w", err)
		}
		defer f.Close()
		if stat, err := f.Stat(); err == nil && known != nil && os.SameFile(stat, known) {
			return fmt.Errorf("perfetto: cannot join %s into itself", n)
		}
		parts = append(parts, &part{name: n, json: json.NewDecoder(f)})
	}
	if len(parts) == 0 {
		return errNoFiles
	}
	f, err := os.Create(out)
	if err != nil {
		return fmt.Errorf("perfetto: %w", err)
	}
	return errors.Join(join(f, parts), f.Close())
}

var errNoFiles = errors.New("perfetto: no files to join")

// part is a file that is joined.
type part struct {
	name   string
	json   *json.Decoder
	header header
}

func join(w io.Writer, parts []*part) error {
	if len(parts) == 0 {
		return errNoFiles
	}
	for _, p := range parts {
		if err := p.begin(); err != nil {
			return fmt.Errorf("perfetto: %s is no file of a Timeline: %w", p.name, err)
		}
	}
	all, err := headerOf(parts)
	if err != nil {
		return err
	}
	e := &encoder{w: w}
	first := entry{Name: headerName, Phase: "M"}
	if len(all.Replicas) > 0 {
		first.PID = all.Replicas[0]
	}
	if err := e.add(first, all); err != nil {
		return fmt.Errorf("perfetto: %w", err)
	}
	for _, p := range parts {
		for p.json.More() {
			var x entry
			if err := p.json.Decode(&x); err != nil {
				return p.cannotRead(err)
			}
			if x.Phase != "M" {
				ns := int64(math.Round(x.Time * 1e3))
				x.Time = microseconds(ns + p.header.Epoch - all.Epoch)
			}
			if err := errors.Join(e.add(x, nil), e.flush(bufferBytes)); err != nil {
				return fmt.Errorf("perfetto: %w", err)
			}
		}
		if _, err := p.json.Token(); err != nil { // the end of the array, unless the file ends before
			return p.cannotRead(err)
		}
	}
	if err := e.close(); err != nil {
		return fmt.Errorf("perfetto: %w", err)
	}
	return nil
}

// cannotRead is the error of a file that is none from some place on.
func (p *part) cannotRead(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("perfetto: %s: %w", p.name, err)
}

// begin reads the file up to its second entry.
func (p *part) begin() error {
	for _, want := range []json.Token{json.Delim('{'), "traceEvents", json.Delim('[')} {
		got, err := p.json.Token()
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("it has %v, want %v", got, want)
		}
	}
	var x entry
	if err := p.json.Decode(&x); err != nil {
		return err
	}
	if x.Name != headerName {
		return fmt.Errorf("its first event is %q, want %q", x.Name, headerName)
	}
	return json.Unmarshal(x.Args, &p.header)
}

// headerOf is the header of all files together: times count from the earliest of their epochs.
func headerOf(parts []*part) (header, error) {
	all := header{Epoch: math.MaxInt64, Replicas: []int{}}
	of := map[int]string{}
	for _, p := range parts {
		all.Epoch = min(all.Epoch, p.header.Epoch)
		all.Dropped += p.header.Dropped
		for _, r := range p.header.Replicas {
			if other, ok := of[r]; ok {
				return header{}, fmt.Errorf("perfetto: %s and %s both have replica %d", other, p.name, r)
			}
			of[r] = p.name
			all.Replicas = append(all.Replicas, r)
		}
	}
	slices.Sort(all.Replicas)
	return all, nil
}
