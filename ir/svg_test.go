package ir_test

import (
	"bytes"
	"testing"

	"gogcl.dev/ir"
)

func draw(t *testing.T, g *ir.Graph) string {
	t.Helper()
	var b bytes.Buffer
	if err := g.WriteSVG(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestWriteSVG compares drawings.
func TestWriteSVG(t *testing.T) {
	p := perceptron()
	golden(t, "perceptron.svg", draw(t, p.Main()))
	golden(t, "layer.svg", draw(t, p.Graphs()[1]))
	golden(t, "oddities.svg", draw(t, oddities().Main()))
	golden(t, "empty.svg", draw(t, ir.New(1).Main()))
	if a, b := draw(t, p.Main()), draw(t, perceptron().Main()); a != b {
		t.Error("two drawings of the same graph differ")
	}
}
