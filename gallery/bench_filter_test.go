package gallery

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/safetensors"
)

var benchRows = flag.Int("rows", 20_000, "rows of width 384 of BenchmarkFilters")

// BenchmarkFilters: a query among all rows, and among those of filters that choose a share of them at random, which were
// asked before. First-s is the time of the first selection.
func BenchmarkFilters(b *testing.B) {
	const c = 384
	dir, n := b.TempDir(), *benchRows
	m := Manifest{Version: 1, Side: Image, Dim: c, Rows: n, Complete: true, Meta: Meta{Score: "cosine", Product: true, Space: "sphere"}}
	r := rand.New(rand.NewPCG(1, 2))
	x := safetensors.Lazy{Len: n * c, Fill: func(dst []float32) error {
		for i := range dst {
			dst[i] = r.Float32() - 0.5
		}
		return nil
	}}
	s := check.Get(WriteShard(dir, "images-00000", []safetensors.Tensor{{Name: Image, Shape: []int{n, c}, Data: x}}, m.Meta, n,
		func(i int) any {
			return Item{Row: i, Name: fmt.Sprint(i, ".png"), Payload: fmt.Appendf(nil, `{"k":%d,"split":"train","url":`+
				`"https://example.org/photos/%d.jpg","caption":"two dogs run along a beach at low tide","width":1024,"height":768,`+
				`"license":{"name":"CC BY 4.0","by":"somebody"},"tags":["dog","beach","sea"]}`, r.IntN(100), i)}
		}))(b)
	m.Shards = []Shard{s}
	check.OK(b, m.Write(dir))
	g := check.Get(Open(dir))(b)
	defer g.Close()
	check.OK(b, g.Wait(b.Context()))
	e := check.Get(compute.New(compute.Options{}))(b)
	defer e.Close()
	v := check.Get(g.View(Image, Text))(b)
	query := check.Get(g.Row(Image, n/2))(b)
	for _, percent := range []int{100, 1, 10, 50} {
		b.Run(fmt.Sprint(percent, "%"), func(b *testing.B) {
			f := check.Get(ParseFilter(fmt.Appendf(nil, `{"k": {"lt": %d}}`, percent)))(b)
			start := time.Now()
			rows := check.Get(g.Select(Image, f))(b)
			first := time.Since(start)
			if percent == 100 {
				rows = nil // not filtered
			}
			for b.Loop() {
				check.Get(v.Search(b.Context(), e, query, Options{K: 10, Exact: true, Rows: rows}))(b)
			}
			b.ReportMetric(first.Seconds(), "first-s")
		})
	}
}
