package main

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/internal/golden"
	"gogcl.dev/remote"
)

// TestProgramsStay holds the programs of several command lines, and the reference's, against what they were.
func TestProgramsStay(t *testing.T) {
	onNumbers(t)
	texts := map[string]string{}
	for _, args := range []string{"-n 1", "-n 2", "-n 4", "-n 4 -clip 0", "-n 2 -accumulate 4", "-n 4 -bucket 1000000",
		"-n 4 -overlap", "-n 2 -overlap -finite", "-n 4 -overlap -accumulate 2 -bucket 1"} {
		cfg, err := parseFlags(strings.Fields(args), io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		from, err := newShares(cfg.replicas*cfg.micro, cfg.micros(cfg.me.Own(cfg.replicas)), cfg.batch)
		if err != nil {
			t.Fatal(err)
		}
		start := firstWeights(cfg.seed)
		m, err := newModel(t.Context(), cfg, from.rows, cfg.sharding(), remote.Memory{}, start)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		r, err := newReference(cfg, from, start, leftFold)
		if err != nil {
			t.Fatalf("%s: %v", args, err)
		}
		name := strings.ReplaceAll(args, " ", "")
		texts[name], texts[name+"-reference"] = golden.Program(m.session), golden.Program(r.session)
		if err := m.close(); err != nil {
			t.Error(err)
		}
		if err := r.close(); err != nil {
			t.Error(err)
		}
	}
	golden.Hashes(t, "programs.txt", texts)
}

// TestLossesStay holds losses and accuracies against what they were.
func TestLossesStay(t *testing.T) {
	onNumbers(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("elsewhere products may be added without being rounded")
	}
	texts := map[string]string{}
	for _, n := range []string{"1", "2", "4"} {
		texts["losses-"+n] = epochs(output(t, "-n", n, "-epochs", "2", "-verify"))
	}
	golden.Hashes(t, "losses.txt", texts)
}
