package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gogcl.dev/internal/command"
)

// TestSlope: slopes and intervals of lines whose numbers are known.
func TestSlope(t *testing.T) {
	x := []float64{0, 1, 2, 3, 4}
	for _, c := range []struct {
		y             []float64
		at, low, high float64
	}{
		{[]float64{7, 7, 7, 7, 7}, 0, 0, 0},
		{[]float64{1, 3, 5, 7, 9}, 2, 2, 2},
		// The residuals are 1 -2 2 -2 1 tenths: of 14/100 in squares, over 3 and 10, by 5.8409 of Student's t.
		{[]float64{0.1, 0.8, 2.2, 2.8, 4.1}, 1, 0.601, 1.399},
		// The residuals are -2 1 2 1 -2 thirds, whose neighbours have a correlation of 0: -2 2 2 -2 over 14.
		{[]float64{-2. / 3, 4. / 3, 8. / 3, 10. / 3, 10. / 3}, 1, -0.330, 2.330},
	} {
		at, low, high := slope(x, c.y)
		if math.Abs(at-c.at) > 1e-9 || math.Abs(low-c.low) > 1e-3 || math.Abs(high-c.high) > 1e-3 {
			t.Errorf("%v: %v from %v to %v, want %v from %v to %v", c.y, at, low, high, c.at, c.low, c.high)
		}
	}
	// One step up in half an hour may be all there is in an hour: the residuals follow each other, which the interval
	// allows for.
	var hours, stepped []float64
	for i := range 60 {
		hours = append(hours, float64(i)/120)
		stepped = append(stepped, float64(i/30))
	}
	if _, low, _ := slope(hours, stepped); low > 1 {
		t.Errorf("one step is a slope of %v at least, want 1", low)
	}
}

// TestWatch: samples are taken when they are due, and what grows is found and is the exit code.
func TestWatch(t *testing.T) {
	flat := func(hours float64, replica int) vitals { return vitals{36, 24, 3000, 22000 + 100*math.Sin(1000*hours)} }
	for name, c := range map[string]struct {
		of   func(hours float64, replica int) vitals
		rows []string // that grow
	}{
		"flat": {flat, nil},
		"a descriptor every six minutes": {func(hours float64, replica int) vitals {
			v := flat(hours, replica)
			if replica == 1 {
				v.descriptors += math.Floor(10 * hours)
			}
			return v
		}, []string{"1  descriptors"}},
		"goroutines, and memory everywhere": {func(hours float64, replica int) vitals {
			v := flat(hours, replica)
			if replica == 0 {
				v.goroutines += 60 * hours
			}
			v.resident += 7000 * hours
			v.heap += 400 * hours // is within the bound
			return v
		}, []string{"0   goroutines", "0      RSS KiB", "1      RSS KiB"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := soaking{length: 30 * time.Minute, warm: 3 * time.Minute, samples: 60, directory: "there"}
				began := time.Now()
				var taken []time.Duration
				sample := func(last bool) ([]vitals, error) {
					now := time.Since(began)
					taken = append(taken, now)
					if last != (len(taken) == 60) {
						t.Errorf("sample %d is the last: %v", len(taken), last)
					}
					return []vitals{c.of(now.Hours(), 0), c.of(now.Hours(), 1)}, nil
				}
				var stdout, stderr bytes.Buffer
				code := s.watch(t.Context(), nil, sample, &stdout, &stderr)
				if len(taken) != 60 || taken[0] != 3*time.Minute || taken[59] != 30*time.Minute {
					t.Errorf("%d samples at %v", len(taken), taken)
				}
				if want := min(len(c.rows), 1); code != want {
					t.Errorf("exit code %d, want %d", code, want)
				}
				if strings.Count(stdout.String(), "grows") != len(c.rows) {
					t.Errorf("%s", &stdout)
				}
				for _, row := range c.rows {
					if !growsIn(stdout.String(), row) {
						t.Errorf("%s does not grow:\n%s", row, &stdout)
					}
				}
			})
		})
	}
}

// growsIn reports whether a table says that a row grows.
func growsIn(table, row string) bool {
	for line := range strings.Lines(table) {
		if strings.HasPrefix(strings.TrimSpace(line), row+" ") {
			return strings.HasSuffix(line, "grows\n")
		}
	}
	return false
}

// TestWatchEnds: the end of the job, of the context, and a replica that does not answer are errors, after the table of
// the samples that there are.
func TestWatchEnds(t *testing.T) {
	for name, c := range map[string]struct {
		ends func(stop func(), ended chan struct{}) // with the fourth sample
		err  error
		code int
		want string
	}{
		"job":     {func(_ func(), ended chan struct{}) { close(ended) }, nil, command.Failed, "has ended before"},
		"context": {func(stop func(), _ chan struct{}) { stop() }, nil, command.Interrupted, "interrupted"},
		"replica": {func(func(), chan struct{}) {}, errors.New("no answer"), command.Failed, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancel(t.Context())
				ended, k := make(chan struct{}), 0
				sample := func(bool) ([]vitals, error) {
					if k++; k == 4 {
						c.ends(stop, ended)
						return []vitals{{}}, c.err
					}
					return []vitals{{}}, nil
				}
				var stdout, stderr bytes.Buffer
				s := soaking{length: time.Minute, samples: 60}
				if code := s.watch(ctx, ended, sample, &stdout, &stderr); code != c.code ||
					!strings.Contains(stderr.String(), c.want) || !strings.Contains(stdout.String(), "samples from") {
					t.Errorf("exit code %d\n%s%s", code, &stdout, &stderr)
				}
			})
		})
	}
}

// TestSample looks at this process, which answers as replica 3.
func TestSample(t *testing.T) {
	onLinux(t)
	s := soaking{directory: t.TempDir()}
	l, err := net.Listen("unix", filepath.Join(s.directory, "3"))
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{Handler: http.HandlerFunc(pprof.Index)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(l)
	}()
	defer func() {
		server.Close()
		<-done
	}()
	for k, want := range []string{"heap-first", "", "heap-last"} {
		v, err := s.sample([]child{{rank: 3, pid: os.Getpid()}}, k == 2)
		if err != nil {
			t.Fatal(err)
		}
		if v := v[0]; v.descriptors < 3 || v.goroutines < 3 || v.heap < 10 || v.resident < v.heap/2 {
			t.Errorf("%+v", v)
		}
		if want != "" {
			if profile, err := os.ReadFile(filepath.Join(s.directory, want)); err != nil || len(profile) < 100 {
				t.Errorf("%s: %d bytes, %v", want, len(profile), err)
			}
		}
	}
	if _, err := s.sample([]child{{rank: 4, pid: os.Getpid()}}, false); err == nil ||
		!strings.Contains(err.Error(), fmt.Sprintf("replica 4 (pid %d): ", os.Getpid())) {
		t.Errorf("error %v", err)
	}
}
