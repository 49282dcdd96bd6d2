package main

import (
	"strings"
	"testing"
	"time"

	"gogcl.dev/ir"
)

func TestCommunication(t *testing.T) {
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
		{of(map[string]time.Duration{"compute": 5 * ms, "remote": ms, "collective": 3 * ms, "wait": ms}), 0.4},
		{of(map[string]time.Duration{"compute": ms}, map[string]time.Duration{"collective": 3 * ms}), 0.75},
	} {
		if got := communication(tt.of); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.of, got, tt.want)
		}
	}
	s := speed{communication: 0.25}
	s.add(100, 300*ms)
	s.add(100, 100*ms)
	if got, want := s.String(), "500 samples/s  25% communication"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestCommunicationIsSeen has replicas talk and compute.
func TestCommunicationIsSeen(t *testing.T) {
	for _, args := range []string{"-n 4", "-n 4 -overlap"} {
		tr := trainerOf(t, strings.Fields(args)...)
		s, err := tr.pass(t.Context(), t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !(s.communication > 0 && s.communication < 1) {
			t.Errorf("%s: %v of the time is communication", args, s.communication)
		}
	}
}
