package readme

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What differs from run to run in the transcript of README.md.
var (
	aPID     = regexp.MustCompile(`\(pid \d+( on \S+)?\)`)
	aSpeed   = regexp.MustCompile(`  \d+ samples/s  \d+% comm\+wait`)
	atOnce   = "replica 2 has died, replica 3 has come: 4 go on from step 40"
	aMembers = regexp.MustCompile(`replica \d has (died|come).*\n`)
)

// TestSurvive runs the commands of README.md by which one of four processes is killed, and compares what they print:
// lines of gclrun, and of replica 0, each in their order. With -update it writes them anew.
func TestSurvive(t *testing.T) {
	dir := t.TempDir()
	commands := block(t, section(t, "README.md", "survive"), "sh")
	build, run, ok := strings.Cut(commands, "\n")
	if !ok || !strings.HasPrefix(build, "go build ") {
		t.Fatalf("want a line of go build and the command, and README.md has\n%s", commands)
	}
	shell := func(dir, command string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", command)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v:\n%s", command, err, out)
		}
		return string(out)
	}
	shell(root, strings.Replace(build, "build", "build -o "+dir, 1))
	mustHoldButFor(t, "README.md", "survive output", "```\n"+shell(dir, run)+"```\n")
}

// mustHoldButFor checks that a section of a page is what commands print, but for what differs from run to run, or
// writes it. Lines of gclrun come at any time between those of replica 0.
func mustHoldButFor(t *testing.T, page, name, got string) {
	t.Helper()
	have, together := section(t, page, name), strings.Contains(got, atOnce) // the newcomer was as quick as the others
	plain := func(text string) (lines []string) {
		text = aSpeed.ReplaceAllString(aPID.ReplaceAllString(text, "(pid)"), "")
		if together {
			text = aMembers.ReplaceAllString(text, "")
		}
		lines = strings.Split(text, "\n")
		slices.SortStableFunc(lines, func(a, b string) int { return ofGclrun(a) - ofGclrun(b) })
		return lines
	}
	diff := cmp.Diff(plain(got), plain(have))
	if diff == "" {
		return
	}
	if !*update {
		t.Fatalf("section %q of %s is out of date (-want +have); run with -update:\n%s", name, page, diff)
	}
	fresh := strings.Replace(read(t, page), begin(name)+have+end(name), begin(name)+got+end(name), 1)
	if err := os.WriteFile(filepath.Join(root, page), []byte(fresh), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ofGclrun is 1 for a line of gclrun's own, and else 0.
func ofGclrun(line string) int {
	if strings.HasPrefix(line, "gclrun: ") {
		return 1
	}
	return 0
}
