package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"gogcl.dev/internal/command"
)

// TestOut appends two runs to a file of each kind.
func TestOut(t *testing.T) {
	args := strings.Fields("-sizes 8,1K -iters 2 -c 1 -out")
	for _, network := range append([]string{"inproc"}, networks()...) {
		if network != "inproc" {
			t.Setenv(asGclperf, "")
		}
		dir := t.TempDir()
		for ending := range endings {
			name := filepath.Join(dir, "all"+ending)
			for range 2 {
				got := perform(t, t.Context(), nil, append(args, name, "-transport", network)...)
				if got.code != command.OK || got.stderr != "" ||
					!strings.Contains(got.stdout, "# Wrong values         : 0 OK") {
					t.Fatalf("%s: %+v", name, got)
				}
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			switch ending {
			case ".txt":
				if n := strings.Count(string(text), "# Wrong values         : 0 OK"); n != 2 {
					t.Errorf("%d tables in %s", n, text)
				}
			case ".csv":
				rows, err := csv.NewReader(strings.NewReader(string(text))).ReadAll()
				if err != nil || len(rows) != 1+2*4 || strings.Join(rows[0], " ") != strings.Join(fieldNames(), " ") {
					t.Errorf("%v, %v", err, rows)
				}
			case ".jsonl":
				d := json.NewDecoder(strings.NewReader(string(text)))
				d.DisallowUnknownFields()
				for i := range 2 * 4 {
					var m measurement
					if err := d.Decode(&m); err != nil || m.N != 2 || m.Transport != network || m.Date == "" ||
						m.Cores != runtime.NumCPU() || m.GOMAXPROCS < 1 || m.Settings != "-iters 2 -c 1" {
						t.Errorf("line %d: %v, %+v", i, err, m)
					}
				}
				if d.More() || strings.Count(string(text), "\n") != 2*4 {
					t.Errorf("want 8 lines: %s", text)
				}
			}
		}
	}
}

// TestFilesAreCheckedFirst: what cannot be written is refused before anything is measured, and no file is left behind.
func TestFilesAreCheckedFirst(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		name = filepath.Join(dir, name)
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	other, broken := write("other.csv", "a,b\n1,2\n"), write("broken.jsonl", `{"a":`)
	file := write("file", "")
	inFile := filepath.Join(file, "x.csv")
	for args, want := range map[string]string{
		"-out x.json":            "-out x.json: want a name that ends in .csv, .jsonl (an object on each line) or .txt",
		"-out=":                  "-out has no name of a file",
		"-out /no/such/x.csv":    "-out /no/such/x.csv: there is no such directory",
		"-svg /no/such/x.svg":    "-svg /no/such/x.svg: there is no such directory",
		"-out " + inFile:         "-out " + inFile + ": there is no such directory",
		"-out " + dir + "/x.csv": "", // with the directory in its place
		"-out " + other:          "-out " + other + " begins with other columns than those of this gclperf",
		"-out " + broken:         "-out " + broken + " ends in the middle of a line",
	} {
		if want == "" {
			if err := os.Mkdir(filepath.Join(dir, "x.csv"), 0o755); err != nil {
				t.Fatal(err)
			}
			want = "is a directory, want a file"
		}
		calls := 0
		got := perform(t, t.Context(), func(int, []byte) { calls++ }, append(strings.Fields(args), "-sizes", "8")...)
		if got.code != command.Usage || got.stdout != "" || !strings.Contains(got.stderr, want) || calls > 0 {
			t.Errorf("%s: %+v, want %q; %d calls", args, got, want, calls)
		}
	}
	for _, flag := range []string{"-svg", "-out"} {
		name := filepath.Join(dir, "new.csv")
		got := perform(t, t.Context(), nil, flag, name, "-sizes", "1048576G")
		if _, err := os.Stat(name); got.code != command.Usage || !os.IsNotExist(err) {
			t.Errorf("%s: %+v, and the file is there: %v", flag, got, err)
		}
	}
}

// TestFullFile: a disk that is full is an error, and the measurements are on standard output.
func TestFullFile(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has /dev/full")
	}
	name := filepath.Join(t.TempDir(), "full.jsonl")
	if err := os.Symlink("/dev/full", name); err != nil {
		t.Fatal(err)
	}
	got := perform(t, t.Context(), nil, "-sizes", "8", "-iters", "2", "-csv", "-out", name)
	if got.code != command.Failed || !strings.Contains(got.stderr, "no space left") ||
		strings.Count(got.stdout, "\n") != 2 {
		t.Errorf("%+v", got)
	}
}
