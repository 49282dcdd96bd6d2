package main

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/spawn"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		args string
		want string // of the error; "" for none
	}{
		{"-n 4 prog", ""},
		{"-n 1024 -bind -prefix -transport tcp -grace 0s -- prog", ""},
		{"", "-n is missing, want the number of replicas"},
		{"prog", "-n is missing, want the number of replicas"},
		{"-n 0 prog", "-n 0, want 1 to 1024"},
		{"-n -1 prog", "-n -1, want 1 to 1024"},
		{"-n 1025 prog", "-n 1025, want 1 to 1024"},
		{"-n four prog", `invalid value "four" for flag -n: parse error`},
		{"-n 4", "the program is missing"},
		{"-n 4 --", "the program is missing"},
		{"-n 4 -np 4 prog", "flag provided but not defined: -np"},
		{"-n 4 -transport mpi prog", `-transport "mpi", want one of auto, tcp, unix, shm`},
		{"-n 4 -survive prog", ""},
		{"-n 4 -survive -min 4 prog", ""},
		{"-n 4 -min 2 prog", "-min without -survive: the others end when one fails"},
		{"-n 4 -survive -min 0 prog", "-min 0, want 1 to -n, 4"},
		{"-n 4 -survive -min 5 prog", "-min 5, want 1 to -n, 4"},
		{"-n 4 -survive -max-restarts 1048576 prog", ""},
		{"-n 4 -max-restarts 2 prog", "-max-restarts without -survive: the others end when one fails"},
		{"-n 4 -survive -max-restarts -1 prog", "-max-restarts -1, want 0 to 1048576"},
		{"-n 4 -survive -max-restarts 1048577 prog", "-max-restarts 1048577, want 0 to 1048576"},
		{"-n 4 -grace -1s prog", "-grace -1s, want 0 or more"},
		{"-n 4 -grace 5 prog", `invalid value "5" for flag -grace: parse error`},
	} {
		_, err := parse(strings.Fields(c.args), nil)
		if c.want == "" && err != nil || c.want != "" && (err == nil || err.Error() != c.want) {
			t.Errorf("%q: error %v, want %s", c.args, err, c.want)
		}
	}
}

func TestParseProgram(t *testing.T) {
	for args, want := range map[string]string{
		"-n 2 prog -n 3 -- -bind":    "prog -n 3 -- -bind",
		"-n 2 -- prog -n 3 -- -bind": "prog -n 3 -- -bind",
		"-n 2 -- -prog":              "-prog",
	} {
		s, err := parse(strings.Fields(args), nil)
		if err != nil {
			t.Errorf("%q: %v", args, err)
			continue
		}
		got := strings.Join(s.program, " ")
		if got != want || s.n != 2 || s.bind || s.prefix || s.transport != "auto" || s.grace != 5*time.Second {
			t.Errorf("%q: %+v", args, s)
		}
	}
}

// TestUsage: -h explains each variable that replicas find, and each flag.
func TestUsage(t *testing.T) {
	var out strings.Builder
	if _, err := parse([]string{"-h"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	e, err := spawn.NewEnvironment(nil, 1, "auto")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"gclrun -n 4 -bind ./train -epochs 10", "\n  -n replicas\n", "\n  -bind\n",
		"\n  -transport transport\n", "\n  -prefix\n", "\n  -grace duration\n", "\n  -survive\n", "\n  -min replicas\n",
		"\n  -max-restarts times\n", "GCL_NEWCOMER=1"}
	for _, entry := range e.Replica(0) {
		name, _, _ := strings.Cut(entry, "=")
		want = append(want, name)
	}
	want = slices.DeleteFunc(want, func(w string) bool { return strings.Contains(out.String(), w) })
	if len(want) > 0 {
		t.Errorf("-h lacks %q:\n%s", want, out.String())
	}
}
