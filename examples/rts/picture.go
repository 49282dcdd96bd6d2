package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"gogcl.dev/internal/member"
	"gogcl.dev/internal/plot"
)

// picture is the file of -svg. It is opened before anything is trained, so that a name that cannot be written is
// found then; what it has stays until there is something to draw.
type picture struct {
	path  string
	file  *os.File // nil: no picture, or it is done
	fresh bool     // the file was not there before
}

// openPicture opens the file; an empty path is no picture.
func openPicture(path string) (*picture, error) {
	p := &picture{path: path}
	if path == "" {
		return p, nil
	}
	info, err := os.Stat(path)
	p.fresh = errors.Is(err, fs.ErrNotExist)
	if err == nil && !info.Mode().IsRegular() { // to open a pipe would wait for its other end
		return nil, member.Mistake{Err: fmt.Errorf("-svg %s: it is not a regular file", path)}
	}
	if p.file, err = os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666); err != nil {
		return nil, member.Mistake{Err: fmt.Errorf("-svg %s: %w", path, cause(err))}
	}
	return p, nil
}

// cause is an error without the path, which the message has already.
func cause(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	return err
}

// giveUp closes the file if nothing has been drawn, and removes one that was not there before.
func (p *picture) giveUp() error {
	if p.file == nil {
		return nil
	}
	err := p.file.Close()
	p.file = nil
	if p.fresh {
		err = errors.Join(err, os.Remove(p.path))
	}
	return err
}

// draw draws loss and accuracy of the passes.
func (p *picture) draw(title string, passes []pass) error {
	if p.file == nil {
		return nil
	}
	file := p.file
	p.file = nil
	err := file.Truncate(0)
	if err == nil {
		err = figure(title, passes).Write(file)
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err != nil {
		return fmt.Errorf("-svg %s: %w", p.path, cause(err))
	}
	return nil
}

// figure has loss and accuracy by pass.
func figure(title string, passes []pass) *plot.Figure {
	loss, accuracy := plot.Line{Name: "training images"}, plot.Line{Name: "images held out"}
	for i, p := range passes {
		loss.Points = append(loss.Points, plot.Point{X: float64(i + 1), Y: float64(p.Loss)})
		accuracy.Points = append(accuracy.Points, plot.Point{X: float64(i + 1), Y: float64(p.Accuracy)})
	}
	x := plot.Axis{Label: "epoch", Tick: plot.Plain, Whole: true}
	return &plot.Figure{Title: title, Rows: [][]plot.Panel{{
		{Title: "loss", X: x, Y: plot.Axis{Label: "mean cross entropy", Base: 10, Tick: plot.Plain}, Lines: []plot.Line{loss}},
		{Title: "accuracy", X: x, Y: plot.Axis{Label: "part of the images", Tick: plot.Plain, Most: 1}, Lines: []plot.Line{accuracy}},
	}}}
}
