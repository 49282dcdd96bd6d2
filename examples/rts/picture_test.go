package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestPicture draws loss and accuracy of each epoch, also of those before a resumption.
func TestPicture(t *testing.T) {
	onNumbers(t)
	dir := t.TempDir()
	path := dir + "/a.svg"
	if err := os.WriteFile(path, []byte(strings.Repeat("old ", 10000)), 0o666); err != nil {
		t.Fatal(err)
	}
	output(t, "-epochs", "2", "-checkpoint", dir+"/c")
	output(t, "-epochs", "3", "-checkpoint", dir+"/c", "-resume", "-svg", path)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for d := xml.NewDecoder(strings.NewReader(string(data))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("not XML: %v", err)
		}
	}
	if !strings.HasSuffix(string(data), "</svg>\n") {
		t.Errorf("something of the old picture is left: %q", data[len(data)-50:])
	}
	for _, text := range []string{">1437 digits, 4 replicas, batch 64<", ">loss<", ">accuracy<", ">epoch<"} {
		if !strings.Contains(string(data), text) {
			t.Errorf("there is no %s", text)
		}
	}
	if n := strings.Count(string(data), "<circle "); n != 3+1 { // losses, and the legend
		t.Errorf("%d circles, want 4", n)
	}
}

// TestNoPicture leaves a file as it was when there is nothing to draw, and no file where there was none.
func TestNoPicture(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/old.svg", []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"/old.svg", "/new.svg"} {
		wantMistake(t, runWith(t.Context(), "-svg", dir+name, "-resume", "-checkpoint", dir+"/none"), "-resume: ")
		if got := interrupt(t, "epoch 1/", "-svg", dir+name); got.code != command.Interrupted {
			t.Errorf("%+v", got)
		}
	}
	if data, err := os.ReadFile(dir + "/old.svg"); err != nil || string(data) != "old" {
		t.Errorf("the old picture is %q, error %v", data, err)
	}
	if _, err := os.Stat(dir + "/new.svg"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a new picture: %v", err)
	}
}
