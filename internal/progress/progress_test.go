package progress

import (
	"errors"
	"strings"
	"testing"
)

func TestPrinter(t *testing.T) {
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
			p := New(&out)
			p.live = tt.live
			p.Line("begin")
			p.Status("long status")
			p.Status("short")
			p.Line("end")
			p.Close()
			if got := out.String(); got != tt.want {
				t.Errorf("wrote %q, want %q", got, tt.want)
			}
		})
	}
}

func TestPrinterCloses(t *testing.T) {
	var out strings.Builder
	p := New(&out)
	p.live = true
	p.Status("status")
	p.Close()
	p.Close()
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

func TestPrinterKeepsFirstError(t *testing.T) {
	p := New(&fullDisk{room: 1})
	p.Line("one")
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	p.Line("two")
	p.w = &fullDisk{room: 9}
	p.Line("three")
	if p.Err() != errFull {
		t.Errorf("error %v, want %v", p.Err(), errFull)
	}
}
