package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/metrics"
	"gogcl.dev/internal/freeport"
)

// TestPrometheus: a Prometheus scrapes a program whose calls go on, knows its calls, and answers all that the dashboard
// asks for.
func TestPrometheus(t *testing.T) {
	program, err := exec.LookPath("prometheus")
	if err != nil {
		t.Skip("prometheus is not installed: it is Debian's package of that name")
	}
	if testing.Short() {
		t.Skip("it takes seconds until there are two scrapes")
	}
	m := metrics.New(nil)
	server := httptest.NewServer(m)
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	calling := make(chan error, 1)
	go func() {
		calling <- gcl.Run(ctx, 2, func(ctx context.Context, c *gcl.Comm) error {
			data := make([]float32, 100)
			for ctx.Err() == nil {
				if err := gcl.AllReduceInPlace(ctx, c.Named("grads"), data, gcl.Add); err != nil {
					return err
				}
				time.Sleep(time.Millisecond)
			}
			return nil
		}, gcl.WithOptions(gcl.Options{Trace: m.Trace()}))
	}()
	defer func() { stop(); <-calling }() // it ends with the error of the context

	dir := t.TempDir()
	rules, err := filepath.Abs(alarms)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 200ms, evaluation_interval: 200ms}\nrule_files: [%q]\n"+
		"scrape_configs: [{job_name: gcl, static_configs: [{targets: [%q]}]}]\n", rules,
		strings.TrimPrefix(server.URL, "http://"))
	file := filepath.Join(dir, "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	address, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	prometheus := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+dir,
		"--web.listen-address="+address)
	prometheus.Stderr = &said
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = prometheus.Process.Kill()
		_ = prometheus.Wait() // it was killed
		if t.Failed() {
			t.Log(said.String())
		}
	}()

	// ask is how many series Prometheus has for a query; -1: it does not answer yet.
	ask := func(query string) (series int, why string) {
		r, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return -1, err.Error()
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body) // what is missing is an error of what follows
		var answer struct {
			Status string
			Error  string
			Data   struct{ Result []any }
		}
		if err := json.Unmarshal(body, &answer); err != nil || answer.Status != "success" {
			return -1, string(body)
		}
		return len(answer.Data.Result), ""
	}
	await := func(query string, want int) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			got, why := ask(query)
			if got == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("%s: %d series %s, want %d", query, got, why, want)
			}
		}
	}
	await(`gcl_collective_exec_time_seconds_count{comm_name="grads", collective="all-reduce"} > 0`, 2)
	await(`rate(gcl_collective_exec_time_seconds_count{comm_name="grads"}[1m]) > 0`, 2)
	await("gcl:bus_bandwidth_bytes_per_second:rate > 0", 2) // of a rule of the alarms

	text, err := os.ReadFile(dashboard)
	if err != nil {
		t.Fatal(err)
	}
	var panels struct {
		Panels []struct{ Targets []struct{ Expr string } }
	}
	if err := json.Unmarshal(text, &panels); err != nil {
		t.Fatal(err)
	}
	asked := 0
	grafana := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*", "$comm_name", ".*", "$collective", ".*")
	for _, p := range panels.Panels {
		for _, target := range p.Targets {
			query := grafana.Replace(target.Expr)
			if series, why := ask(query); series < 0 || series == 0 && !strings.Contains(query, "p2p") &&
				!strings.Contains(query, "errors") && !strings.Contains(query, "recent") {
				t.Errorf("%s: %d series %s", query, series, why)
			}
			asked++
		}
	}
	if asked == 0 {
		t.Error("the dashboard asks for nothing")
	}
}
