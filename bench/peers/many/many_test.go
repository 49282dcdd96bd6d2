package main

import (
	"io"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/methods"
)

// TestReplica measures on goroutines, with the checks of results that go with it.
func TestReplica(t *testing.T) {
	for _, inPlace := range []bool{false, true} {
		var out strings.Builder
		b := &bench{method: methods.ClockwiseRing, tensors: 3, sizes: []int{4, 1 << 10}, time: time.Millisecond,
			inPlace: inPlace, out: &out}
		if err := gcl.Run(t.Context(), 3, b.replica); err != nil {
			t.Fatal(err)
		}
		place := ",oop,"
		if inPlace {
			place = ",ip,"
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if len(lines) != 2 || !strings.HasPrefix(lines[1], "clockwise_ring,3,3xallreduce,f32"+place+"1024,b2b,") ||
			strings.Count(lines[1], ",") != 12 {
			t.Errorf("%q", lines)
		}
	}
}

func TestFlags(t *testing.T) {
	b, transport, err := parse(strings.Fields("-method native -tensors 2 -sizes 4,16384 -place ip"), io.Discard)
	if err != nil || transport != "mpi" || b.method != methods.Native || len(b.sizes) != 2 || !b.inPlace {
		t.Errorf("%+v, %q, %v", b, transport, err)
	}
	for _, args := range []string{"-tensors 0", "-tensors 1025", "-sizes 6", "-sizes x", "-method x", "-place x", "x",
		"-time 0"} {
		if _, _, err := parse(strings.Fields(args), io.Discard); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}
