package progress

import (
	"strings"
	"testing"

	"gogcl.dev/internal/fulldisk"
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
			if tt.live {
				p.columns = func() int { return 80 }
			}
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

// TestPrinterCuts has a status that would wrap, and a file, which has room.
func TestPrinterCuts(t *testing.T) {
	line := strings.Repeat("0123456789", 8)
	for columns, want := range map[int]string{
		80: "\r" + line[:79], 81: "\r" + line, 200: "\r" + line, 20: "\r" + line[:19], 1: "\r", 0: line + "\n",
	} {
		var out strings.Builder
		p := New(&out)
		if columns > 0 {
			p.columns = func() int { return columns }
		}
		p.Status(line)
		if got := out.String(); got != want {
			t.Errorf("%d columns: wrote %q, want %q", columns, got, want)
		}
	}
}

// TestPrinterResized has a window that is made narrower and wider between statuses: none may wrap.
func TestPrinterResized(t *testing.T) {
	var out strings.Builder
	columns := 11
	p := New(&out)
	p.columns = func() int { return columns }
	p.Status("0123456789")
	columns = 6
	p.Status("abcdefg")
	p.Status("x")
	columns = 11
	p.Status("y")
	if got, want := out.String(), "\r0123456789\rabcde\rx    \ry    "; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestPrinterCloses(t *testing.T) {
	var out strings.Builder
	p := New(&out)
	p.columns = func() int { return 80 }
	p.Status("status")
	p.Close()
	p.Close()
	if got, want := out.String(), "\rstatus\n"; got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestPrinterKeepsFirstError(t *testing.T) {
	p := New(&fulldisk.Writer{Room: 1})
	p.Line("one")
	if p.Err() != nil {
		t.Fatal(p.Err())
	}
	p.Line("two")
	p.w = &fulldisk.Writer{Room: 9}
	p.Line("three")
	if p.Err() != fulldisk.Err {
		t.Errorf("error %v, want %v", p.Err(), fulldisk.Err)
	}
}
