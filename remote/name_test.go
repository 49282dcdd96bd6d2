package remote

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFileNames makes the names of files, none of which may be another's on any file system.
func TestFileNames(t *testing.T) {
	long := strings.Repeat("long", 50)
	names := map[string]string{
		"w":            "w",
		"blocks.0.w_q": "blocks.0.w_q",
		"a b":          "a%20b",
		"a%20b":        "a%2520b",
		"w.0":          "w.0",
		"w.0.remote":   "w.0.remote",
		"W":            "%57",
		"Ww":           "%57w",
		"wW":           "w%57",
		".w":           "%2ew",
		"...":          "%2e..",
		"con":          "%63on",
		"con.w":        "%63on.w",
		"CON":          "%43%4f%4e",
		"cond":         "cond",
		"lpt1.a":       "%6cpt1.a",
		"ä":            "%c3%a4",
		"a\u0308":      "a%cc%88",
		"~":            "%7e",
		"..w":          "%2e.w",
		"a:b*c?":       "a%3ab%2ac%3f",
		long:           long,

		// Too long when escaped: cut, and told apart by a hash.
		strings.Repeat("L", 200):       strings.Repeat("%4c", 56)[:166] + "%%HASH",
		strings.Repeat("L", 199) + "l": strings.Repeat("%4c", 56)[:166] + "%%HASH",
		strings.Repeat("ä", 100):       strings.Repeat("%c3%a4", 28)[:166] + "%%HASH",
	}
	seen := map[string]string{}
	for name, want := range names {
		for _, replica := range []int{0, 1, math.MaxInt} {
			got := fileName(Spec{Buffer: name, Replica: replica})
			sum := sha256.Sum256([]byte(name))
			want := strings.Replace(want, "HASH", hex.EncodeToString(sum[:16]), 1) + fmt.Sprintf(".%d.remote", replica)
			if got != want {
				t.Errorf("the file of %q is %q, want %q", name, got, want)
			}
			if len(got) > 255 || strings.ToLower(got) != got {
				t.Errorf("the file of %q is %q, of %d bytes", name, got, len(got))
			}
			if other, is := seen[got]; is {
				t.Errorf("%q and %q are one file %q", name, other, got)
			}
			seen[got] = name
		}
	}
}

// TestNames opens buffers of odd names in one directory, each of which has its own value.
func TestNames(t *testing.T) {
	dir := Dir(t.TempDir())
	names := []string{"a.0", "a", "A", "%41", "%61", "ä", "a\u0308", "1", " ", "con", "Con", "con fused", "...", "~",
		strings.Repeat("ä", 100), strings.Repeat("ä", 99) + "ö", strings.Repeat("x", 200), strings.Repeat("X", 200)}
	for i, name := range names {
		sp := spec(1, 2)
		sp.Buffer = name
		e := open(t, dir, sp)
		store(t, e, 0, value(uint64(i), 8))
		closeIt(t, e)
	}
	for i, name := range names {
		sp := spec(1, 2)
		sp.Buffer = name
		e := open(t, dir, sp)
		holds(t, e, value(uint64(i), 8))
		closeIt(t, e)
	}
	files, err := os.ReadDir(string(dir))
	if err != nil || len(files) != len(names) {
		t.Errorf("%d files, error %v, want %d", len(files), err, len(names))
	}
}

// TestBadNames opens buffers whose names no storage takes.
func TestBadNames(t *testing.T) {
	eachStorage(t, func(t *testing.T, s Storage) {
		for name, want := range map[string]string{
			"":                       "the buffer has no name",
			".":                      `the buffer's name "." is that of a directory`,
			"..":                     `the buffer's name ".." is that of a directory`,
			"../a":                   `the buffer's name "../a" has "/" at byte 2, which would lead to another directory`,
			"/etc/passwd":            `has "/" at byte 0`,
			"a/b":                    `has "/" at byte 1`,
			`a\b`:                    `has "\\" at byte 1`,
			"a\x00b":                 `the buffer's name "a\x00b" has a control character at byte 1`,
			"a\n":                    `has a control character at byte 1`,
			"a\u0085":                `has a control character at byte 1`,
			"\xff":                   `the buffer's name "\xff" is not valid UTF-8`,
			strings.Repeat("x", 201): "has 201 bytes, at most 200 are allowed",
		} {
			sp := spec(1, 2)
			sp.Buffer = name
			e, err := s.Open(sp)
			if err == nil {
				closeIt(t, e)
			}
			wantError(t, err, "remote: open buffer ", want)
		}
	})
}

// FuzzFileNames gives two buffers names: what is a name makes the name of a file, another one than any other name,
// whatever a file system makes of capitals.
func FuzzFileNames(f *testing.F) {
	f.Add("w", "W")
	f.Add("a%41", "aA")
	f.Add(strings.Repeat("X", 200), strings.Repeat("X", 199)+"x")
	f.Add("con.a", ".con")
	f.Fuzz(func(t *testing.T, a, b string) {
		if checkName(a) != nil || checkName(b) != nil {
			return
		}
		x, y := fileName(Spec{Buffer: a, Replica: math.MaxInt}), fileName(Spec{Buffer: b, Replica: math.MaxInt})
		if a != b && strings.EqualFold(x, y) {
			t.Errorf("%q and %q are one file %q", a, b, x)
		}
		for _, name := range []string{x, y} {
			if len(name) > 255 || strings.ToLower(name) != name || filepath.Base(name) != name || name[0] == '.' ||
				!filepath.IsLocal(name) {
				t.Errorf("a file %q of %d bytes", name, len(name))
			}
		}
	})
}
