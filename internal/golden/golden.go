// Package golden is for tests that hold long texts against what they were, of which only the hashes are kept.
package golden

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gogcl.dev/ir"
	"gogcl.dev/ir/show"
)

var (
	update = flag.Bool("update-hashes", false, "write the hashes of the texts as they are now")
	write  = flag.String("texts", "", "write each text into this `directory`, to compare with those of another revision")
)

// position is a line of a source file, which a text may name and which changes with every edit.
var position = regexp.MustCompile(`[\w./-]+\.go:\d+`)

// Program is the text of a session's program, with where everything lies and which code is live when.
func Program(s *ir.Session) string {
	return fmt.Sprintf("%v%v\n%v", s.Program(), s.Report(), show.Code(s.Program()))
}

// Hashes compares texts, by name, with the hashes in a file of testdata. Lines of source files in them do not count.
func Hashes(t *testing.T, file string, texts map[string]string) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := position.ReplaceAllString(texts[name], "#")
		fmt.Fprintf(&b, "%x %7d %s\n", sha256.Sum256([]byte(text)), len(text), name)
		if *write == "" {
			continue
		}
		if err := os.MkdirAll(*write, 0o755); err != nil {
			t.Fatal(err)
		}
		at := filepath.Join(*write, strings.ReplaceAll(name, "/", "_")+".txt")
		if err := os.WriteFile(at, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file = filepath.Join("testdata", file)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want, have := strings.Split(string(kept), "\n"), strings.Split(b.String(), "\n")
	for _, line := range have {
		if !slices.Contains(want, line) {
			t.Errorf("%s has changed, or is new: -texts DIR here and in the revision before shows how; if it is right, "+
				"-update-hashes", line[strings.LastIndex(line, " ")+1:])
		}
	}
	if len(want) != len(have) {
		t.Errorf("%d texts, and %d hashes in %s", len(have)-1, len(want)-1, file)
	}
}
