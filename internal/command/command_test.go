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

// TestFlags: -h and a mistake are the end of a program, and nothing else is.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args, stderr string
		code         int
		ok           bool
	}{
		{"-n 5", "", OK, true},
		{"-h", "", OK, false},
		{"-m", "learn: flag provided but not defined: -m (-h lists the flags)\n", Usage, false},
		{"now", "learn: unexpected argument \"now\" (-h lists the flags)\n", Usage, false},
	} {
		flags := flag.NewFlagSet("learn", flag.ContinueOnError)
		flags.Int("n", 4, "number of `replicas`")
		var stdout, stderr strings.Builder
		code, ok := Flags(flags, strings.Fields(c.args), &stdout, &stderr, "Learns.")
		if code != c.code || ok != c.ok || stderr.String() != c.stderr || (stdout.Len() > 0) != (c.args == "-h") {
			t.Errorf("%q: %d, %v, %q, %q", c.args, code, ok, &stdout, &stderr)
		}
	}
}

// TestHelpIsNarrow: long texts are broken into lines, those of flags with room for the default, and short ones stay.
func TestHelpIsNarrow(t *testing.T) {
	flags := flag.NewFlagSet("learn", flag.ContinueOnError)
	flags.String("from", "a/very/big/default", strings.Repeat("word ", 40))
	var out strings.Builder
	Flags(flags, []string{"-h"}, &out, io.Discard, "  a    table\n"+strings.Repeat("long ", 40))
	if !strings.Contains(out.String(), "\n  a    table\n") || strings.Count(out.String(), "long") != 40 ||
		strings.Count(out.String(), "word") != 40 {
		t.Errorf("printed\n%s", &out)
	}
	for line := range strings.Lines(strings.ReplaceAll(out.String(), "\t", "    ")) {
		if len(line) > Columns+1 {
			t.Errorf("%d columns: %s", len(line)-1, line)
		}
	}
}

// TestNoFlags has a program without flags: nothing speaks of them.
func TestNoFlags(t *testing.T) {
	for args, want := range map[string]string{
		"-h": "usage: learn\n\nLearns.\n",
		"-m": "learn: flag provided but not defined: -m\n",
		"m":  "learn: unexpected argument \"m\"\n",
	} {
		var out strings.Builder
		_, ok := Flags(flag.NewFlagSet("learn", flag.ContinueOnError), []string{args}, &out, &out, "Learns.")
		if ok || out.String() != want {
			t.Errorf("%s: %v, %q, want %q", args, ok, &out, want)
		}
	}
}

// TestParseArguments leaves the arguments after the flags to the program.
func TestParseArguments(t *testing.T) {
	flags := flag.NewFlagSet("join", flag.ContinueOnError)
	var stdout strings.Builder
	if err := ParseArguments(flags, []string{"a", "b"}, &stdout, "[flags] file...", "Joins."); err != nil ||
		flags.NArg() != 2 || stdout.Len() > 0 {
		t.Errorf("%d arguments, %v, %q", flags.NArg(), err, &stdout)
	}
	if err := ParseArguments(flags, []string{"-h"}, &stdout, "[flags] file...", "Joins."); err != flag.ErrHelp ||
		stdout.String() != "usage: join [flags] file...\n\nJoins.\n" {
		t.Errorf("%v, %q", err, &stdout)
	}
}
