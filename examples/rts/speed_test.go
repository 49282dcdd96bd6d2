package main

import (
	"math"
	"strings"
	"testing"
	"time"

	"gogcl.dev/ir"
)

func TestWaiting(t *testing.T) {
	ms := time.Millisecond
	of := func(times ...map[string]time.Duration) ir.Profile {
		var p ir.Profile
		for _, m := range times {
			p.Replicas = append(p.Replicas, ir.ReplicaProfile{Time: m, Beside: map[string]time.Duration{"collective": time.Hour}})
		}
		return p
	}
	for _, tt := range []struct {
		of   ir.Profile
		want float64
	}{
		{of(), 0},
		{of(map[string]time.Duration{"compute": ms}), 0},
		{of(map[string]time.Duration{"compute": 5 * ms, "remote": 2 * ms, "collective": ms, "wait": ms, "finish": ms}), 0.3},
		{of(map[string]time.Duration{"compute": ms}, map[string]time.Duration{"collective": 3 * ms}), 0.75},
	} {
		if got := waiting(tt.of); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.of, got, tt.want)
		}
	}
	for replicas, want := range map[int]string{4: "500 samples/s  25% comm+wait", 1: "500 samples/s"} {
		s := speed{replicas: replicas, waiting: 0.25}
		s.add(100, 300*ms)
		s.add(100, 100*ms)
		if got := s.String(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestPassIsShort has losses of any size.
func TestPassIsShort(t *testing.T) {
	for loss, want := range map[number]string{0.12345: "0.1235", 999.99994: "999.9999", 999.99996: "1.00e+03", math.MaxFloat32: "3.40e+38", number(math.Inf(1)): "+Inf"} {
		if got := (pass{Loss: loss, Accuracy: 1}).String(); got != "loss "+want+"  accuracy 1.0000" {
			t.Errorf("%v: %s, want %s", float64(loss), got, want)
		}
	}
}

// TestWaitingIsSeen has replicas talk and compute.
func TestWaitingIsSeen(t *testing.T) {
	for _, args := range []string{"-n 4", "-n 4 -overlap"} {
		tr := trainerOf(t, strings.Fields(args)...)
		s, err := tr.pass(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !(s.waiting > 0 && s.waiting < 1) {
			t.Errorf("%s: %v of the time is waiting", args, s.waiting)
		}
	}
}
