package main

import (
	"context"
	"slices"

	"github.com/geoalign/geoalign/eval"
)

// rerank adds the scores of the matching head for the top candidates of every image and text, -100 elsewhere, and the
// recalls by them.
func (p *parity) rerank(top int) error {
	ctx, images, texts := context.Background(), p.sides[0], p.sides[1]
	x, y := p.model.Image(), p.model.Text()
	states, features, err := x.Encode(ctx, images)
	if err != nil {
		return err
	}
	g := &matched{p: p, image: slices.Clone(states), imageSize: x.Len() * x.Width(), textSize: y.Len() * y.Width()}
	u := slices.Clone(features)
	if states, features, err = y.Encode(ctx, texts); err != nil {
		return err
	}
	g.text, g.lengths = slices.Clone(states), texts.Ints("lengths")
	n, m, dim := images.Rows(), texts.Rows(), p.model.Dim()
	scores := make([]float32, n*m)
	p.engine.Gemm(false, true, n, m, dim, 1, u, dim, features, dim, 0, scores, m)
	g.i2t, g.t2i = filled(n*m), filled(n*m)
	c, err := correspondence(n)
	if err != nil {
		return err
	}
	_, second, err := eval.RankAndRerank(c, n, top, eval.Matrix(scores, m), g)
	if err != nil {
		return err
	}
	p.add("reranked/i2t", []int{n, m}, g.i2t)
	p.add("reranked/t2i", []int{m, n}, g.t2i)
	p.found(second.Metrics().Values(), "%.1f")
	return nil
}

// filled are n scores of pairs that are not scored.
func filled(n int) []float32 { return slices.Repeat([]float32{-100}, n) }

// matched scores pairs by the matching head, and keeps the scores.
type matched struct {
	p                   *parity
	image, text         []float32
	lengths             []int32
	imageSize, textSize int
	i2t, t2i            []float32
}

var _ eval.PairScorer = (*matched)(nil)

// pair scores one pair.
func (g *matched) pair(image, text int) (float32, error) {
	s, err := g.p.model.Matcher().Match(context.Background(), g.text[text*g.textSize:][:g.textSize],
		g.lengths[text:text+1], []int32{0}, g.image[image*g.imageSize:][:g.imageSize], 1, 1)
	if err != nil {
		return 0, err
	}
	return s[1], nil
}

// ScoreTexts implements eval.PairScorer.
func (g *matched) ScoreTexts(image int, texts []int, dst []float32) (err error) {
	for k, text := range texts {
		if dst[k], err = g.pair(image, text); err != nil {
			return err
		}
		g.i2t[image*len(g.lengths)+text] = dst[k]
	}
	return nil
}

// ScoreImages implements eval.PairScorer.
func (g *matched) ScoreImages(text int, images []int, dst []float32) (err error) {
	for k, image := range images {
		if dst[k], err = g.pair(image, text); err != nil {
			return err
		}
		g.t2i[text*len(g.t2i)/len(g.lengths)+image] = dst[k]
	}
	return nil
}
