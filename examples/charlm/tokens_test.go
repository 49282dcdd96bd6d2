package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"gogcl.dev/internal/progress"
)

// TestTokens: goroutines, and processes over shared memory, unix sockets and TCP have the same text and the same bits
// of the logits, for 1, 2 and 4 replicas, or the program fails. With -short it is for 1 and 2.
func TestTokens(t *testing.T) {
	onNumbers(t)
	flags, rows := "-size 244000", 3
	if testing.Short() {
		flags, rows = "-size 67000", 2
	}
	path := t.TempDir() + "/a.svg"
	got := output(t, "-tokens -minutes 1e-9 -sample 40 "+flags+" -svg "+path, loadText)
	row := regexp.MustCompile(`(?m)^[124]( +\d+ \(\d+-\d+\)){3,4}$`)
	if n := len(row.FindAllString(got, -1)); n != rows || !strings.Contains(got, "median of 1 rounds") ||
		strings.Count(got, "left out") != 3-rows {
		t.Errorf("%d rows, want %d:\n%s", n, rows, got)
	}
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
	for _, text := range []string{">goroutines<", ">unix<", ">tcp<", ">replicas<", ">tokens a second<"} {
		if !strings.Contains(string(data), text) {
			t.Errorf("there is no %s", text)
		}
	}
}

// TestTokensOnce is one run, by -n.
func TestTokensOnce(t *testing.T) {
	got := output(t, "-tokens -n 2 -size 67000 -sample 40", loadText)
	if !regexp.MustCompile(`^replicas: 2, tokens/s: \d+\.\d+, digest of text and logits: [0-9a-f]+\n$`).MatchString(got) {
		t.Errorf("output %q", got)
	}
}

// tableOf is a table of these replicas and ways, and what was said when it was made.
func tableOf(s size, replicas []int, ways ...string) (*tokenTable, string) {
	var said strings.Builder
	return newTokenTable(s, replicas, ways, progress.New(&said)), said.String()
}

// TestTokenTable has given speeds.
func TestTokenTable(t *testing.T) {
	table, said := tableOf(size{heads: 2}, []int{1, 2, 4}, "goroutines", "unix")
	want := "4 replicas are left out: the layers cannot be split over 4 replicas, each with as many of the 2 heads: want a " +
		"number of replicas among [1 2], or another -size\n"
	if !strings.HasSuffix(said, want) {
		t.Errorf("said %q, want %q", said, want)
	}
	runs, enough := 0, errors.New("enough")
	err := table.fill(time.Hour, func(n int, way string) (timing, error) {
		if runs++; runs > 12 { // after three rounds
			return timing{}, enough
		}
		return timing{n, float64(runs*runs*n*len(way)) - 0.4, uint64(n)}, nil
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
	const text = `tokens a second, median of 3 rounds (least to most)
replicas  goroutines      unix
1         250 (10-810)    144 (16-400)
2         980 (180-2420)  512 (128-1152)
All runs of a row have made up the same text, with the same bits. One replica has nobody to talk to: its
row shows the noise.`
	if got := table.String(); got != text {
		t.Errorf("table\n%s\nwant\n%s", got, text)
	}
	fig := table.figure(splitSize)
	if lines := fig.Rows[0][0].Lines; len(lines) != 2 || len(lines[1].Points) != 2 || lines[1].Points[1].X != 2 {
		t.Errorf("lines %+v", lines)
	}
}

// TestTokensDiffer: another digest is an error.
func TestTokensDiffer(t *testing.T) {
	table, _ := tableOf(size{heads: 1}, []int{1}, "goroutines", "unix", "tcp")
	err := table.fill(0, func(_ int, way string) (timing, error) {
		return timing{1, 1, map[string]uint64{"tcp": 0xb}[way] + 0xa}, nil
	})
	if want := "1 replicas, tcp: the digest of text and logits is 15, want a as in"; err == nil ||
		!strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}
