package command

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		n    int
		want string // of the error; "" for none
		help bool
	}{
		{"-n 5", 5, "", false},
		{"", 4, "", false},
		{"-n five", 4, `invalid value "five" for flag -n: parse error`, false},
		{"-m 5", 4, "flag provided but not defined: -m", false},
		{"-n 5 more", 5, `unexpected argument "more"`, false},
		{"-h", 4, flag.ErrHelp.Error(), true},
	} {
		flags := flag.NewFlagSet("learn", flag.PanicOnError)
		flags.SetOutput(io.Discard)
		n := flags.Int("n", 4, "number of `replicas`")
		var stdout bytes.Buffer
		err := Parse(flags, strings.Fields(c.args), &stdout, "Learns.")
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%q: error %v, want %s", c.args, err, c.want)
		}
		if err == nil && *n != c.n {
			t.Errorf("%q: n is %d, want %d", c.args, *n, c.n)
		}
		if errors.Is(err, flag.ErrHelp) != c.help {
			t.Errorf("%q: error %v", c.args, err)
		}
		if help := stdout.String(); c.help != strings.HasPrefix(help,
			"usage: learn [flags]\n\nLearns.\n  -n replicas\n") || !c.help && help != "" {
			t.Errorf("%q: output %q", c.args, help)
		}
	}
}
