package metrics_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
	"gogcl.dev/internal/leaktest"
)

// everything is a Metrics that has every metric.
func everything(t *testing.T) *metrics.Metrics {
	m := metrics.New(nil)
	run(t, m, 2, func(ctx context.Context, c *gcl.Comm) error {
		data := make([]float32, 100)
		if err := gcl.AllReduceInPlace(ctx, c.Named(`a "name"\n`), data, gcl.Add); err != nil {
			return err
		}
		return gcl.SendRecv(ctx, c, data, 1-c.Rank(), make([]float32, 100), 1-c.Rank())
	})
	leaktest.Check(t)
	err := gcl.Run(t.Context(), 1, func(ctx context.Context, c *gcl.Comm) error {
		_ = gcl.Send(ctx, c, []float32{1}, 9)
		_ = gcl.ReduceInPlace(ctx, c, []float32{1}, gcl.Add, 9)
		return nil
	}, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

const (
	alarms    = "../../docs/metrics/alarms.yml"
	dashboard = "../../docs/metrics/dashboard.json"
)

// TestFiles: the dashboard and the alarms ask for what there is, and between them for all of it but gauges of the last
// call, which are of no use over time. The package's comment has all of it.
func TestFiles(t *testing.T) {
	there := scraped(t, everything(t))
	run(t, metrics.New(nil), 2, func(ctx context.Context, c *gcl.Comm) error { // what there is of open ones only
		if err := c.Barrier(ctx); err != nil {
			return err
		}
		if c.Rank() == 0 {
			maps.Copy(there, scraped(t, metrics.New(nil)))
		}
		return c.Barrier(ctx)
	})
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if err := json.Unmarshal([]byte(read(dashboard)), new(map[string]any)); err != nil {
		t.Error(err)
	}
	asked := map[string]bool{}
	for _, name := range regexp.MustCompile(`\bgcl_\w+`).FindAllString(read(dashboard)+read(alarms), -1) {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if short := strings.TrimSuffix(name, suffix); there[short] != nil {
				name = short
			}
		}
		if asked[name] = true; there[name] == nil {
			t.Errorf("%s is asked for: there is no such metric", name)
		}
	}
	comment := read("doc.go")
	for name := range there {
		if !asked[name] && !strings.Contains(name, "bandwidth") && name != "gcl_p2p_bytes_total" &&
			name != "gcl_collective_bytes_total" {
			t.Errorf("nothing asks for %s", name)
		}
		if !strings.Contains(comment, name+" ") && !strings.HasPrefix(name, "gcl_p2p_") {
			t.Errorf("the package's comment does not have %s", name)
		}
	}
}

// TestPromtool: Prometheus' own program finds nothing wrong with a scrape, nor with the alarms.
func TestPromtool(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed: in Debian it is in the package prometheus")
	}
	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = get(everything(t), "/metrics").Body
	if out, err := check.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%v: %s", err, out)
	}
	if out, err := exec.Command(promtool, "check", "rules", alarms).CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
