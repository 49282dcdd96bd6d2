package ir_test

import (
	"context"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/tensor"
)

// What is to be done at the end is done once, by the first session, after all that is built, in its order; it may add
// to the main graph, and to what is to be done.
func TestAtEnd(t *testing.T) {
	p := ir.New(1)
	m := p.Main()
	out := p.DeviceToHost("out", f32())
	var list []string
	v := p.Variable(tensor.Scalar(float32(1)))
	p.AtEnd(func() {
		list = append(list, "first")
		p.AtEnd(func() { list = append(list, "third"); m.HostStore(out, v.Tensor) })
		addTo(v.Tensor, number(m, 10))
	})
	p.AtEnd(func() { list = append(list, "second"); addTo(v.Tensor, v.Tensor) })
	addTo(v.Tensor, number(m, 1))
	for range 2 {
		got, err := newSession(t, p).Run(context.Background(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if !got[out].Equal(tensor.Scalar(float32(24))) {
			t.Errorf("%v, want 24", got[out])
		}
	}
	if got := strings.Join(list, " "); got != "first second third" {
		t.Errorf("done: %s", got)
	}
}

// Its errors stick, and what comes after is not done.
func TestAtEndFailures(t *testing.T) {
	for what, say := range map[string]func(p *ir.Program){
		"at end at atend_test.go:# in graph main: no function": func(p *ir.Program) { p.AtEnd(nil) },
		"constant at atend_test.go:# in graph main: no value": func(p *ir.Program) {
			p.AtEnd(func() { p.Main().Constant(nil) })
			p.AtEnd(func() { t.Error("it is called after an error") })
		},
		"at end at atend_test.go:# in graph main: a session of the program exists": func(p *ir.Program) {
			newSession(t, p)
			p.AtEnd(func() { t.Error("it is called after a session") })
		},
	} {
		p := ir.New(1)
		say(p)
		if _, err := ir.NewSession(p); err == nil || !strings.Contains(anyLine(err), what) || p.Err() == nil {
			t.Errorf("error %v, want %q", err, what)
		}
	}
}
