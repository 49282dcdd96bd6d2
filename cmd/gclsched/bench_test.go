package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"gogcl.dev/commgroup"
	"gogcl.dev/gcl"
	"gogcl.dev/internal/command"
	"gogcl.dev/methods"
	"gogcl.dev/methods/schedule"
)

// TestBench runs a schedule of every collective, and one of a file. A line has the size that was measured, and by which
// method auto goes.
func TestBench(t *testing.T) {
	lines := map[string]string{xmlFiles + "ring.xml": "1024|8", "testdata/twice.txt": "1024|16"}
	for _, c := range schedule.Collectives() {
		line, sizes := fmt.Sprintf("-method recursive_doubling -n 3 -collective %v", c), "1024|8"
		if c.Contract().PerRank() { // as many elements for each of three ranks
			sizes = "1032|12"
		}
		if c.Contract().Rooted() {
			line += " -root 2"
		}
		lines[line] = sizes
	}
	for line, sizes := range lines {
		code, stdout, stderr := gclsched(t, "bench -time 1ms -bytes 8,1K "+line)
		row := regexp.MustCompile(`(?m)^ +(` + sizes + `) +[\d.]+[nµm]s +[\d.]+[nµm]s +[a-z_]+, [SH]y\S+ +\d+\.\d\d$`)
		if code != command.OK || stderr != "" || len(row.FindAllString(stdout, -1)) != 2 {
			t.Errorf("%s: %d, %q\n%s", line, code, stderr, stdout)
		}
	}
}

// TestBenchOwn runs a schedule of a contract of a program's own. Sizes are those of the longest buffer.
func TestBenchOwn(t *testing.T) {
	const experts = "custom experts, 2 ranks, 2 chunks, 1 round\nsizes 1 3\nround|rank 0|rank 1\n---\nin|0|1\nout|1|0\n" +
		"0|I0>1|I1>0\n|O1<1|O0<0\n"
	file := filepath.Join(t.TempDir(), "experts.txt")
	if err := os.WriteFile(file, []byte(experts), 0o600); err != nil {
		t.Fatal(err)
	}
	for line, sizes := range map[string]string{"testdata/scan.txt": "1024|8", file: "1032|12"} {
		code, stdout, stderr := gclsched(t, "bench -time 1ms -bytes 8,1K "+line)
		row := regexp.MustCompile(`(?m)^ +(` + sizes + `) +[\d.]+[nµm]s$`)
		if code != command.OK || stderr != "" || len(row.FindAllString(stdout, -1)) != 2 {
			t.Errorf("%s: %d, %q\n%s", line, code, stderr, stdout)
		}
	}
}

// TestBenchGoesAnotherWay: a call that does not go by the schedule, and one with another result, are errors and no
// lines.
func TestBenchGoesAnotherWay(t *testing.T) {
	t.Setenv("GCL_OPTIONS", `{"method": "direct"}`)
	code, stdout, stderr := gclsched(t, "bench -time 1ms -bytes 8 -method circulant -n 3")
	if want := `went by direct, and not by the schedule: GCL_OPTIONS is "{\"method\": \"direct\"}"`; code != 1 ||
		strings.Contains(stdout, "Sync") || !strings.Contains(stderr, want) {
		t.Errorf("%d, %q, %q", code, stdout, stderr)
	}
	t.Setenv("GCL_OPTIONS", "")
	s, err := methods.Build(methods.Spec{Method: methods.Direct, Collective: schedule.AllReduce, Size: 4})
	if err != nil {
		t.Fatal(err)
	}
	m := &measuring{schedule: s, time: time.Millisecond}
	err = gcl.Run(t.Context(), 4, func(ctx context.Context, c *gcl.Comm) error {
		pairs, err := c.Group(commgroup.Group{Type: commgroup.Consecutive, Size: 2})
		if err != nil {
			return err
		}
		return m.size(ctx, c, pairs, 2, io.Discard)
	})
	if err == nil || !strings.Contains(err.Error(), "8 bytes: rank ") ||
		!strings.Contains(err.Error(), ", and by auto ") {
		t.Error(err)
	}
}

// TestBenchErrors has what cannot be measured. Nothing is printed then.
func TestBenchErrors(t *testing.T) {
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"-method direct -time 0s", 2, "-time 0s, want more than 0 and at most an hour"},
		{"-method direct -bytes 8x", 2, `-bytes: "8x" is no number of bytes such as 8, 4K, 1M or 2G`},
		{"-method direct -bytes 100G", 2, "107374182400 bytes on each of 8 ranks, in three buffers, are more than 4294967296"},
		{"-method direct -n 1", 1, "a schedule of 1 ranks sends nothing: want 2 or more"},
		{"-method direct -collective barrier", 1, "a barrier moves nothing: want a schedule that does"},

		{xmlFiles + "wrong/twice.xml", 1, "twice.xml: schedule: rank 0 round 1 move 1 (O1=I1+<1): takes a contribution twice"},
	} {
		code, stdout, stderr := gclsched(t, "bench "+c.line)
		if code != c.code || stdout != "" || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: %d, %q, %q", c.line, code, stdout, stderr)
		}
	}
}
