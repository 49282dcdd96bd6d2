package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/methodtest"
)

func TestMain(m *testing.M) {
	if err := methods.Register("butterfly", butterfly); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestButterfly holds the method to all that package methods promises of the library's.
func TestButterfly(t *testing.T) { methodtest.Prove(t, butterfly, 2, 3, 4, 8) }

func TestShow(t *testing.T) {
	var out strings.Builder
	if err := show(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`(?m)^proved: all-reduce, 4 ranks, 4 chunks, 4 rounds$`, `(?m)^butterfly, as the options ask; Syncless, as `,
		`(?m)^\* butterfly +Syncless +4 +0 +98304 `, `(?m)^  clockwise_ring `, `(?m)^measured: [0-9.]+[µm]?s a call$`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no line is like %s in\n%s", want, out.String())
		}
	}
}
