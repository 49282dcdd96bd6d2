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

// TestPrinterCuts has a status that would wrap, and a file, which has room.
func TestPrinterCuts(t *testing.T) {
	line := strings.Repeat("0123456789", 8)
	for live, want := range map[bool]string{true: "\r" + line[:79], false: line + "\n"} {
		var out strings.Builder
		p := New(&out)
		p.live = live
		p.Status(line)
		if got := out.String(); got != want {
			t.Errorf("wrote %q, want %q", got, want)
		}
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
