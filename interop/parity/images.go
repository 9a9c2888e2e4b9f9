package main

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/geoalign/geoalign/batch"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/eval"
)

// An evaluation by identities, of made-up features: those of a start lie too near to each other for float32 to order
// them.
const (
	queries, searched = 40, 200
	identities        = 20
	cameras           = 3
	featureWidth      = 16
	identityNoise     = 1.5 // of a feature, by the deviation of what stands for an identity
)

// images adds features of n images as scores, and where images have identities a search.
func (p *parity) images(n int) error {
	r := rand.New(rand.NewPCG(13, 0))
	b := batch.New(n, p.model.Image().Columns()...)
	fill(b, r)
	p.inputs("eval/", b)
	x, err := p.model.Image().Features(context.Background(), b)
	if err != nil {
		return err
	}
	p.add("scores", []int{n, len(x) / n}, x)
	if p.cfg.Has(section.Identities) {
		return p.search(r)
	}
	return nil
}

// search adds what features of images find, by identities and cameras.
func (p *parity) search(r *rand.Rand) error {
	const n, c = queries + searched, featureWidth
	shown, x := random(r, identities*c), random(r, n*c)
	ids, seen, items := make([]int32, n), make([]int32, n), make([]eval.Item, n)
	for i := range n {
		ids[i], seen[i] = int32(r.IntN(identities)), int32(r.IntN(cameras))
		items[i] = eval.Item{Image: i, ID: int64(ids[i]), Camera: seen[i]}
		sum := float32(0)
		for k := range c {
			v := &x[i*c+k]
			*v = shown[int(ids[i])*c+k] + identityNoise**v
			sum += *v * *v
		}
		for k := range c {
			x[i*c+k] /= float32(math.Sqrt(float64(sum)))
		}
	}
	p.add("eval/features", []int{n, c}, x)
	p.add("eval/identities", []int{n}, ids)
	p.add("eval/cameras", []int{n}, seen)
	found, err := eval.MeasureIdentities(items[:queries], items[queries:], queries, func(row, count int, dst []float32) error {
		p.engine.Gemm(false, true, count, searched, c, 1, x[row*c:], c, x[queries*c:], c, 0, dst, searched)
		return nil
	})
	if err != nil {
		return err
	}
	p.found(found.Values(), "%.2f")
	return nil
}
