package metrics

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"gogcl.dev/gcl"
	"gogcl.dev/gcl/internal/flight"
	"gogcl.dev/internal/watch"
)

// ServeHTTP implements http.Handler. It serves /metrics, in Prometheus' text format, and /healthz; see the package's
// comment for both. It is for a path of its own or for these two: http.StripPrefix takes off what stands before.
func (m *Metrics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, r.Method+" is not served: want GET or HEAD", http.StatusMethodNotAllowed)
		return
	}
	switch r.URL.Path {
	case "/metrics":
		m.findPrices()
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		w.Write(m.text())
	case "/healthz":
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if ill := health().text(); ill != "" {
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, ill)
			return
		}
		fmt.Fprintln(w, "ok")
	default:
		http.Error(w, "want /metrics or /healthz", http.StatusNotFound)
	}
}

// pricingTime is how long a scrape computes prices.
const pricingTime = time.Second

// findPrices prices the series that have none so far, until the time is over.
func (m *Metrics) findPrices() {
	m.pricing.Lock()
	defer m.pricing.Unlock()
	if m.prices == nil {
		m.prices = map[key]float64{}
	}
	for until := time.Now().Add(pricingTime); ; {
		m.mu.Lock()
		if len(m.fresh) == 0 || time.Now().After(until) {
			m.mu.Unlock()
			return
		}
		u := m.fresh[0]
		m.fresh[0] = nil
		m.fresh = m.fresh[1:]
		m.mu.Unlock()
		price, ok := m.prices[u.series.key.price()]
		if !ok {
			price = priceOf(&u.call)
			if len(m.prices) < maxSeries {
				m.prices[u.series.key.price()] = price
			}
		}
		u.series.mu.Lock()
		u.series.price = price
		u.series.mu.Unlock()
	}
}

// priceOf is what the cost model says of a call, in seconds; 0: nothing.
func priceOf(c *gcl.TraceCall) float64 {
	e, err := c.Explain()
	if err != nil {
		return 0
	}
	for _, way := range e.Candidates {
		if way.Implementation == c.Implementation && (way.Method == c.Method || c.Phase > 0) {
			return way.Estimate.Seconds()
		}
	}
	return 0
}

// text is the answer to a scrape.
func (m *Metrics) text() []byte {
	m.mu.Lock()
	all := slices.Clone(m.all)
	for _, s := range m.rest {
		if s != nil {
			all = append(all, s)
		}
	}
	failures := maps.Clone(m.failures)
	m.mu.Unlock()
	slices.SortFunc(all, func(a, b *series) int { return cmp.Compare(a.labels, b.labels) })

	p := &page{}
	for o, of := range operationNames {
		var rows []row
		for _, s := range all {
			if s.operation == operation(o) {
				rows = append(rows, row{s, s.read()})
			}
		}
		p.calls(of.prefix, bandwidthName(operation(o)), rows)
		p.errors(operation(o), failures)
	}
	h := health()
	p.family("gcl_stalled_calls", "gauge", "Calls in progress for longer than gcl.WithStallAfter says.")
	p.sample("gcl_stalled_calls", "", float64(len(h.stalls)))
	p.family("gcl_aborted_communicators", "gauge", "Communicators that were aborted and are not closed.")
	p.sample("gcl_aborted_communicators", "", float64(len(h.aborts)))
	p.late(lateness())
	return p.Bytes()
}

func bandwidthName(o operation) string {
	if o == messages {
		return "gcl_p2p_bus_bandwidth_bytes_per_second"
	}
	return "gcl_bus_bandwidth_bytes_per_second"
}

// row is a series and its counts at one time.
type row struct {
	*series
	counted
}

// page is the text of a scrape.
type page struct{ bytes.Buffer }

// family begins a metric.
func (p *page) family(name, kind, help string) {
	fmt.Fprintf(p, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// sample is a line.
func (p *page) sample(name, labels string, value float64) {
	p.WriteString(name)
	if labels != "" {
		p.WriteString("{" + labels + "}")
	}
	p.WriteByte(' ')
	p.Write(strconv.AppendFloat(p.AvailableBuffer(), value, 'g', -1, 64))
	p.WriteByte('\n')
}

// column is a metric with a line for each series that has it.
type column struct {
	name, kind, help string
	value            func(r row) (value float64, ok bool)
}

// calls are the metrics of calls that went well.
func (p *page) calls(prefix, bandwidth string, rows []row) {
	if len(rows) == 0 {
		return
	}
	p.histogram(prefix+"exec_time_seconds", rows)
	for _, c := range []column{
		{prefix + "bytes_total", "counter", "Bytes of the larger of a replica's two buffers.",
			func(r row) (float64, bool) { return float64(r.bytes), true }},
		{prefix + "bus_bytes_total", "counter", "The same bytes times the bus factor of nccl-tests.",
			func(r row) (float64, bool) { return float64(r.bytes) * r.factor, r.factor > 0 && r.bytes > 0 }},
		{bandwidth, "gauge", "Bus bandwidth of the last call.",
			func(r row) (float64, bool) {
				return float64(r.lastBytes) * r.factor * 1e9 / float64(r.lastNanos), r.factor > 0 && r.bytes > 0
			}},
		{prefix + "price_seconds", "gauge", "What the cost model says that the first call takes.",
			func(r row) (float64, bool) { return r.price, r.price > 0 }},
	} {
		begun := false
		for _, r := range rows {
			value, ok := c.value(r)
			if ok && !begun {
				p.family(c.name, c.kind, c.help)
				begun = true
			}
			if ok {
				p.sample(c.name, r.labels, value)
			}
		}
	}
}

// histogram is the times of calls.
func (p *page) histogram(name string, rows []row) {
	p.family(name, "histogram", "Time of a call, from its turn to its end.")
	for _, r := range rows {
		sum := uint64(0)
		for i, n := range r.counts {
			sum += n
			p.sample(name+"_bucket", r.labels+`,le="`+boundTexts[i]+`"`, float64(sum))
		}
		p.sample(name+"_sum", r.labels, time.Duration(r.nanos).Seconds())
		p.sample(name+"_count", r.labels, float64(sum))
	}
}

// boundTexts are the bounds of the buckets, in seconds.
var boundTexts = func() (all [len(bounds) + 1]string) {
	for i, b := range bounds {
		all[i] = strconv.FormatFloat(time.Duration(b).Seconds(), 'g', -1, 64)
	}
	all[len(bounds)] = "+Inf"
	return all
}()

// errors are the calls that failed.
func (p *page) errors(o operation, failures map[failure]uint64) {
	name, counts := operationNames[o].prefix+"errors_total", map[string]uint64{}
	for f, n := range failures {
		if f.operation == o {
			counts[labels(operationNames[o].label, f.name, "kind", f.kind)] = n
		}
	}
	if len(counts) > 0 {
		p.family(name, "counter", "Calls that failed.")
	}
	for _, l := range slices.Sorted(maps.Keys(counts)) {
		p.sample(name, l, float64(counts[l]))
	}
}

// late are the metrics of replicas that others wait for.
func (p *page) late(all []watch.Late) {
	stragglers := watch.Stragglers(all)
	for _, c := range []struct {
		name, help string
		value      func(l watch.Late) float64
	}{
		{"gcl_recent_calls", "Recent calls that all members of a group wait for.",
			func(l watch.Late) float64 { return float64(l.Of) }},
		{"gcl_recent_calls_last", "Of the recent calls, those to which the replica came last.",
			func(l watch.Late) float64 { return float64(l.Last) }},
		{"gcl_recent_calls_waited_seconds", "How long all others waited for the replica in those.",
			func(l watch.Late) float64 { return l.Total.Seconds() }},
		{"gcl_recent_calls_straggler", "1 for a replica that keeps the others waiting, else 0.",
			func(l watch.Late) float64 {
				if slices.Contains(stragglers, l) {
					return 1
				}
				return 0
			}},
	} {
		for i, l := range all {
			if i == 0 {
				p.family(c.name, "gauge", c.help)
			}
			p.sample(c.name, labels("replica", strconv.Itoa(l.Replica)), c.value(l))
		}
	}
}

// lateness is that of the replicas of the communicator with the most calls whose replica 0 is in this process: it asks
// the others, and they do not ask each other.
func lateness() (most []watch.Late) {
	for s := range flight.Open() {
		if !s.Has(0) {
			continue
		}
		all := watch.Lateness(s.Job(0, watch.OthersTime).Processes)
		if len(all) > 0 && (most == nil || all[0].Of > most[0].Of) {
			most = all
		}
	}
	return most
}

// condition is what is wrong with the communicators of this process.
type condition struct {
	stalls []flight.Stall
	aborts []*watch.Failure
}

// health looks at all communicators of this process.
func health() (h condition) {
	for s := range flight.Open() {
		h.stalls = append(h.stalls, s.Stalls()...)
		if f := s.Failure(); f != nil {
			h.aborts = append(h.aborts, f)
		}
	}
	return h
}

// text has a line for each thing that is wrong; "": nothing is.
func (h condition) text() string {
	var b bytes.Buffer
	for _, s := range h.stalls {
		fmt.Fprintf(&b, "%s has waited for %v on replicas %v: %s\n", s.Call, s.Waited, s.Replicas, s.Why)
	}
	for _, f := range h.aborts {
		by := ""
		if f.Replica >= 0 && f.Kind != watch.Lost && f.Kind != watch.Left {
			by = fmt.Sprintf(" by replica %d", f.Replica)
		}
		fmt.Fprintf(&b, "gcl: aborted%s: %s\n", by, f.Error)
	}
	return b.String()
}
