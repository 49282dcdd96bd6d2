package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"testing"

	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// registerStar has a process know a method of its own, which does all-reduces. The tests' own process must not: they go
// through all methods.
func registerStar() {
	err := methods.Register("star", methods.GeneratorFunc(func(r methods.Request) (*schedule.Schedule, error) {
		if r.Collective != schedule.AllReduce {
			return nil, errors.ErrUnsupported
		}
		b := schedule.NewBuilder(r.Collective, r.Size, 0, 1)
		for rank := 1; rank < r.Size; rank++ {
			b.Fold(0, rank, 0, 0, 1)
			b.Copy(1, 0, rank, 0, 1)
		}
		return b.Build()
	}))
	if err != nil {
		panic(err)
	}
}

// TestOwnMethod: a registered method is measured by its name, also where each replica is a process that registers for
// itself. Calls that the method does not do are not measured under its name.
func TestOwnMethod(t *testing.T) {
	for _, transport := range []string{"inproc", "unix"} {
		if transport == "unix" && runtime.GOOS != "linux" {
			continue
		}
		var stdout, stderr bytes.Buffer
		c := exec.CommandContext(t.Context(), os.Args[0], "-transport", transport, "-collective", "allgather,allreduce",
			"-method", "star,direct", "-n", "2", "-min", "8", "-max", "8", "-iters", "1", "-json")
		c.Env = append(os.Environ(), asGclperf+"=star")
		c.Stdout, c.Stderr = &stdout, &stderr
		err := c.Run()
		if text := stderr.String(); err != nil || text != "gclperf: not measured, since auto would take its place: methods: "+
			"star: all-gather over 2 ranks: unsupported operation\n" {
			t.Fatalf("%v: %s", err, text)
		}
		var have []string
		for _, m := range parsed(t, stdout.String()) {
			if m.Wrong != 0 {
				t.Errorf("%+v", m)
			}
			if what := m.Collective + " " + m.Method; !slices.Contains(have, what) {
				have = append(have, what)
			}
		}
		if want := []string{"allgather direct", "allreduce star", "allreduce direct"}; !slices.Equal(have, want) {
			t.Errorf("%s: measured %q, want %q", transport, have, want)
		}
	}
}
