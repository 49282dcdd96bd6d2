package main

import (
	"errors"
	"testing"

	"gogcl.dev/internal/golden"
)

// TestProgramsStay holds the programs that train, evaluate and generate against what they were.
func TestProgramsStay(t *testing.T) {
	onNumbers(t)
	texts := map[string]string{}
	for name, w := range map[string]way{"one": {replicas: 1}, "two": {replicas: 2}, "whole": {replicas: 2, whole: true},
		"clipped": {replicas: 4, clip: 1}, "overlap": {replicas: 2, overlap: true, finite: true},
		"one-bucket": {replicas: 2, bucket: 1 << 20}} {
		tr, err := newTrainer(w, tiny, 4, 1)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		texts["train-"+name] = golden.Program(tr.session)
		if err := tr.close(); err != nil {
			t.Error(err)
		}
	}
	g, err := newGenerator(tiny, tinyValues(t))
	if err != nil {
		t.Fatal(err)
	}
	texts["generate"] = golden.Program(g.session)
	e, err := newEvaluator(tiny, tinyValues(t))
	if err != nil {
		t.Fatal(err)
	}
	texts["evaluate"] = golden.Program(e.session)
	if err := errors.Join(g.close(), e.close()); err != nil {
		t.Error(err)
	}
	golden.Hashes(t, "programs.txt", texts)
}
