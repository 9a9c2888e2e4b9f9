package model

import (
	"testing"
	"time"

	"github.com/geoalign/geoalign/compute"
	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/data/batch"
)

// BenchmarkEncode encodes 16 pictures of 224 pixels with a ViT-B/16 (86 million parameters, 34 GFLOP a picture) of random
// weights, in both precisions. The best of all times is what a busy machine leaves comparable; bench/peer/encode.py runs
// it in turns with PyTorch.
//
//	go test ./model -run '^$' -bench Encode -benchtime 5x
func BenchmarkEncode(b *testing.B) {
	const rows = 16
	for name, precision := range map[string]string{"fp32": "fp32", "bf16": "bf16"} {
		b.Run(name, func(b *testing.B) {
			cfg, err := config.Load("", []string{"model.system=clip", "model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0", "objective.itc.in_batch_weight=1", "model.text.layers=1", "train.batch_size=2", "model.image.style=vit", "model.image.size=224", "model.image.patch=16", "model.image.depth=12", "model.image.width=768", "model.image.heads=12",
				"compute.precision=" + precision})
			if err != nil {
				b.Fatal(err)
			}
			e, err := compute.New(compute.Options{Threads: 2, Precision: precision})
			if err != nil {
				b.Fatal(err)
			}
			defer e.Close()
			p, err := New(cfg, Options{Engine: e, Vocab: 100})
			if err != nil {
				b.Fatal(err)
			}
			in := batch.New(rows, p.Image().Columns()...)
			for i := range in.Floats(batch.Images) {
				in.Floats(batch.Images)[i] = float32(i%255)/128 - 1
			}
			best := time.Hour
			for b.Loop() {
				start := time.Now()
				if _, _, err := p.Image().Encode(b.Context(), in); err != nil {
					b.Fatal(err)
				}
				best = min(best, time.Since(start))
			}
			b.ReportMetric(rows/best.Seconds(), "pictures/s")
			b.ReportMetric(0, "ns/op")
		})
	}
}
