package plot

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestFile draws in place of what was there, and gives up in a file that was there and in one that was not.
func TestFile(t *testing.T) {
	dir := t.TempDir()
	old := strings.Repeat("old ", 10000)
	for _, name := range []string{"/drawn.svg", "/kept.svg"} {
		if err := os.WriteFile(dir+name, []byte(old), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"/drawn.svg", "/kept.svg", "/new.svg"} {
		f, err := OpenFile(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "/drawn.svg" {
			err = f.Draw(&Figure{Title: "title"})
		}
		if err := errors.Join(err, f.GiveUp()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(dir + "/drawn.svg"); err != nil || !strings.HasSuffix(string(text), "</svg>\n") {
		t.Errorf("the drawn picture ends in %q, error %v", text[max(0, len(text)-50):], err)
	}
	if text, err := os.ReadFile(dir + "/kept.svg"); err != nil || string(text) != old {
		t.Errorf("the old picture has changed, error %v", err)
	}
	if _, err := os.Stat(dir + "/new.svg"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("there is a new picture: %v", err)
	}
}

// TestFileFails has names that cannot be written, and a file that cannot be written any more.
func TestFileFails(t *testing.T) {
	dir := t.TempDir()
	for name, want := range map[string]string{"": "it is not a regular file", "/none/a.svg": "no such file"} {
		if _, err := OpenFile(dir + name); err == nil || !strings.HasPrefix(err.Error(), dir+name+": ") ||
			name == "" && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", name, err, want)
		}
	}
	f, err := OpenFile(dir + "/a.svg")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.file.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Draw(&Figure{}); err == nil || !strings.HasPrefix(err.Error(), dir+"/a.svg: ") {
		t.Errorf("error %v", err)
	}
	none, err := OpenFile("")
	if err := errors.Join(err, none.Draw(&Figure{}), none.GiveUp()); err != nil {
		t.Errorf("no picture: %v", err)
	}
}
