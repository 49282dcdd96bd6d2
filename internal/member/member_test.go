package member

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gogcl.dev/gcl"
)

// inNoJob hides the launcher that has started the test, if one has.
func inNoJob(t *testing.T) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if regexp.MustCompile(`^(OMPI_|PMI|SLURM_|RANK|WORLD_SIZE|LOCAL_|JOB_COMPLETION|GCL_)`).MatchString(name) {
			t.Setenv(name, "")
		}
	}
}

// TestAlone: in no job all is as the program says.
func TestAlone(t *testing.T) {
	inNoJob(t)
	m, err := Join(t.Context())
	if m != nil || err != nil {
		t.Fatalf("%v, error %v", m, err)
	}
	if n, err := m.Replicas(3, true); n != 3 || err != nil || m.InJob() || !m.First() || m.Comm() != nil {
		t.Errorf("%d replicas, error %v", n, err)
	}
	if own := m.Own(3); !slices.Equal(own, []int{0, 1, 2}) {
		t.Errorf("replicas %d", own)
	}
	if stop, v, err := m.Agree(t.Context(), true, 5); !stop || v != 5 || err != nil {
		t.Errorf("stop %v, value %v, error %v", stop, v, err)
	}
	if o := m.Counted(gcl.Options{}); o != (gcl.Options{}) || m.Ways() != "" {
		t.Errorf("options %v, and a line %q", o, m.Ways())
	}
	var w bytes.Buffer
	if m.Output(&w) != io.Writer(&w) || m.Session(t.Context()) != nil {
		t.Error("the output is not the program's, or there is an option")
	}
	if err := m.Leave(errors.New("boom")); err != nil {
		t.Error(err)
	}
}

// TestJob: all replicas agree, and one speaks for all.
func TestJob(t *testing.T) {
	if err := gcl.Run(t.Context(), 3, func(ctx context.Context, c *gcl.Comm) error {
		m, r := &Member{comm: c}, c.Replica()
		if m.First() != (r == 0) || m.Output(os.Stdout) == os.Stdout && r > 0 || !slices.Equal(m.Own(3), []int{r}) {
			t.Errorf("replica %d speaks: %v", r, m.First())
		}
		for flag, want := range map[int]string{3: "", 4: "-n 4: the launcher has started 3 replicas"} {
			_, err := m.Replicas(flag, true)
			if want == "" && err != nil || want != "" && (err == nil || err.Error() != want) {
				t.Errorf("-n %d: %v", flag, err)
			}
		}
		if n, err := m.Replicas(4, false); n != 3 || err != nil {
			t.Errorf("%d replicas, error %v", n, err)
		}
		for _, told := range []int{-1, 0, 2} {
			stop, v, err := m.Agree(ctx, r == told, float64(10*r-1))
			if err != nil || stop != (told >= 0) || v != -1 {
				t.Errorf("replica %d: stop %v, value %v, error %v", r, stop, v, err)
			}
		}
		if all, err := m.Gather(ctx, []float32{float32(r)}); err != nil || !slices.Equal(all, []float32{0, 1, 2}) {
			t.Errorf("replica %d: %v, error %v", r, all, err)
		}
		counted, err := c.With(m.Counted(gcl.Options{Reproducible: true}))
		if err != nil {
			return err
		}
		for _, n := range []int{1, 1, 10_000} {
			if err := gcl.AllReduceInPlace(ctx, counted, make([]float32, n), gcl.Add); err != nil {
				return err
			}
		}
		if got, want := m.Ways(), "collectives over inproc: peer memory 1, small 2"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		text, err := m.Resident(ctx)
		if err != nil {
			return err
		}
		form := regexp.MustCompile(`^resident memory: ([\d.]+) MB in 3 processes, the greatest ([\d.]+) MB$`)
		match := form.FindStringSubmatch(text)
		if match == nil {
			if text != "" {
				t.Errorf("%q", text)
			}
			return nil
		}
		sum, err1 := strconv.ParseFloat(match[1], 64)
		greatest, err2 := strconv.ParseFloat(match[2], 64)
		if err1 != nil || err2 != nil || !(sum > greatest && greatest > 1) {
			t.Errorf("%q", text)
		}
		return nil
	}); err != nil {
		t.Error(err)
	}
}
