package model

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/geoalign/geoalign/align"
	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/internal/check"
)

// BenchmarkAnchors maps 32 rows of 768 channels to the shared space: by ASIF, which compares them with all of its
// anchors (pairs), and by heads, linear and with a hidden layer, which know nothing of how many pairs they were trained
// on (GeRA, figure 8). Times do not depend on the numbers, which are noise. The best of all times is what a busy
// machine leaves comparable.
//
//	go test ./model -run '^$' -bench Anchors -benchtime 50x
func BenchmarkAnchors(b *testing.B) {
	const rows, width = 32, 768
	noise := func(n int) align.Table {
		r := rand.New(rand.NewPCG(uint64(n), 7))
		x := make([]float32, n*width)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return align.Table{Data: x, D: width}
	}
	x := noise(rows).Data
	measure := func(name string, apply func() error) {
		b.Run(name, func(b *testing.B) {
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				check.OK(b, apply())
				best = min(best, time.Since(start))
			}
			b.ReportMetric(best.Seconds()*1e3, "best-ms")
		})
	}
	cfg, err := config.Load("../configs/gera.toml", []string{"data.pairs.image=x.npy", "data.pairs.text=x.npy", "model.heads.in_image=768", "model.heads.in_text=768", "train.batch_size=32",
		"objective.geometric.weight=0"})
	if err != nil {
		b.Fatal(err)
	}
	for _, h := range []struct{ hidden, layers int }{{0, 0}, {1024, 1}, {8000, 1}} {
		cfg.Model.Heads.Layers, cfg.Model.Heads.Hidden = h.layers, max(h.hidden, 1)
		m := buildHeads(b, cfg)
		encoder := m.Image()
		in := batch.New(rows, encoder.Columns()...)
		copy(in.Floats(batch.ImageFeatures), x)
		measure(fmt.Sprintf("heads/hidden=%d", h.hidden), func() error { _, _, err := encoder.Encode(b.Context(), in); return err })
	}
	e := check.Get(compute.New(compute.Options{Threads: 2}))(b)
	defer e.Close()
	for _, n := range []int{1_000, 4_000, 16_000, 64_000} {
		anchors := noise(n)
		m := check.Get(align.ASIF{}.Fit(e, align.Pairs{Image: anchors, Text: anchors}))(b)
		measure(fmt.Sprintf("asif/anchors=%d", n), func() error { _, err := m.(*align.ASIFMap).Codes(e, align.Image, x); return err })
	}
}
