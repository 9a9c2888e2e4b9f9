package search

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/data/features"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/kernel/kerneltest"
)

// codesVariable names the codes of an index: bytes or bits.
const codesVariable = "GEOALIGN_SEARCH_CODES"

// dataVariable names a folder of pool.npy and queries.npy, which bench/peer/search.py makes.
const dataVariable = "GEOALIGN_SEARCH_DATA"

// benchData returns a pool and queries of the same kind: those of the folder, or a small mixture.
func benchData(b *testing.B) (Pool, []float32) {
	const d = 256
	folder := os.Getenv(dataVariable)
	if folder == "" {
		n := 100_000
		if testing.Short() {
			n = 10_000
		}
		x := mixture(rand.New(rand.NewPCG(9, 1)), n+200, d, 300, 16, .35)
		return pool(b, x[:n*d], d), x[n*d:]
	}
	m := check.Get(features.OpenMatrix(filepath.Join(folder, "pool.npy"), ""))(b)
	b.Cleanup(func() { m.Close() })
	return m, readAll(b, filepath.Join(folder, "queries.npy"))
}

func readAll(b *testing.B, path string) []float32 {
	m := check.Get(features.OpenMatrix(path, ""))(b)
	defer m.Close()
	x := make([]float32, m.Rows()*m.Width())
	for i := range m.Rows() {
		check.OK(b, m.Row(i, x[i*m.Width():(i+1)*m.Width()]))
	}
	return x
}

// benchEngine has one thread with GEOALIGN_THREADS=1: times are then those of the processor.
func benchEngine(b *testing.B) *compute.Engine {
	o := compute.Options{}
	if os.Getenv("GEOALIGN_THREADS") == "1" {
		o.Threads = 1
	}
	e := check.Get(compute.New(o))(b)
	b.Cleanup(e.Close)
	b.Logf("%s", e.Describe())
	return e
}

// BenchmarkDataExact gives milliseconds a query for batches.
func BenchmarkDataExact(b *testing.B) {
	p, queries := benchData(b)
	e := benchEngine(b)
	for _, q := range []int{1, 64} {
		b.Run(map[int]string{1: "alone", 64: "batch of 64"}[q], func(b *testing.B) {
			x := queries[:q*p.Width()]
			seconds := kerneltest.Best(func() {
				check.Get(Exact(context.Background(), e, p, x, Options{Metric: Inner, K: 10}))(b)
			})
			b.ReportMetric(1e3*seconds/float64(q), "ms/query")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// benchIndex builds an index, or opens that of the folder, where it then stays.
func benchIndex(b *testing.B, e *compute.Engine, p Pool) *Index {
	codes := Codes(os.Getenv(codesVariable))
	path := Beside(filepath.Join(os.Getenv(dataVariable), "pool.npy")) + string(codes)
	if x, err := reopened(b, path, p); err == nil {
		b.Cleanup(func() { x.Close() })
		return x
	}
	start := time.Now()
	x := check.Get(Build(context.Background(), e, p,
		BuildOptions{Metric: Cosine, Codes: codes, Progress: func(stage string, done, of int) {
			if done == of {
				b.Logf("%-8s done after %.1f s", stage, time.Since(start).Seconds())
			}
		}}))(b)
	b.Logf("built in %.1f s", time.Since(start).Seconds())
	if os.Getenv(dataVariable) != "" {
		check.OK(b, x.Save(path))
	}
	return x
}

// BenchmarkDataIndex builds an index and gives recall among the queries' 10 nearest rows and
// milliseconds a query, alone and in a batch of all, at each effort of the curve.
func BenchmarkDataIndex(b *testing.B) {
	p, queries := benchData(b)
	e := benchEngine(b)
	ctx := context.Background()
	x := benchIndex(b, e, p)
	s := x.Stats()
	b.Logf("%s: %.1f MB, %.1f of the rows in float32; %d rows scored anew for one; looks at %d of %d cells for recall %.4f",
		s.Codes, float64(s.Bytes)/1e6, float64(4*s.Rows*s.Width)/float64(s.Bytes), x.header.Rescore, s.Probes, s.Cells, s.Recall)
	d := p.Width()
	exact := check.Get(Exact(ctx, e, p, queries, Options{Metric: Cosine, K: 10}))(b)
	for _, point := range s.Curve {
		if point.Recall < .8 {
			continue
		}
		got := check.Get(x.find(ctx, e, queries, Options{K: 10}, point.Probes))(b)
		ones := min(200, len(queries)/d)
		alone := kerneltest.Best(func() {
			for i := range ones {
				check.Get(x.find(ctx, nil, queries[i*d:(i+1)*d], Options{K: 10}, point.Probes))(b)
			}
		})
		batch := kerneltest.Best(func() {
			check.Get(x.find(ctx, e, queries, Options{K: 10}, point.Probes))(b)
		})
		found := 0
		for i, v := range got.Scores {
			if v >= exact.Scores[i/10*10+9] {
				found++
			}
		}
		b.Logf("%4d probes: recall %.4f of the build, %.4f of the queries; alone %.3f ms, batch %.4f ms a query",
			point.Probes, point.Recall, float64(found)/float64(len(got.Scores)), 1e3*alone/float64(ones),
			1e3*batch/float64(len(queries)/d))
	}
	b.ReportMetric(0, "ns/op")
}
