package main

import (
	"fmt"

	"gogcl.dev/internal/member"
	"gogcl.dev/internal/plot"
)

// openPicture opens the file of -svg; an empty path is no picture.
func openPicture(path string) (*plot.File, error) {
	picture, err := plot.OpenFile(path)
	if err != nil {
		return nil, member.Mistake{Err: fmt.Errorf("-svg %w", err)}
	}
	return picture, nil
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
