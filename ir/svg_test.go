package ir_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
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
	unchanged(t, "perceptron.svg", draw(t, p.Main()))
	unchanged(t, "layer.svg", draw(t, p.Graphs()[1]))
	unchanged(t, "oddities.svg", draw(t, oddities().Main()))
	unchanged(t, "empty.svg", draw(t, ir.New(1).Main()))
	if a, b := draw(t, p.Main()), draw(t, perceptron().Main()); a != b {
		t.Error("two drawings of the same graph differ")
	}
}

// TestSVGText has names with what XML does not allow: the drawing is well-formed, and shows them.
func TestSVGText(t *testing.T) {
	p := ir.New(1)
	x := p.Main().HostLoad(p.HostToDevice("a<b>&\"c\"\x00", f32(2)))
	ir.ToyOfKind("</svg>", "kind \"<&>", x).Named("]]>")
	text := draw(t, p.Main())
	var seen strings.Builder
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		if c, is := token.(xml.CharData); is {
			seen.Write(c)
		}
	}
	for _, want := range []string{`host load "a<b>&\"c\"\x00"`, "</svg>", `kind "<&>`, `%1."]]>"`} {
		if !strings.Contains(seen.String(), want) {
			t.Errorf("no %s in\n%s", want, seen.String())
		}
	}
}

// TestSVGErrors has a drawing that is too large, in little time though it would have a million boxes, and a writer that
// fails.
func TestSVGErrors(t *testing.T) {
	p := ir.New(1)
	g := p.CreateGraph(clip, f32(2))
	for range 20 {
		inner := g
		g = p.CreateGraph(func(g *ir.Graph, in []*ir.Tensor) []*ir.Tensor {
			return g.Call(inner, g.Call(inner, in...)...)
		}, f32(2))
	}
	if err := g.WriteSVG(io.Discard); err == nil || !strings.Contains(err.Error(), "more than 10000 boxes") {
		t.Errorf("%v, want an error of too many boxes", err)
	}
	full := errors.New("disk full")
	if err := ir.New(1).Main().WriteSVG(failing{full}); !errors.Is(err, full) ||
		!strings.Contains(err.Error(), "graph main") {
		t.Errorf("%v, want %v of graph main", err, full)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }
