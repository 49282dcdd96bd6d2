package main

import (
	"errors"
	"strings"
	"testing"
)

func TestProgress(t *testing.T) {
	for _, tt := range []struct {
		name string
		live bool
		want string
	}{
		{"file", false, "begin\nlong status\nshort\nend\n"},
		{"terminal", true, "begin\n\rlong status\rshort      \nend\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			p := newProgress(&out)
			p.live = tt.live
			p.line("begin")
			p.status("long status")
			p.status("short")
			p.line("end")
			p.close()
			if got := out.String(); got != tt.want {
				t.Errorf("wrote %q, want %q", got, tt.want)
			}
		})
	}
}

func TestProgressCloses(t *testing.T) {
	var out strings.Builder
	p := newProgress(&out)
	p.live = true
	p.status("status")
	p.close()
	p.close()
	if got, want := out.String(), "\rstatus\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// fullDisk takes so many writes and refuses the rest.
type fullDisk struct{ room int }

var errFull = errors.New("disk full")

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room == 0 {
		return 0, errFull
	}
	d.room--
	return len(p), nil
}

func TestProgressKeepsFirstError(t *testing.T) {
	p := newProgress(&fullDisk{room: 1})
	p.line("one")
	if p.err != nil {
		t.Fatal(p.err)
	}
	p.line("two")
	p.w = &fullDisk{room: 9}
	p.line("three")
	if p.err != errFull {
		t.Errorf("error %v, want %v", p.err, errFull)
	}
}
