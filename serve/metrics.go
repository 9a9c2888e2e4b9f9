package serve

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// metrics counts what happens, for Prometheus.
type metrics struct {
	mu       sync.Mutex
	requests map[request]int
	refused  map[string]int // by reason
	reloads  map[string]int // by result
	merges   map[string]int // by result
	put      int            // rows
	deleted  int
	buckets  []int   // searches by time, see bounds
	seconds  float64 // of searches
	batches  int
	queries  int // of all batches
	encoding time.Duration
	finding  time.Duration
	inFlight int
}

type request struct {
	route string
	code  int
}

// bounds are the upper ends of the buckets in seconds.
var bounds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

func newMetrics() *metrics {
	return &metrics{requests: map[request]int{}, refused: map[string]int{}, reloads: map[string]int{}, merges: map[string]int{}, buckets: make([]int, len(bounds)+1)}
}

func (m *metrics) begin() { m.mu.Lock(); m.inFlight++; m.mu.Unlock() }

func (m *metrics) end(route string, code int, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.inFlight--
	m.requests[request{route, code}]++
	if route == routeSearch && code == 200 {
		i, _ := slices.BinarySearch(bounds, took.Seconds())
		m.buckets[i]++
		m.seconds += took.Seconds()
	}
}

func (m *metrics) refuse(reason string) { m.mu.Lock(); m.refused[reason]++; m.mu.Unlock() }

func (m *metrics) reload(result string) { m.mu.Lock(); m.reloads[result]++; m.mu.Unlock() }

func (m *metrics) merge(result string) { m.mu.Lock(); m.merges[result]++; m.mu.Unlock() }

func (m *metrics) changed(put, deleted int) {
	m.mu.Lock()
	m.put, m.deleted = m.put+put, m.deleted+deleted
	m.mu.Unlock()
}

func (m *metrics) batch(n int) { m.mu.Lock(); m.batches++; m.queries += n; m.mu.Unlock() }

func (m *metrics) encode(d time.Duration) { m.mu.Lock(); m.encoding += d; m.mu.Unlock() }

func (m *metrics) search(d time.Duration) { m.mu.Lock(); m.finding += d; m.mu.Unlock() }

// write writes the text format of Prometheus.
func (m *metrics) write(w io.Writer, rows, waiting int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	head := func(name, kind, help string) { fmt.Fprintf(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind) }
	one := func(name, kind, help string, v any) { head(name, kind, help); fmt.Fprintf(w, "%s %v\n", name, v) }
	head("geoalign_requests_total", "counter", "Requests answered, by route and status.")
	for _, k := range slices.SortedFunc(maps.Keys(m.requests), func(a, b request) int {
		return cmp.Or(cmp.Compare(a.route, b.route), a.code-b.code)
	}) {
		fmt.Fprintf(w, "geoalign_requests_total{route=%q,code=\"%d\"} %d\n", k.route, k.code, m.requests[k])
	}
	for _, x := range []struct {
		name, label, help string
		counts            map[string]int
	}{
		{"geoalign_refused_total", "reason", "Requests refused for want of room.", m.refused},
		{"geoalign_reloads_total", "result", "Reloads of the gallery.", m.reloads},
		{"geoalign_merges_total", "result", "Merges of changes of the gallery.", m.merges},
	} {
		head(x.name, "counter", x.help)
		for _, k := range slices.Sorted(maps.Keys(x.counts)) {
			fmt.Fprintf(w, "%s{%s=%q} %d\n", x.name, x.label, k, x.counts[k])
		}
	}
	const h = "geoalign_search_duration_seconds"
	head(h, "histogram", "Time of searches that were answered, waiting included.")
	sum := 0
	for i, b := range bounds {
		sum += m.buckets[i]
		fmt.Fprintf(w, "%s_bucket{le=\"%v\"} %d\n", h, b, sum)
	}
	sum += m.buckets[len(bounds)]
	fmt.Fprintf(w, "%s_bucket{le=\"+Inf\"} %d\n%s_sum %v\n%s_count %d\n", h, sum, h, m.seconds, h, sum)
	one("geoalign_rows_put_total", "counter", "Rows put.", m.put)
	one("geoalign_rows_deleted_total", "counter", "Rows deleted.", m.deleted)
	one("geoalign_batches_total", "counter", "Batches computed.", m.batches)
	one("geoalign_batched_queries_total", "counter", "Queries of all batches.", m.queries)
	one("geoalign_encode_seconds_total", "counter", "Time of encoding queries.", m.encoding.Seconds())
	one("geoalign_find_seconds_total", "counter", "Time of searching the rows.", m.finding.Seconds())
	one("geoalign_requests_in_flight", "gauge", "Requests being answered.", m.inFlight)
	one("geoalign_queries_waiting", "gauge", "Queries in the queue.", waiting)
	one("geoalign_gallery_rows", "gauge", "Rows that are searched.", rows)
}
