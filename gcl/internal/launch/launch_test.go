package launch

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite testdata/*.txt; commit only what you understand")

// variables is an environment.
type variables map[string]string

// lookup is [os.LookupEnv] of the environment.
func (v variables) lookup(name string) (string, bool) {
	value, ok := v[name]
	return value, ok
}

// parseVariables reads lines NAME=VALUE. Lines without "=" are left out.
func parseVariables(text string) variables {
	v := variables{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "="); ok {
			v[name] = value
		}
	}
	return v
}

// An entry is one process of a recorded environment.
type entry struct {
	title string
	env   variables
}

// recorded reads a file of testdata: a comment, then processes, each with a line "-- title".
func recorded(t testing.TB, name string) (entries []entry) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(text), "\n-- ")
	if !strings.HasPrefix(first, "# ") || strings.Contains(first, "\n") {
		t.Errorf("%s: the first line must say where the file comes from", name)
	}
	for part := range strings.SplitSeq(rest, "\n-- ") {
		title, lines, _ := strings.Cut(part, "\n")
		entries = append(entries, entry{title, parseVariables(lines)})
	}
	return entries
}

func recordings(t testing.TB) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", "*.env"))
	if err != nil || len(names) < 15 {
		t.Fatalf("%d recordings, %v", len(names), err)
	}
	return names
}

// describe is what the golden file has of a result.
func describe(job Job, err error) string {
	var out strings.Builder
	if err != nil {
		fmt.Fprintf(&out, "  %v\n", err)
	}
	if job.Size > 0 {
		fmt.Fprintf(&out, "  %s: rank %d of %d, local %d of %d, name %q\n",
			job.Source, job.Rank, job.Size, job.LocalRank, job.LocalSize, job.Name)
		if job.MPI {
			out.WriteString("  an MPI library finds its job\n")
		}
		if meeting, err := job.Rendezvous(); err != nil {
			fmt.Fprintf(&out, "  %v\n", err)
		} else {
			fmt.Fprintf(&out, "  rendezvous %s\n", meeting)
		}
	}
	if s := job.Settings; s.Job != "" || s.Transport != "" || s.Interface.String() != "" || s.Ports != [2]int{} ||
		s.Secret != nil || s.SecretFile != "" {
		fmt.Fprintf(&out, "  settings %+v\n", s)
	}
	return out.String()
}

// TestRecorded reads every recorded environment. With -update it writes the golden file: look at what changed before
// you commit it.
func TestRecorded(t *testing.T) {
	var got strings.Builder
	for _, name := range recordings(t) {
		fmt.Fprintf(&got, "%s\n", filepath.Base(name))
		for _, e := range recorded(t, name) {
			fmt.Fprintf(&got, " %s\n%s", e.title, describe(Read(e.env.lookup)))
		}
	}
	golden(t, "jobs.txt", got.String())
}

// TestRanksOfRecorded: the processes of one recorded job have different ranks, and all else alike that they must agree
// on.
func TestRanksOfRecorded(t *testing.T) {
	for _, name := range recordings(t) {
		var first Job
		ranks := 0
		for _, e := range recorded(t, name) {
			if !strings.HasPrefix(e.title, "rank ") && !strings.HasPrefix(e.title, "index ") ||
				strings.Contains(e.title, ",") {
				continue
			}
			job, err := Read(e.env.lookup)
			if err != nil {
				t.Errorf("%s: %s: %v", name, e.title, err)
				continue
			}
			_, title, _ := strings.Cut(e.title, " ")
			if fmt.Sprint(job.Rank) != title {
				t.Errorf("%s: %s: rank %d", name, e.title, job.Rank)
			}
			if ranks++; ranks == 1 {
				first = job
			}
			if job.Size != first.Size || job.Name != first.Name || job.Source != first.Source ||
				job.rendezvous != first.rendezvous {
				t.Errorf("%s: %s: %+v, and the first %+v", name, e.title, job, first)
			}
		}
	}
}

// TestNoJob: the settings come with ErrNoJob, and with no other error.
func TestNoJob(t *testing.T) {
	env := variables{"GCL_TRANSPORT": "tcp"}
	job, err := Read(env.lookup)
	if !errors.Is(err, ErrNoJob) || job.Settings.Transport != "tcp" || job.Size != 0 {
		t.Errorf("%+v, %v", job, err)
	}
	env["RANK"] = "1"
	if job, err = Read(env.lookup); err == nil || errors.Is(err, ErrNoJob) || job.Settings.Transport != "" {
		t.Errorf("%+v, %v", job, err)
	}
}

// TestSecretIsNotPrinted: no verb of fmt prints the secret, whatever holds it.
func TestSecretIsNotPrinted(t *testing.T) {
	env := variables{"GCL_SECRET": "hush", "RANK": "0", "WORLD_SIZE": "1"}
	job, err := Read(env.lookup)
	if err != nil || string(job.Settings.Secret) != "hush" {
		t.Fatalf("%q, %v", []byte(job.Settings.Secret), err)
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d", "%X"} {
		for _, value := range []any{job, &job, job.Settings, job.Settings.Secret} {
			text := fmt.Sprintf(verb, value)
			if strings.Contains(text, "hush") || strings.Contains(text, "68757368") || strings.Contains(text, "104 ") ||
				strings.Contains(text, "0x68") {
				t.Errorf("%s prints %s", verb, text)
			}
		}
	}
}
