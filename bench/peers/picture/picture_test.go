package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "collective,n,bytes,ours_us,peer_us,peer,peer_over_ours,floor_us,ours_over_floor,rounds,rounds_used,transport\n"

// TestPicture draws two tables, of which other collectives and lines without a peer are left out.
func TestPicture(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		return name
	}
	two := write("2.csv", header+"allreduce,2,8,0.3,0.2,shm,0.6,,,3,2,inproc\nallreduce,2,1024,0.4,0.5,shm,1.2,,,3,2,inproc\n"+
		"broadcast,2,8,0.3,0.2,shm,0.6,,,3,2,inproc\n")
	four := write("4.csv", header+"allreduce,4,8,1.3,5.2,shm,4,,,3,2,inproc\nallreduce,4,64,1.3,,,,,,3,2,inproc\n")
	out := filepath.Join(dir, "out.svg")
	var stderr bytes.Buffer
	if code := run(context.Background(), []string{"-o", out, two, four}, &stderr, &stderr); code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr.String())
	}
	svg, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"2 replicas", "4 replicas", "best tuned Open MPI", "gogcl, auto",
		"prefers-color-scheme"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the picture", want)
		}
	}
}

// TestMistakes: what cannot be drawn is an error that says so.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"":           "no line of allreduce",
		"a,b\n1,2\n": "no table of bench/peers.sh -o",
		header:       "no line of allreduce",
		header + "allreduce,2,8,x,0.2,shm,0.6,,,3,2,inproc\n": "line 2",
	} {
		name := filepath.Join(dir, "table.csv")
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		code := run(context.Background(), []string{"-o", filepath.Join(dir, "out.svg"), name}, &stderr, &stderr)
		if code == 0 || !strings.Contains(stderr.String(), want) {
			t.Errorf("%q: exit code %d, %q, want %q", text, code, stderr.String(), want)
		}
	}
	var stderr bytes.Buffer
	code := run(context.Background(), nil, &stderr, &stderr)
	if code == 0 || !strings.Contains(stderr.String(), "want -o FILE") {
		t.Errorf("no arguments: exit code %d, %s", code, stderr.String())
	}
}
