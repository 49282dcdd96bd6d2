package main

import (
	"fmt"
	"io"
)

// page is what the examples print on. It counts what is not as it must be.
type page struct {
	w        io.Writer
	compared int
	wrong    int
}

// title begins an example.
func (p *page) title(text string) { fmt.Fprintln(p.w, text) }

// compare prints a result beside the expected one.
func (p *page) compare(what string, got, want any) {
	p.compared++
	verdict := "ok"
	if fmt.Sprint(got) != fmt.Sprint(want) {
		p.wrong++
		verdict = "WRONG"
	}
	fmt.Fprintf(p.w, "  %-28s %-16s expected %v: %s\n", what, fmt.Sprint(got), want, verdict)
}
