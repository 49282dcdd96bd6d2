package commandtest

import (
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// recorder stands in for the test that Mistake is called in.
type recorder struct {
	testing.TB
	errors int
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.errors++ }

func TestMistake(t *testing.T) {
	const line = "sum: -n 0: want 1 or more (-h lists the flags)\n"
	for _, tt := range []struct {
		name           string
		code           int
		stdout, stderr string
		errors         int
	}{
		{"as wanted", command.Usage, "", line, 0},
		{"exit code", command.Failed, "", line, 1},
		{"output", command.Usage, "0\n", line, 1},
		{"two lines", command.Usage, "", line + line, 1},
		{"other program", command.Usage, "", "sums" + line[3:], 1},
		{"other mistake", command.Usage, "", "sum: -m 0 (-h lists the flags)\n", 1},
		{"no hint", command.Usage, "", "sum: -n 0: want 1 or more\n", 1},
		{"nothing", command.OK, "", "", 2},
	} {
		r := &recorder{TB: t}
		if Mistake(r, "sum", "-n 0: ", tt.code, tt.stdout, tt.stderr); r.errors != tt.errors {
			t.Errorf("%s: %d errors, want %d", tt.name, r.errors, tt.errors)
		}
	}
}

func TestStopAt(t *testing.T) {
	var out strings.Builder
	stops := 0
	w := StopAt("epoch 1/", func() { stops++ }, &out)
	for i, line := range []string{"epoch\n", "  epoch 1/9\n", "epoch 2/9\n"} {
		if n, err := w.Write([]byte(line)); n != len(line) || err != nil || stops != min(i, 1) {
			t.Errorf("%q: %d written, error %v, %d stops", line, n, err, stops)
		}
	}
	if out.String() != "epoch\n  epoch 1/9\nepoch 2/9\n" {
		t.Errorf("passed on %q", out.String())
	}
}
