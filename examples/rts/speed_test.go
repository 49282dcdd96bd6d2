package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestSpeed(t *testing.T) {
	ms := time.Millisecond
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
	for loss, want := range map[number]string{0.12345: "0.1235",
		999.99994: "999.9999", 999.99996: "1.00e+03", math.MaxFloat32: "3.40e+38", number(math.Inf(1)): "+Inf"} {
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
